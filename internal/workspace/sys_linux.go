package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// canSwap says that the system can exchange two names and refuse to replace one.
const canSwap = true

// canSyncAll says that one call makes a whole file system durable and reports its errors
// (since Linux 5.8; before that it waits for the writes but says nothing of their errors).
const canSyncAll = true

func fillSig(s *Sig, fi fs.FileInfo) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.CTime = st.Ctim.Nano()
		s.Device, s.Inode = uint64(st.Dev), st.Ino
	}
}

func exchangeAt(from *os.File, old string, to *os.File, name string) error {
	return rename2(from, old, to, name, unix.RENAME_EXCHANGE)
}

func renameNewAt(from *os.File, old string, to *os.File, name string) error {
	return rename2(from, old, to, name, unix.RENAME_NOREPLACE)
}

func rename2(from *os.File, old string, to *os.File, name string, flags uint) error {
	return retryEINTR(func() error {
		return unix.Renameat2(int(from.Fd()), old, int(to.Fd()), name, flags)
	})
}

// isUnsupported reports whether err says that the file system cannot do what canSwap promises.
func isUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP)
}

func syncAll(folder *os.File) error {
	return retryEINTR(func() error { return unix.Syncfs(int(folder.Fd())) })
}

func foldName(name string) string { return name }
