package export

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reasonix/store"
)

// claudeLine is a conversation of a transcript, from its beginning to one of its ends.
type claudeLine struct {
	tree   *claudeTree
	id     string
	nodes  []int // in the order of the file
	from   int   // of nodes, those that another line has too
	parent string
	paths  map[string]store.Path // by the names that the files have; "" is none
	last   map[store.Path]int    // the last turn that has a snapshot of a path
}

// ImportClaude reads a transcript of Claude Code with its file history: first the line that was live
// last, then, as forks, the others that a person's prompt began. Like Import it writes nothing but the
// store, and warns. What that program's history lacks stays unknown: what commands and subagents
// changed, and what the last edits of a file made of it. Each session is imported whole or not at all.
// Errors: ErrNoSource and those of the file
// system and the store.
func ImportClaude(ctx context.Context, s *store.Store, disk Disk, path string, o ImportOptions) ([]Imported, error) {
	all, err := importClaude(ctx, s, disk, path, o)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", path, err)
	}
	return all, nil
}

func importClaude(ctx context.Context, s *store.Store, disk Disk, path string, o ImportOptions) (all []Imported, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(path, ".jsonl") || !regular(path) {
		return nil, fmt.Errorf("%s is no transcript (.jsonl): %w", path, ErrNoSource)
	}
	id := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	if o.History == "" {
		o.History = filepath.Join(filepath.Dir(path), "..", "..", "file-history", id)
	}
	reader := newImporter(s, disk, o, ClaudeSource)
	tree, err := reader.readClaude(path)
	if tree != nil {
		defer func() { err = errors.Join(err, tree.pool.close()) }()
	}
	if err != nil {
		return nil, err
	}
	found := tree.lines(id)
	if len(found) == 0 {
		return nil, fmt.Errorf("%s holds no conversation: %w", path, ErrNoSource)
	}
	if len(found) > maxBranches {
		reader.warn(Warning{Code: WarnLimit, File: filepath.Base(path), Turn: -1, Detail: fmt.Sprintf("it has more than %d branches", maxBranches)})
		found = found[:maxBranches]
	}
	for n, line := range found {
		i := newImporter(s, disk, o, ClaudeSource)
		if n == 0 {
			i.result.Warnings = reader.result.Warnings
			i.checkRoot(tree.cwd, path)
		}
		err := i.claudeRun(ctx, line, path)
		if cerr := i.close(); err == nil {
			err = cerr
		}
		if err != nil {
			return all, err
		}
		all = append(all, i.result)
	}
	return all, nil
}

func (i *importer) checkRoot(cwd, path string) {
	if rel, err := filepath.Rel(i.o.FromRoot, cwd); cwd != "" && (err != nil || rel == ".." || strings.HasPrefix(rel, "../")) {
		i.warn(Warning{
			Code: WarnRoot, File: filepath.Base(path), Turn: -1, Path: cwd,
			Detail: "the session is about another folder; if its paths lie there: --from-root " + cwd,
		})
	}
}

func (i *importer) claudeRun(ctx context.Context, line *claudeLine, path string) (err error) {
	i.claude = line
	i.from = source{id: line.id, stem: strings.TrimSuffix(path, ".jsonl"), jsonl: path}
	if info, err := os.Stat(i.o.History); err == nil && info.IsDir() {
		if i.ckpt, err = openFolder(i.o.History); err != nil {
			return err
		}
	}
	if i.talk, err = newTranscript(); err != nil {
		return err
	}
	turns, messages := 0, int64(0) // that the parent has too
	for n, k := range line.nodes {
		e := &line.tree.entries[k]
		if e.prompt {
			i.turns = append(i.turns, turnPlan{number: len(i.turns), file: filepath.Base(path), time: e.time, prompt: e.text, from: i.talk.len(), node: n})
		}
		if e.message >= 0 {
			raw, err := line.tree.pool.at(e.message)
			if err == nil {
				err = i.talk.add(raw)
			}
			if err != nil {
				return err
			}
		}
		if n < line.from {
			turns, messages = len(i.turns), int64(i.talk.len())
		}
	}
	i.meta = branch{ParentID: line.parent, ForkTurn: turns, ForkMessageIndex: &messages}
	if len(i.turns) > maxTurns {
		i.turns = i.turns[:maxTurns]
		i.warn(Warning{Code: WarnLimit, Turn: -1, Detail: "there are more turns"})
	}
	return i.run(ctx)
}

// lines are the live line and those that leave it, or one another, with a prompt.
func (c *claudeTree) lines(id string) (all []*claudeLine) {
	owner := map[int]*claudeLine{}
	for k := len(c.entries) - 1; k >= 0; k-- { // the last end is the live one
		if c.entries[k].children > 0 {
			continue
		}
		if line := c.line(k, id, owner); line != nil {
			all = append(all, line)
		}
	}
	return all
}

// line is the one that ends at k; nil if no prompt and nobody's line is in it.
func (c *claudeTree) line(k int, id string, owner map[int]*claudeLine) *claudeLine {
	l := &claudeLine{tree: c, id: id}
	first, fork := -1, -1 // the first own prompt, and where the line is another's
	said := false
	for ; k >= 0; k = c.entries[k].up {
		if fork < 0 && owner[k] != nil {
			fork = k
		}
		if fork < 0 {
			said = said || c.entries[k].message >= 0
			if c.entries[k].prompt {
				first = k
			}
		}
		l.nodes = append(l.nodes, k)
	}
	if !said || first < 0 && len(owner) > 0 {
		return nil
	}
	slices.Reverse(l.nodes)
	if len(owner) > 0 {
		l.id = id + "@" + c.entries[first].id
	}
	if fork >= 0 {
		l.parent = owner[fork].id
		l.from = slices.Index(l.nodes, fork) + 1
	}
	own := l.nodes[l.from:]
	for _, n := range own {
		owner[n] = l
	}
	l.withResults()
	return l
}

// withResults adds the results of calls that were made at once: each hangs below its own call, and only
// one of them has what follows below it.
func (l *claudeLine) withResults() {
	c := l.tree
	on := map[int]bool{}
	for _, n := range l.nodes {
		on[n] = true
	}
	shared := l.nodes[:l.from]
	last := -1
	if len(shared) > 0 {
		last = shared[len(shared)-1]
	}
	for k, e := range c.entries {
		if e.result && e.children == 0 && !on[k] && on[e.up] {
			l.nodes = append(l.nodes, k)
		}
	}
	slices.Sort(l.nodes)
	for l.from = 0; l.from < len(l.nodes) && l.nodes[l.from] <= last; l.from++ {
	}
}
