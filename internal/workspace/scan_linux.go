package workspace

import (
	"golang.org/x/sys/unix"

	"reasonix/store"
)

// rawFolder is a folder that is open for lstat only: two system calls where a folder of a
// cursor takes a dozen, which is most of the time of a scan that finds nothing new.
type rawFolder struct {
	fd int
	st unix.Stat_t
}

// openRaw opens the folder p; no component may be a link (I11). false says that the way through
// a cursor has to be taken, which tells why: kernels before 5.6 and some sandboxes have no
// openat2, faults of tests are for that way only.
func (r *Root) openRaw(f *rawFolder, p store.Path) bool {
	if r.o.Fault != nil {
		return false
	}
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	err := retryEINTR(func() (err error) {
		f.fd, err = unix.Openat2(int(r.handle.Fd()), string(p), &how)
		return err
	})
	return err == nil
}

func (f *rawFolder) close() { _ = unix.Close(f.fd) }

// lstat returns the signature of name, but for Racy.
func (f *rawFolder) lstat(name string) (Sig, error) {
	st := &f.st
	for {
		err := unix.Fstatat(f.fd, name, st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Sig{}, err
		}
		break
	}
	s := Sig{
		Mode: st.Mode & 0o777, Size: st.Size, MTime: st.Mtim.Nano(), CTime: st.Ctim.Nano(),
		Device: uint64(st.Dev), Inode: st.Ino,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.Kind = store.File
	case unix.S_IFDIR:
		s.Kind = store.Dir
	case unix.S_IFLNK:
		s.Kind = store.Symlink
	default:
		s.Kind = store.Uncaptured
	}
	return s, nil
}
