//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags of a file to be read. O_NONBLOCK: a pipe that took the file's place must not hang.
const openFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC

// stageFlags of a staged file.
const stageFlags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | syscall.O_NOFOLLOW | syscall.O_CLOEXEC

func identityOf(f *os.File) (Identity, error) { return identityIn(f.Stat()) }

func identityOfPath(path string) (Identity, error) { return identityIn(os.Stat(path)) }

func identityIn(fi fs.FileInfo, err error) (Identity, error) {
	if err != nil {
		return Identity{}, err
	}
	var s Sig
	fillSig(&s, fi)
	return Identity{Device: s.Device, Inode: s.Inode}, nil
}

func checkSystemName(string) error      { return nil }
func checkSystemPath(name string) error { return nil }

// unlinkAt and rmdirAt remove one kind of thing each. os.Root.Remove tries both, and would take
// away a file that was put in the place of an empty folder.
func unlinkAt(f *folder, name string) error { return f.unlinkat(name, 0) }
func rmdirAt(f *folder, name string) error  { return f.unlinkat(name, unix.AT_REMOVEDIR) }

func (f *folder) unlinkat(name string, flags int) error {
	h, err := f.handle()
	if err != nil {
		return err
	}
	return retryEINTR(func() error { return unix.Unlinkat(int(h.Fd()), name, flags) })
}

// chmodAt sets the mode of what cannot be opened, without following a link.
func chmodAt(f *folder, name string, mode fs.FileMode) error {
	h, err := f.handle()
	if err != nil {
		return err
	}
	return retryEINTR(func() error {
		return unix.Fchmodat(int(h.Fd()), name, uint32(mode.Perm()), unix.AT_SYMLINK_NOFOLLOW)
	})
}

func renameAt(from *os.File, old string, to *os.File, name string) error {
	return retryEINTR(func() error {
		return unix.Renameat(int(from.Fd()), old, int(to.Fd()), name)
	})
}

// accessible reports whether the effective user may make and remove entries of folder.
func accessible(folder *os.File) error {
	err := unix.Faccessat(int(folder.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	if errors.Is(err, unix.EROFS) {
		return fmt.Errorf("read-only file system: %w", fs.ErrPermission)
	}
	return err
}

// syncFile makes the content and the mode of an open file durable.
func syncFile(f *os.File) error { return f.Sync() }

// syncFolder makes the names in folder durable.
func syncFolder(folder *os.File) error {
	err := folder.Sync()
	// Some network and FUSE file systems have no fsync for folders and say EINVAL. There is
	// nothing then that could be synced, so it is no lost write.
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// isNotEmpty reports whether err says that a folder still holds something.
func isNotEmpty(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)
}

// isNotDir reports whether err says that a parent is no folder.
func isNotDir(err error) bool { return errors.Is(err, unix.ENOTDIR) }

func retryEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// isOtherKind reports whether err says that a file to be opened is a link, a socket or a pipe.
func isOtherKind(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO)
}
