package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// turnIn is a turn's file, of any version, as it is read: every number may be missing or absurd.
type turnIn struct {
	SchemaVersion int      `json:"schemaVersion"`
	Turn          *int64   `json:"turn"`
	Time          string   `json:"time"`
	Prompt        string   `json:"prompt"`
	MsgIndex      *int64   `json:"msgIndex"`
	Files         []snapIn `json:"files"`
	Gaps          []gap    `json:"coverageGaps"`
	Expired       bool     `json:"expiredFilePayload"`
}

// snapIn is what a turn's file says of a path.
type snapIn struct {
	Path           string  `json:"path"`
	Content        *string `json:"content"`
	Encoding       *int    `json:"encoding"`
	Mode           *int64  `json:"mode"`
	SHA256         string  `json:"sha256"`
	BlobRef        string  `json:"blobRef"`
	AfterSHA256    string  `json:"afterSha256"`
	AfterExisted   *bool   `json:"afterExisted"`
	AfterMode      *int64  `json:"afterMode"`
	PayloadExpired bool    `json:"payloadExpired"`
}

// existed reports whether the path was there: the format has no field of its own for that.
func (s snapIn) existed() bool { return s.Content != nil || s.BlobRef != "" || s.SHA256 != "" }

// turnPlan is a turn that will be made.
type turnPlan struct {
	number   int
	file     string // in the folder; "" when no file is about the turn
	dir      string // of the payloads, of version 3
	time     time.Time
	prompt   string
	from     int // its first message
	gaps     []gap
	expired  bool
	priority int
	node     int // of a line of Claude Code
}

// The kinds of files about a turn, as the other program ranks them where their times are equal.
const (
	inExpired = 1
	inRoot    = 2
	inTurns   = 3
)

var turnName = regexp.MustCompile(`^turn-([0-9]{1,9})\.json$`)

// plan works out the turns.
func (i *importer) plan() error {
	found := map[int]turnPlan{}
	if i.ckpt != nil {
		if err := i.planFolder(found); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		return i.planMessages()
	}
	last := 0
	for n := range found {
		last = max(last, n)
	}
	for n := range last + 1 { // turns that were pruned keep their numbers
		t, ok := found[n]
		if !ok {
			t = turnPlan{number: n, from: -1, gaps: []gap{{Reason: "expired_file_payload", Detail: "the turn was pruned"}}}
		}
		i.turns = append(i.turns, t)
	}
	i.boundaries()
	return nil
}

// planFolder reads every file about a turn once, for what is small in it.
func (i *importer) planFolder(found map[int]turnPlan) error {
	names, err := i.ckpt.names(".")
	if err != nil {
		return err
	}
	slices.Sort(names)
	markers := map[int]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, ".json") {
			if t, ok := i.planFile(name, "", inRoot); ok {
				markers[t.number] = true
				i.better(found, t)
			}
		}
	}
	for _, name := range i.list("expired") {
		if turnName.MatchString(name) {
			if t, ok := i.planFile(path.Join("expired", name), "", inExpired); ok {
				i.better(found, t)
			}
		}
	}
	for _, name := range i.list("turns") {
		n, err := strconv.Atoi(name)
		if err != nil || !markers[n] {
			continue // without its marker it was truncated away
		}
		dir := path.Join("turns", name)
		if t, ok := i.planFile(path.Join(dir, "meta.json"), dir, inTurns); ok && t.number == n {
			i.better(found, t)
		}
	}
	return nil
}

// list names what lies in a folder of the checkpoints. One that cannot be listed is a warning: the
// others are read.
func (i *importer) list(dir string) []string {
	names, err := i.ckpt.names(dir)
	if err != nil {
		i.warn(Warning{Code: WarnCorrupt, File: dir, Turn: -1, Detail: err.Error()})
	}
	return names
}

// better keeps the newer of two files about a turn.
func (i *importer) better(found map[int]turnPlan, t turnPlan) {
	was, ok := found[t.number]
	if !ok {
		found[t.number] = t
		return
	}
	if was.priority == t.priority {
		i.warn(Warning{Code: WarnDuplicate, File: t.file, Turn: t.number, Detail: "another file, " + was.file + ", is about that turn and was used"})
		return
	}
	if c := t.time.Compare(was.time); c > 0 || c == 0 && t.priority > was.priority {
		found[t.number] = t
	}
}

func (i *importer) planFile(name, dir string, priority int) (t turnPlan, ok bool) {
	in, err := i.readTurn(name)
	if err != nil {
		i.warn(Warning{Code: WarnCorrupt, File: name, Turn: -1, Detail: err.Error()})
		return t, false
	}
	switch {
	case in.Turn == nil, *in.Turn < 0, *in.Turn >= maxTurns:
		i.warn(Warning{Code: WarnRange, File: name, Turn: -1, Detail: "its turn is no number from 0 to " + strconv.Itoa(maxTurns-1)})
		return t, false
	case in.SchemaVersion > 3:
		i.warn(Warning{Code: WarnRange, File: name, Turn: int(*in.Turn), Detail: fmt.Sprintf("its version is %d, up to 3 is known", in.SchemaVersion)})
		return t, false
	case priority == inRoot && !turnName.MatchString(name) && in.SchemaVersion != 0:
		return t, false // only the first version takes any name
	}
	t = turnPlan{
		number: int(*in.Turn), file: name, dir: dir, time: parseTime(in.Time), prompt: in.Prompt, from: -1,
		gaps: in.Gaps, expired: in.Expired, priority: priority,
	}
	if in.MsgIndex != nil {
		t.from = int(min(max(*in.MsgIndex, -1), maxMessages))
		if *in.MsgIndex < 0 || *in.MsgIndex > int64(i.talk.len()) && i.from.jsonl != "" {
			i.warn(Warning{Code: WarnRange, File: name, Turn: t.number, Detail: fmt.Sprintf("its first message is %d of %d", *in.MsgIndex, i.talk.len())})
		}
	}
	return t, true
}

func (i *importer) readTurn(name string) (in turnIn, err error) {
	b, err := i.ckpt.text(name, maxTurnFile)
	if err != nil {
		return in, err
	}
	return in, json.Unmarshal(b, &in)
}

// boundaries brings the first messages of the turns into order: each from 0 to the number of messages,
// none before the one of an earlier turn. One that is not known is that of the next turn.
func (i *importer) boundaries() {
	next := i.talk.len()
	for k := len(i.turns) - 1; k >= 0; k-- {
		t := &i.turns[k]
		if t.from < 0 || t.from > next {
			t.from = next
		}
		next = t.from
	}
}

// planMessages makes a turn of each message of a person: there are no files about turns.
func (i *importer) planMessages() error {
	for n, user := range i.talk.user {
		if !user {
			continue
		}
		raw, err := i.talk.at(n)
		if err != nil {
			return err
		}
		var m struct {
			Content    json.RawMessage `json:"content"`
			RawContent string          `json:"raw_content"`
			CreatedAt  int64           `json:"createdAt"`
		}
		t := turnPlan{number: len(i.turns), from: n}
		if json.Unmarshal(raw, &m) == nil {
			if t.prompt = m.RawContent; t.prompt == "" {
				t.prompt = text(m.Content)
			}
			if m.CreatedAt > 0 && m.CreatedAt < 1<<42 {
				t.time = time.UnixMilli(m.CreatedAt)
			}
		}
		if len(i.turns) == maxTurns {
			i.warn(Warning{Code: WarnLimit, Turn: -1, Detail: "there are more turns"})
			break
		}
		i.turns = append(i.turns, t)
	}
	slices.SortStableFunc(i.turns, func(a, b turnPlan) int { return cmp.Compare(a.number, b.number) })
	return nil
}
