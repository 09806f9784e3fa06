package db

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// applicationID marks a SQLite file as a store: "RRNX" in ASCII.
const applicationID = 0x52524e58

// headerMagic is how every SQLite file begins (https://www.sqlite.org/fileformat.html).
const headerMagic = "SQLite format 3\x00"

// inUse lists the files on which this process has SQLite connections. POSIX locks belong to
// the process: closing any descriptor of a file drops all of them, also those that SQLite
// holds through another descriptor. A file may therefore be read by other means only while it
// is not in the list, and mu is held from that look-up until the descriptor is closed.
var inUse struct {
	mu    sync.Mutex
	files []*usedFile // guarded by mu
}

type usedFile struct {
	info     fs.FileInfo
	writable bool // this user may write it
	count    int  // guarded by inUse.mu
}

// claim checks that SQLite may open the file at path, and enters it into inUse. The file is
// created when it is missing and create is set. Nothing is written into an existing file.
func claim(path string, create bool, latest int) (*usedFile, error) {
	inUse.mu.Lock()
	defer inUse.mu.Unlock()

	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, fmt.Errorf("%w: %w", ErrNotExist, err)
		}
		info, err = createFile(path)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range inUse.files {
		if os.SameFile(f.info, info) {
			f.count++
			return f, nil
		}
	}
	f := &usedFile{info: info, count: 1}
	if f.writable, err = checkHeader(path, info, latest); err != nil {
		return nil, err
	}
	inUse.files = append(inUse.files, f)
	return f, nil
}

// release takes back one claim, after the connections it stood for were closed.
func (f *usedFile) release() {
	inUse.mu.Lock()
	defer inUse.mu.Unlock()
	if f.count--; f.count > 0 {
		return
	}
	for i := range inUse.files {
		if inUse.files[i] == f {
			inUse.files = append(inUse.files[:i], inUse.files[i+1:]...)
			return
		}
	}
}

// createFile makes an empty file that only its owner can read. SQLite gives the files that it
// puts beside it (-wal, -shm, -journal) the same permissions.
func createFile(path string) (fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.Stat(path) // another process was first
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close())
}

// checkHeader refuses what is not a store, or is one of a newer schema, before SQLite opens
// it: opening alone can already write (recovery of a journal, checkpoint of a WAL). An empty
// file is a store that is not born yet. It reports whether this user may write the file: SQLite
// opens one that may only be read without a word, and lets transactions begin on it.
func checkHeader(path string, info fs.FileInfo, latest int) (writable bool, err error) {
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%w: it is no regular file", ErrForeign)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if writable = err == nil; !writable {
		if f, err = os.Open(path); err != nil {
			return false, err
		}
	}
	defer f.Close()
	if info.Size() == 0 {
		return writable, nil
	}
	var header [100]byte
	if _, err := io.ReadFull(f, header[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, fmt.Errorf("%w: it is too short for a database", ErrForeign)
		}
		return false, err
	}
	if string(header[:len(headerMagic)]) != headerMagic {
		return false, fmt.Errorf("%w: it is no SQLite database", ErrForeign)
	}
	if id := binary.BigEndian.Uint32(header[68:]); id != applicationID {
		return false, foreignID(int64(id))
	}
	if v := binary.BigEndian.Uint32(header[60:]); int64(v) > int64(latest) {
		return false, newer(int(v), latest)
	}
	return writable, nil
}

func foreignID(id int64) error {
	return fmt.Errorf("%w: its application id is %#x", ErrForeign, id)
}

func newer(version, latest int) error {
	return fmt.Errorf("%w: its schema is %d, this version knows %d", ErrNewer, version, latest)
}

// canonical is the absolute path of the file behind links, so that all processes use the same
// lock file.
func canonical(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}
