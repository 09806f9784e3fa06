//go:build unix

package powercut

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// inode is a file, link or folder, whatever its names are.
type inode struct {
	mode  fs.FileMode
	data  string            // content or target
	names map[string]number // of a folder
}

// number is an inode's own: the system gives those of removed files away again.
type number int

const (
	nothing number = iota // no inode
	top                   // the watched folder
)

// name is an entry of a folder.
type name struct {
	folder number
	name   string
}

// change is what one system call did to names. Those that it took away lead to nothing.
type change map[name]number

// Disk is what programs see of a folder, and what would survive. It is for one goroutine.
type Disk struct {
	dir     string
	last    number
	numbers map[[2]uint64]number // by device and inode
	seen    map[number]*inode    // as programs see it
	safe    map[number]*inode    // as it is after a power cut in which all is lost that can be
	pending []change             // of names, since then, in order
	touched number
}

// Watch takes all that is in dir for durable.
func Watch(dir string) (*Disk, error) {
	d := &Disk{dir: dir, last: top, safe: map[number]*inode{}}
	if err := d.Look(); err != nil {
		return nil, err
	}
	d.Sync()
	return d, nil
}

// Look takes in what happened since the last look: at most one call that changes something,
// unless it only removes.
func (d *Disk) Look() error {
	was := d.seen
	d.seen = map[number]*inode{}
	numbers := map[[2]uint64]number{}
	if err := d.look(d.dir, numbers); err != nil {
		return fmt.Errorf("look at %s: %w", d.dir, err)
	}
	d.numbers, d.touched = numbers, nothing
	for n, i := range d.seen {
		if old := was[n]; old == nil || old.mode != i.mode || old.data != i.data {
			d.touched = n
		}
		if d.safe[n] == nil { // new: its mode and target came with its name
			d.safe[n] = &inode{mode: i.mode, names: map[string]number{}}
			if i.mode&fs.ModeSymlink != 0 {
				d.safe[n].data = i.data
			}
		}
	}
	d.pending = append(d.pending, split(differences(was, d.seen), was)...)
	return nil
}

func (d *Disk) look(path string, numbers map[[2]uint64]number) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	id := [2]uint64{uint64(st.Dev), st.Ino}
	n, ok := d.numbers[id]
	switch {
	case path == d.dir:
		n = top
	case !ok:
		d.last++
		n = d.last
	}
	numbers[id] = n
	i := &inode{mode: info.Mode(), names: map[string]number{}}
	d.seen[n] = i
	switch info.Mode().Type() {
	case 0:
		b, err := os.ReadFile(path)
		i.data = string(b)
		return err
	case fs.ModeSymlink:
		i.data, err = os.Readlink(path)
		return err
	case fs.ModeDir:
	default:
		return fmt.Errorf("%s: %w", path, errors.ErrUnsupported)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		child := filepath.Join(path, e.Name())
		if err := d.look(child, numbers); err != nil {
			return err
		}
		i.names[e.Name()] = d.find(child, numbers)
	}
	return nil
}

func (d *Disk) find(path string, numbers map[[2]uint64]number) number {
	info, err := os.Lstat(path)
	if err != nil {
		return nothing
	}
	st := info.Sys().(*syscall.Stat_t)
	return numbers[[2]uint64{uint64(st.Dev), st.Ino}]
}

// differences are the names that lead elsewhere than they did.
func differences(was, is map[number]*inode) change {
	all := change{}
	for n, i := range was {
		for s := range i.names {
			all[name{n, s}] = nothing
		}
	}
	for n, i := range is {
		for s, to := range i.names {
			if old := was[n]; old != nil && old.names[s] == to {
				delete(all, name{n, s})
			} else {
				all[name{n, s}] = to
			}
		}
	}
	return all
}

// split sorts differences into changes: names that had, or have, the same inode were changed by
// one call.
func split(all change, was map[number]*inode) []change {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b name) int {
		if a.folder != b.folder {
			return int(a.folder - b.folder)
		}
		return strings.Compare(a.name, b.name)
	})
	var changes []change
	of := map[number]change{}
	for _, k := range keys {
		var c change
		var old number
		if i := was[k.folder]; i != nil {
			old = i.names[k.name]
		}
		for _, n := range []number{old, all[k]} {
			if n != nothing && of[n] != nil {
				c = of[n]
			}
		}
		if c == nil {
			c = change{}
			changes = append(changes, c)
		}
		c[k] = all[k]
		of[old], of[all[k]] = c, c
		delete(of, nothing)
	}
	return changes
}

// Sync makes all durable that the last look saw.
func (d *Disk) Sync() {
	d.safe = map[number]*inode{}
	for n, i := range d.seen {
		d.safe[n] = &inode{mode: i.mode, data: i.data, names: maps.Clone(i.names)}
	}
	d.pending = nil
}

// Open is a handle of a file or folder, under whatever name. Zero is none.
type Open struct{ inode number }

// Touched is what the call before the last look made, wrote or gave a mode; zero if none.
func (d *Disk) Touched() Open { return Open{d.touched} }

// Open returns a handle of what the last look saw at path, which lies below the watched folder
// or is that folder; zero if nothing is there.
func (d *Disk) Open(path string) Open { return Open{d.number(path)} }

// SyncFile does what fsync does. It reports whether the last look saw that file or folder.
func (d *Disk) SyncFile(o Open) bool {
	n := o.inode
	i, safe := d.seen[n], d.safe[n]
	if i == nil || safe == nil {
		return false
	}
	safe.mode, safe.data, safe.names = i.mode, i.data, maps.Clone(i.names)
	for _, c := range d.pending {
		maps.DeleteFunc(c, func(k name, _ number) bool { return k.folder == n })
	}
	d.pending = slices.DeleteFunc(d.pending, func(c change) bool { return len(c) == 0 })
	return true
}

// IsFolder reports whether the last look saw it, and as a folder.
func (d *Disk) IsFolder(o Open) bool {
	i := d.seen[o.inode]
	return i != nil && i.mode.IsDir()
}

func (d *Disk) number(path string) number {
	rel, err := filepath.Rel(d.dir, path)
	if err != nil {
		return nothing
	}
	n := top
	if rel == "." {
		return n
	}
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		i := d.seen[n]
		if i == nil {
			return nothing
		}
		n = i.names[part]
	}
	return n
}
