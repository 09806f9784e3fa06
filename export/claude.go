package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ClaudeSource names, in the store, sessions that were read from transcripts of Claude Code; their own
// ids are the names of the transcripts, and for a branch also the entry that it begins with.
const ClaudeSource = "claude-transcript"

const (
	maxEntries  = 1_000_000 // lines of a transcript that take part in its tree
	maxBackups  = 1_000_000 // files named by all snapshots together
	maxBranches = 200
)

// entryIn is a line of a transcript. The form is that program's own and changes: what is missing or
// unknown is passed over.
type entryIn struct {
	Type         string          `json:"type"`
	UUID         string          `json:"uuid"`
	Parent       string          `json:"parentUuid"`
	LogicalUp    string          `json:"logicalParentUuid"` // of the mark of a compaction, which has no parent
	Timestamp    string          `json:"timestamp"`
	CWD          string          `json:"cwd"`
	Sidechain    bool            `json:"isSidechain"`
	Meta         bool            `json:"isMeta"`
	Summary      bool            `json:"isCompactSummary"`
	Message      json.RawMessage `json:"message"`
	MessageID    string          `json:"messageId"` // of file-history lines
	Snapshot     snapshotIn      `json:"snapshot"`
	TrackingPath string          `json:"trackingPath"`
	Backup       *backupIn       `json:"backup"`
}

type snapshotIn struct {
	MessageID string               `json:"messageId"`
	Backups   map[string]*backupIn `json:"trackedFileBackups"`
}

// backupIn says where the content of a file lies; without a name the file was not there.
type backupIn struct {
	Name *string `json:"backupFileName"`
}

// entry is a node of the transcript's tree.
type entry struct {
	id       string
	up       int // -1 at the top
	time     time.Time
	message  int // in the pool; -1 when it has none
	prompt   bool
	text     string // of a prompt
	result   bool   // of a tool
	children int
	tools    []toolUse
}

// toolUse is a call that may have changed files.
type toolUse struct {
	path    string  // "" of a command
	content *string // the whole file, where the call has it
}

// claudeTree is a transcript that was read.
type claudeTree struct {
	pool    *transcript
	entries []entry
	byID    map[string]int
	files   map[string]map[string]*backupIn // by the prompt's id, then by path
	backups int
	cwd     string // of the first entry
}

// readClaude reads a transcript. The caller closes the pool.
func (i *importer) readClaude(path string) (*claudeTree, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pool, err := newTranscript()
	if err != nil {
		return nil, err
	}
	c := &claudeTree{pool: pool, byID: map[string]int{}, files: map[string]map[string]*backupIn{}}
	name, n := filepath.Base(path), 0
	for line, err := range lines(f) {
		if err != nil && !errors.Is(err, errLong) {
			return c, err
		}
		n++
		var e entryIn
		if line = bytes.TrimSpace(line); err == nil && len(line) == 0 {
			continue
		}
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			i.warn(Warning{Code: WarnCorrupt, File: name, Turn: -1, Detail: fmt.Sprintf("line %d: %v", n, err)})
			continue
		}
		if what, err := c.take(e); err != nil {
			return c, err
		} else if what != "" {
			i.warn(Warning{Code: WarnLimit, File: name, Turn: -1, Detail: fmt.Sprintf("from line %d on: %s", n, what)})
			break
		}
	}
	return c, nil
}

// take adds a line; what says which limit it is over.
func (c *claudeTree) take(e entryIn) (what string, err error) {
	switch e.Type {
	case "file-history-snapshot":
		id := e.Snapshot.MessageID
		if id == "" {
			id = e.MessageID
		}
		for p, b := range e.Snapshot.Backups {
			c.backup(id, p, b)
		}
	case "file-history-delta":
		c.backup(e.MessageID, e.TrackingPath, e.Backup)
	default:
		err = c.node(e)
	}
	switch {
	case len(c.entries) > maxEntries:
		what = fmt.Sprintf("more than %d entries", maxEntries)
	case c.backups > maxBackups:
		what = fmt.Sprintf("snapshots of more than %d files", maxBackups)
	}
	return what, err
}

// backup notes what a file was when a prompt was typed: the first word about it counts, later ones are
// about the turn that followed.
func (c *claudeTree) backup(id, path string, b *backupIn) {
	if id == "" || path == "" || b == nil {
		return
	}
	all := c.files[id]
	if all == nil {
		all = map[string]*backupIn{}
		c.files[id] = all
	}
	if all[path] == nil {
		all[path] = b
		c.backups++
	}
}

func (c *claudeTree) node(e entryIn) error {
	if e.UUID == "" || e.Sidechain {
		return nil
	}
	if _, ok := c.byID[e.UUID]; ok {
		return nil // the same line again
	}
	if e.CWD != "" && c.cwd == "" {
		c.cwd = e.CWD
	}
	n := entry{id: e.UUID, up: -1, time: parseTime(e.Timestamp), message: -1}
	if e.Parent == "" {
		e.Parent = e.LogicalUp
	}
	if up, ok := c.byID[e.Parent]; ok { // always an earlier line: there is no circle
		n.up = up
		c.entries[up].children++
	}
	if (e.Type == "user" || e.Type == "assistant") && len(e.Message) > 0 {
		if err := c.pool.add(e.Message); err == nil {
			n.message = c.pool.len() - 1
			n.look(e)
		} else if !errors.Is(err, errNoMessage) {
			return err
		}
	}
	c.byID[e.UUID] = len(c.entries)
	c.entries = append(c.entries, n)
	return nil
}

// look finds out what a message is.
func (n *entry) look(e entryIn) {
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(e.Message, &m) != nil {
		return
	}
	var parts []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Name  string `json:"name"`
		Input struct {
			FilePath     string  `json:"file_path"`
			NotebookPath string  `json:"notebook_path"`
			Content      *string `json:"content"`
		} `json:"input"`
	}
	var typed []string
	if json.Unmarshal(m.Content, &parts) != nil {
		typed = append(typed, text(m.Content))
	}
	for _, p := range parts {
		switch p.Type {
		case "text":
			typed = append(typed, p.Text)
		case "tool_result":
			n.result = true
		case "tool_use":
			switch p.Name {
			case "Write":
				n.tools = append(n.tools, toolUse{path: p.Input.FilePath, content: p.Input.Content})
			case "Edit", "MultiEdit":
				n.tools = append(n.tools, toolUse{path: p.Input.FilePath})
			case "NotebookEdit":
				n.tools = append(n.tools, toolUse{path: p.Input.NotebookPath})
			case "Bash", "PowerShell":
				n.tools = append(n.tools, toolUse{})
			}
		}
	}
	n.text = strings.Join(typed, "\n")
	n.prompt = e.Type == "user" && !n.result && !e.Meta && !e.Summary && !notTyped(n.text)
	if !n.prompt {
		n.text = ""
	}
}

// notTyped reports whether the program put a text into the conversation as a person's.
func notTyped(s string) bool {
	for _, p := range []string{"[Request interrupted by user", "<local-command-stdout>", "<local-command-stderr>"} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
