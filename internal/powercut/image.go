//go:build unix

package powercut

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Loss says what a power cut takes of that which is not durable.
type Loss struct {
	Name  string
	names func() bool                  // whether a change of names survives
	modes func() bool                  // whether a change of a mode does
	data  func(safe, is string) string // what is in a file
}

// Losses are the thorough ones, and as many mixtures at random as there are to be seeds.
func Losses(seeds uint64) []Loss {
	yes, no := func() bool { return true }, func() bool { return false }
	old := func(safe, _ string) string { return safe }
	all := []Loss{
		{"nothing", yes, yes, func(_, is string) string { return is }},
		{"everything", no, no, old},
		{"contents", yes, yes, old},
		{"contents, which are zeros", yes, yes, func(safe, is string) string {
			if safe == is {
				return is
			}
			return strings.Repeat("\x00", len(is))
		}},
		{"names", no, yes, func(_, is string) string { return is }},
		{"modes", yes, no, func(_, is string) string { return is }},
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 0))
		coin := func() bool { return rnd.IntN(2) == 0 }
		all = append(all, Loss{fmt.Sprint("mixture ", seed), coin, coin, func(safe, is string) string {
			if coin() || safe == is {
				return safe
			}
			return is[:rnd.IntN(len(is)+1)]
		}})
	}
	return all
}

// File is one entry of an Image: a file, a link, whose target Data is, or a folder.
type File struct {
	Mode fs.FileMode
	Data string
}

// Image is what is found after a power cut, by path relative to the watched folder.
type Image map[string]File

// After is what is found when the power is cut now, as of the last look.
func (d *Disk) After(l Loss) Image {
	names := map[number]map[string]number{}
	for n, i := range d.safe {
		names[n] = maps.Clone(i.names)
	}
	for _, c := range d.pending {
		if !l.names() {
			continue
		}
		for k, to := range c {
			if to == nothing {
				delete(names[k.folder], k.name)
			} else {
				names[k.folder][k.name] = to
			}
		}
	}
	// Each inode is asked about once, in order, so that a seed means the same each time.
	files := map[number]File{}
	for _, n := range slices.Sorted(maps.Keys(d.safe)) {
		safe, is := d.safe[n], d.seen[n]
		if is == nil {
			is = safe // it has no name any more
		}
		f := File{Mode: safe.mode, Data: safe.data}
		if safe.mode != is.mode && l.modes() {
			f.Mode = is.mode
		}
		if safe.mode.IsRegular() {
			f.Data = l.data(safe.data, is.data)
		}
		files[n] = f
	}
	m := Image{}
	m.add(".", top, files, names, nil)
	return m
}

func (m Image) add(path string, n number, files map[number]File, names map[number]map[string]number, above []number) {
	if slices.Contains(above, n) {
		return
	}
	m[path] = files[n]
	if files[n].Mode.IsDir() {
		for s, child := range names[n] {
			m.add(filepath.Join(path, s), child, files, names, append(slices.Clip(above), n))
		}
	}
}

// Write makes the image in dir, which must not exist.
func (m Image) Write(dir string) error {
	paths := slices.Sorted(maps.Keys(m)) // parents come before what they hold
	for _, p := range paths {
		var err error
		f, to := m[p], filepath.Join(dir, p)
		switch f.Mode.Type() {
		case fs.ModeDir:
			err = os.Mkdir(to, 0o700)
		case fs.ModeSymlink:
			err = os.Symlink(f.Data, to)
		default:
			err = os.WriteFile(to, []byte(f.Data), 0o600)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range slices.Backward(paths) { // a folder may be closed by its mode
		if m[p].Mode.Type() == fs.ModeSymlink {
			continue
		}
		if err := os.Chmod(filepath.Join(dir, p), m[p].Mode.Perm()); err != nil {
			return err
		}
	}
	return nil
}

// Key is the same for images that are the same.
func (m Image) Key() string {
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%q %v %q\n", p, m[p].Mode, m[p].Data)
	}
	return b.String()
}
