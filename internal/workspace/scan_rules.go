package workspace

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"reasonix/blob"
	"reasonix/internal/ignore"
	"reasonix/store"
)

// ruleFiles reads the rule files of the folder, as far as they are not as the base has them.
func (w *worker) ruleFiles(ctx context.Context, listing []named, listed bool) (*ruleFiles, error) {
	base := w.v.known().rules
	var files ruleFiles
	for i, name := range ruleNames {
		var old ruleFile
		if base != nil {
			old = base[i]
		}
		there := old != (ruleFile{})
		if listed {
			_, there = slices.BinarySearchFunc(listing, name, func(e named, name string) int {
				return strings.Compare(e.name, name)
			})
		}
		if !there {
			continue
		}
		f, err := w.ruleFile(ctx, name, old)
		if err != nil {
			return nil, err
		}
		files[i] = f
	}
	if files == (ruleFiles{}) {
		return nil, nil
	}
	return &files, nil
}

func (w *worker) ruleFile(ctx context.Context, name string, old ruleFile) (ruleFile, error) {
	sig, err := w.lstat(name)
	switch {
	case err == nil && old.sig.Same(sig) && !old.sig.Racy:
		return old, nil
	case err != nil && meansAbsent(err):
		return ruleFile{}, nil
	case err != nil && isSystem(err):
		return ruleFile{}, err
	}
	now := ruleFile{sig: sig, bad: true}
	now.sig.Racy = sig.racy(w.now)
	why := ""
	switch {
	case err != nil:
		now.sig, why = Sig{}, err.Error()
	case sig.Kind != store.File:
		why = "not a regular file"
	case sig.Size > ignore.MaxSize:
		why = "more than 1 MiB"
	default:
		return w.readRules(ctx, name, old, now)
	}
	w.badRules(name, old, now, why)
	return now, nil
}

func (w *worker) readRules(ctx context.Context, name string, old, now ruleFile) (ruleFile, error) {
	f, err := w.enter()
	if err != nil {
		return ruleFile{}, err
	}
	var text bytes.Buffer
	reading, err := f.read(ctx, name, func(r io.Reader) (*blob.Prepared, blob.Hash, error) {
		text.Reset()
		_, err := text.ReadFrom(r)
		return nil, blob.Hash{}, err
	})
	switch {
	case err != nil && isSystem(err):
		return ruleFile{}, err
	case err != nil:
		now.sig = Sig{}
		w.badRules(name, old, now, err.Error())
		return now, nil
	case reading.State.Kind == store.Absent:
		return ruleFile{}, nil
	case reading.State.Kind != store.File:
		now.sig = reading.Sig
		w.badRules(name, old, now, reading.Detail)
		return now, nil
	}
	return ruleFile{sig: reading.Sig, text: text.String()}, nil
}

func (w *worker) badRules(name string, old, now ruleFile, why string) {
	if !old.bad || !old.sig.Same(now.sig) {
		w.gap(join(w.v.path, name), store.GapIgnoreRules, why)
	}
}

// same reports whether f and g say the same.
func (f *ruleFiles) same(g *ruleFiles) bool {
	var x, y ruleFiles
	if f != nil {
		x = *f
	}
	if g != nil {
		y = *g
	}
	for i := range x {
		if x[i].text != y[i].text || x[i].bad != y[i].bad {
			return false
		}
	}
	return true
}

// marked returns the names of folders that a marker names, sorted.
func (w *worker) marked(listing []named, listed bool) []string {
	var all []string
	if !listed {
		base := w.v.known()
		for i := range base.entries {
			e := &base.entries[i]
			if e.node == nil {
				continue
			}
			if m, ok := ignore.MarkerOf(e.name); ok && m.Inside != "" && w.holds(e.name, m.Inside) {
				all = append(all, e.name)
			}
		}
		for _, name := range base.marked {
			m, ok := ignore.MarkerOf(name)
			if ok && (m.Inside == "" || w.holds(name, m.Inside)) {
				all = append(all, name)
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	for _, e := range listing {
		m, ok := ignore.MarkerOf(e.name)
		if !ok || !e.dir {
			continue
		}
		_, beside := slices.BinarySearchFunc(listing, m.Beside, func(e named, name string) int {
			return strings.Compare(e.name, name)
		})
		if m.Beside != "" && beside || m.Inside != "" && w.holds(e.name, m.Inside) {
			all = append(all, e.name)
		}
	}
	return all
}

// holds reports whether the folder name holds the file inside.
func (w *worker) holds(name, inside string) bool {
	c := w.s.r.cursor()
	defer c.close()
	f, err := c.enter(join(w.v.path, name))
	if err != nil {
		return false
	}
	_, err = f.lstat(inside)
	return err == nil
}
