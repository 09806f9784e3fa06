package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

const (
	openFlags  = os.O_RDONLY
	stageFlags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
)

func identityOf(f *os.File) (Identity, error) {
	var d windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &d); err != nil {
		return Identity{}, err
	}
	return Identity{
		Device: uint64(d.VolumeSerialNumber),
		Inode:  uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow),
	}, nil
}

func identityOfPath(path string) (Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return Identity{}, err
	}
	defer f.Close()
	return identityOf(f)
}

// fillSig adds nothing: lstat tells neither identity nor the time of the last change here.
func fillSig(*Sig, fs.FileInfo) {}

// foldName undoes what Windows does to names: "GIT~1", ".git. " and ".git::$DATA" open .git.
func foldName(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	if strings.EqualFold(name, "git~1") {
		return ".git"
	}
	return name
}

func checkSystemName(name string) error {
	switch {
	case !filepath.IsLocal(name): // CON, NUL, COM1 and their like
		return fmt.Errorf("%w: reserved name %q", ErrInvalid, name)
	case strings.ContainsAny(name, `\:*?"<>|`):
		return fmt.Errorf("%w: %q has a character that Windows does not allow", ErrInvalid, name)
	case strings.TrimRight(name, ". ") != name:
		return fmt.Errorf("%w: %q ends in a dot or a space, which Windows drops", ErrInvalid, name)
	}
	return nil
}

// checkSystemPath refuses "C:x" and "\x", which depend on a current folder or drive that is
// not the caller's cwd.
func checkSystemPath(name string) error {
	if filepath.IsAbs(name) {
		return nil
	}
	if filepath.VolumeName(name) != "" || os.IsPathSeparator(name[0]) {
		return fmt.Errorf("%w: relative to a drive", ErrInvalid)
	}
	return nil
}

// renameAt renames by full names: Windows has no renameat in the libraries in use. The folders
// were checked by the caller a moment before.
func renameAt(from *os.File, old string, to *os.File, name string) error {
	return os.Rename(filepath.Join(from.Name(), old), filepath.Join(to.Name(), name))
}

func unlinkAt(f *folder, name string) error { return f.dir.Remove(name) }
func rmdirAt(f *folder, name string) error  { return f.dir.Remove(name) }

func chmodAt(f *folder, name string, mode fs.FileMode) error { return f.dir.Chmod(name, mode) }

func accessible(*os.File) error { return nil } // only trying tells, with access control lists

// syncFile does nothing: it is asked for files whose only news is the read-only bit, which NTFS
// keeps in its journal; a flush would need a handle that may write.
func syncFile(*os.File) error { return nil }

// syncFolder does nothing: NTFS writes names to its journal, and a folder cannot be flushed.
func syncFolder(*os.File) error { return nil }

func isNotEmpty(err error) bool { return errors.Is(err, windows.ERROR_DIR_NOT_EMPTY) }

func isNotDir(err error) bool { return errors.Is(err, windows.ERROR_DIRECTORY) }

// isOtherKind reports whether err says that a file to be opened is something else by now.
func isOtherKind(err error) bool { return isNotDir(err) }
