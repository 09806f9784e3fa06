package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// snapshot is what lies in a folder, read by plain system calls and nothing of ours.
type snapshot map[string]thing

// thing is a file, a link or a folder.
type thing struct {
	mode    fs.FileMode // kind and permission bits
	content []byte      // of a file; of a link its target
}

func snap(dir string) (snapshot, error) {
	all := snapshot{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		t := thing{mode: info.Mode()}
		switch {
		case info.Mode().IsRegular():
			t.content, err = os.ReadFile(name)
		case info.Mode()&fs.ModeSymlink != 0:
			var target string
			target, err = os.Readlink(name)
			t.content = []byte(target)
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		all[filepath.ToSlash(rel)] = t
		return err
	})
	return all, err
}

// count is the number of files and links.
func (s snapshot) count() int {
	n := 0
	for _, t := range s {
		if !t.mode.IsDir() {
			n++
		}
	}
	return n
}

// differs says how s is not as it must be; "" when it is, to the last byte.
func (s snapshot) differs(want snapshot) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		is, there := s[name]
		must := want[name]
		switch {
		case !there:
			return name + " is missing"
		case is.mode != must.mode:
			return fmt.Sprintf("%s is %v and must be %v", name, is.mode, must.mode)
		case !bytes.Equal(is.content, must.content):
			return fmt.Sprintf("%s has other bytes: %d, and must have %d", name, len(is.content), len(must.content))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if _, there := want[name]; !there {
			return name + " must not be there"
		}
	}
	return ""
}

// changed are the names of what is not the same in two snapshots.
func (s snapshot) changed(other snapshot) []string {
	names := map[string]bool{}
	for name, t := range s {
		if o, there := other[name]; !there || o.mode != t.mode || !bytes.Equal(o.content, t.content) {
			names[name] = true
		}
	}
	for name := range other {
		if _, there := s[name]; !there {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func differsAt(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("message %d is %.60q and must be %.60q", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("there are %d messages and must be %d", len(got), len(want))
	}
	return ""
}
