package export

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"reasonix/store"
)

// Compiled when it is needed: it would cost every start of the program a quarter of a millisecond.
var backupName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Za-z]{1,128}@v[0-9]{1,9}$`) })

// readHistory takes over what the file history has about turn k: the files that it tracks as they were
// when the prompt was typed. Those that the turn's calls did not touch count as left alone; if the
// next snapshot has them otherwise, somebody else did that in between.
func (i *importer) readHistory(ctx context.Context, k int) error {
	t := &i.turns[k]
	names := i.claude.filesAt(t)
	touched, commands := i.touched(k)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, ok := i.claudePath(t, name)
		if !ok || slices.ContainsFunc(i.records[i.recordsOf(k):], func(r record) bool { return r.path == p }) {
			continue
		}
		before, err := i.backedUp(ctx, t, p, i.claude.backups(t)[name])
		if err != nil {
			return err
		}
		i.result.Files++
		r := record{turn: k, path: p, before: before, mode: 0o644}
		if before.Kind == store.File {
			r.mode = before.Mode
		}
		use, edited := touched[p]
		switch {
		case edited && use.content != nil && !i.tracked(k, p):
			r.sum, r.hasSum = sha256.Sum256([]byte(*use.content)), true // taken if it is what lies there
		case edited:
		case commands && i.tracked(k, p):
		default:
			r.after = before
		}
		i.records = append(i.records, r)
	}
	return nil
}

// recordsOf is where the records of turn k begin.
func (i *importer) recordsOf(k int) int {
	at := len(i.records)
	for at > 0 && i.records[at-1].turn == k {
		at--
	}
	return at
}

func (l *claudeLine) backups(t *turnPlan) map[string]*backupIn {
	return l.tree.files[l.tree.entries[l.nodes[t.node]].id]
}

// filesAt names the files of a turn's snapshot, in order.
func (l *claudeLine) filesAt(t *turnPlan) (names []string) {
	for name := range l.backups(t) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tracked reports whether a turn after k has a snapshot of a path.
func (i *importer) tracked(k int, p store.Path) bool {
	l := i.claude
	if l.last == nil {
		l.last = map[store.Path]int{}
		for n := range i.turns {
			for name := range l.backups(&i.turns[n]) {
				if q, ok := i.claudePath(&i.turns[n], name); ok {
					l.last[q] = n
				}
			}
		}
	}
	return l.last[p] > k
}

// touched are the last calls about each path from turn k up to the next turn that has a snapshot, and
// whether a command ran.
func (i *importer) touched(k int) (last map[store.Path]toolUse, commands bool) {
	last = map[store.Path]toolUse{}
	end := len(i.claude.nodes)
	for n := k + 1; n < len(i.turns); n++ {
		if len(i.claude.backups(&i.turns[n])) > 0 {
			end = i.turns[n].node
			break
		}
	}
	for _, n := range i.claude.nodes[i.turns[k].node:end] {
		for _, u := range i.claude.tree.entries[n].tools {
			if u.path == "" {
				commands = true
			} else if p, ok := i.claudePath(&i.turns[k], u.path); ok {
				last[p] = u
			}
		}
	}
	return last, commands
}

// claudePath is the path of the workspace that a name stands for, which is absolute or seen from the
// folder that the session ran in. It warns once of a name.
func (i *importer) claudePath(t *turnPlan, name string) (store.Path, bool) {
	if p, ok := i.claude.paths[name]; ok {
		return p, p != ""
	}
	full := name
	if !filepath.IsAbs(name) && !drive.MatchString(name) && i.claude.tree.cwd != "" && name != "" {
		full = i.claude.tree.cwd + "/" + name
	}
	p, ok := i.pathOf(t, full)
	if i.claude.paths == nil {
		i.claude.paths = map[string]store.Path{}
	}
	i.claude.paths[name] = p
	return p, ok
}

// backedUp is the state that a backup has.
func (i *importer) backedUp(ctx context.Context, t *turnPlan, p store.Path, b *backupIn) (store.State, error) {
	if b.Name == nil {
		return store.AbsentState, nil
	}
	lost := func(why string) (store.State, error) {
		i.warn(Warning{Code: WarnBlob, File: t.file, Turn: t.number, Path: string(p), Detail: why})
		return store.UncapturedState, nil
	}
	switch {
	case !backupName().MatchString(*b.Name):
		return lost("its backup has no name of the file history")
	case i.ckpt == nil:
		return lost("there is no file history at " + i.o.History)
	}
	c, why, err := i.raw(ctx, *b.Name, [sha256.Size]byte{}, false, i.last[p])
	if err != nil {
		return store.State{}, err
	}
	if why != "" {
		return lost(why)
	}
	i.last[p] = c.hash
	return store.State{Kind: store.File, Mode: i.backupMode(*b.Name), Blob: c.hash, Size: c.size}, nil
}

// backupMode keeps of a backup's permission bits only whether it can be run: the others may be those of
// the history's own files.
func (i *importer) backupMode(name string) uint32 {
	if info, err := i.ckpt.root.Stat(name); err == nil && info.Mode()&0o111 != 0 && info.Mode()&os.ModeType == 0 {
		return 0o755
	}
	return 0o644
}
