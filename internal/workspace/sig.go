package workspace

import (
	"io/fs"
	"time"

	"reasonix/store"
)

const (
	// A kernel stamps files with the time of its last tick, up to 10 ms old. A second write
	// within the tick leaves no trace in the stamps.
	fineGrain = 10 * time.Millisecond
	// FAT counts in steps of 2 s, some network file systems in seconds.
	coarseGrain = 2 * time.Second
)

// Sig is what lstat says about a path. Two equal signatures of one path mean that it did not
// change between them, unless the first is Racy. The zero Sig means "not known".
type Sig struct {
	Kind          store.Kind // Absent where nothing is, Uncaptured for what cannot be captured
	Mode          uint32     // permission bits
	Racy          bool       // changed so shortly before the reading that a later change may look the same
	Size          int64      // bytes
	MTime         int64      // unix nanoseconds
	CTime         int64      // unix nanoseconds; 0 where the system has none
	Device, Inode uint64     // 0 where lstat does not tell (Windows)
}

// Same reports whether s and t describe the same file in the same state, Racy aside.
func (s Sig) Same(t Sig) bool {
	s.Racy, t.Racy = false, false
	return s == t && s.Kind != 0
}

// sameMoved is Same for a file that was renamed in between, which changes its ctime.
func (s Sig) sameMoved(t Sig) bool {
	s.CTime, t.CTime = 0, 0
	return s.Same(t)
}

var absentSig = Sig{Kind: store.Absent}

// sigOf makes the signature of fi. read is a moment before the content was read.
func sigOf(fi fs.FileInfo, read time.Time) Sig {
	s := Sig{Kind: kindOf(fi.Mode()), Mode: uint32(fi.Mode().Perm()), Size: fi.Size(), MTime: fi.ModTime().UnixNano()}
	fillSig(&s, fi)
	s.Racy = s.racy(read)
	return s
}

// racy reports whether what was read at the moment read may be changed without a new stamp.
func (s *Sig) racy(read time.Time) bool {
	grain := fineGrain
	if s.MTime%int64(time.Second) == 0 && s.CTime%int64(time.Second) == 0 {
		grain = coarseGrain
	}
	return max(s.MTime, s.CTime) >= read.Add(-grain).UnixNano()
}

// kindOf is what can be captured of mode; Uncaptured for sockets, pipes, devices and others.
func kindOf(mode fs.FileMode) store.Kind {
	switch {
	case mode.IsRegular():
		return store.File
	case mode.IsDir():
		return store.Dir
	case mode&fs.ModeSymlink != 0:
		return store.Symlink
	}
	return store.Uncaptured
}

// Unchanged reports whether an lstat proves that what was read with the signature s is still
// there. It is false for a racy or unknown signature and whenever anything fails: then the
// path has to be read again.
func (r *Root) Unchanged(p store.Path, s Sig) bool {
	if s.Kind == 0 || s.Racy || r.check(p) != nil {
		return false
	}
	c := r.cursor()
	defer c.close()
	dir, leaf := split(p)
	f, err := c.enter(dir)
	if err != nil {
		return s.Kind == store.Absent && meansAbsent(err)
	}
	fi, err := f.lstat(leaf)
	if err != nil {
		return s.Kind == store.Absent && meansAbsent(err)
	}
	return sigOf(fi, time.Time{}).Same(s)
}
