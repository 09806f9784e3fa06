package export

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll makes the file system durable that folder lies on. It tells of every failed write since
// the folder was opened.
func syncAll(folder *os.File) error {
	for {
		if err := unix.Syncfs(int(folder.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
