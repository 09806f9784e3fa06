package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reasonix/blob"
	"reasonix/store"
)

// What docs/json.md says of a command and what the program prints are the same: every member
// that is printed is named in the command's section, every member of an example is printed, and
// both are in the same order.
func TestJSONIsAsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := sectionsOf(string(doc))
	p := newPlay(t)
	p.tell()

	// Sections whose members hold for others too.
	as := map[string][]string{
		"show": {"log"}, "log": {"show"}, "history": {"show"}, "undo-rewind, redo-rewind": {"rewind"}, "switch": {"rewind"}, "fork": {"rewind"},
	}
	// What this play does not come to.
	rare := []string{"commit", "steps[].detail", "kept"}
	for name, printed := range p.printed {
		text := sections[name] + sections["Values"]
		for _, other := range as[name] {
			text += sections[other]
		}
		if sections[name] == "" {
			t.Errorf("%s is not documented", name)
			continue
		}
		known := namesIn(text)
		seen := map[string]bool{}
		for _, out := range printed {
			for _, at := range members(t, out) {
				seen[at] = true
				if word := at[strings.LastIndex(at, ".")+1:]; !known[strings.TrimSuffix(word, "[]")] {
					t.Errorf("%s prints %s, which is not documented: %.300s", name, at, out)
				}
			}
		}
		for _, example := range examples(sections[name]) {
			want := members(t, example)
			for _, at := range want {
				if !seen[at] && !slices.Contains(rare, at) && !strings.HasPrefix(at, "error") {
					t.Errorf("%s never printed %s, which is documented", name, at)
				}
			}
			if !slices.ContainsFunc(printed, func(out string) bool { return sameOrder(want, members(t, out)) }) {
				t.Errorf("%s prints members in another order than %.200s", name, example)
			}
		}
	}
	for name := range sections {
		if len(examples(sections[name])) > 0 && p.printed[name] == nil && !slices.Contains([]string{"Values", "Exit codes and errors", "messages", "sql"}, name) {
			t.Errorf("%s is documented and was not played", name)
		}
	}
}

// Every code of an error stands in the row of its exit code, and no other does.
func TestErrorCodesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| .* \|(.*)\|$`).FindAllStringSubmatch(string(doc), -1) {
		rows[m[1]] = m[2]
	}
	codes := map[string]int{
		"internal": exitFailure, "failure": exitFailure, "disk_full": exitFailure, "usage": exitUsage,
		"store_busy": exitBusy, "damaged_blob": exitDamage,
	}
	for _, m := range meanings {
		if m.err != errProblems { //nolint:errorlint // the very value
			codes[m.code] = m.exit
		}
	}
	for exit, row := range rows {
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row, -1) {
			if got, ok := codes[m[1]]; m[1] != "verify" && (!ok || exit != itoa(got)) {
				t.Errorf("%s is documented for exit code %s", m[1], exit)
			}
		}
	}
	for code, exit := range codes {
		if !strings.Contains(rows[itoa(exit)], "`"+code+"`") {
			t.Errorf("%s, exit code %d, is not documented", code, exit)
		}
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func sectionsOf(doc string) map[string]string {
	all := map[string]string{}
	for _, part := range strings.Split(doc, "\n## ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		all[name] = text
	}
	return all
}

func examples(section string) (all []string) {
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(section, -1) {
		all = append(all, m[1])
	}
	return all
}

// namesIn are the words of a section that may be names: keys of examples, and what is in code
// type.
func namesIn(section string) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile("\"([A-Za-z_0-9]+)\":|`([A-Za-z_0-9]+)`").FindAllStringSubmatch(section, -1) {
		all[m[1]+m[2]] = true
	}
	return all
}

// members are the places of all members of a JSON value, such as files[].before.kind, in the
// order in which they first come.
func members(t *testing.T, text string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	var all []string
	var value func(at string)
	value = func(at string) {
		tok, err := d.Token()
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		switch tok {
		case json.Delim('{'):
			for d.More() {
				key, _ := d.Token()
				name := strings.TrimPrefix(at+"."+key.(string), ".")
				if !slices.Contains(all, name) {
					all = append(all, name)
				}
				value(name)
			}
			_, _ = d.Token()
		case json.Delim('['):
			for d.More() {
				value(at + "[]")
			}
			_, _ = d.Token()
		}
	}
	value("")
	return all
}

// sameOrder compares the order of those members that both have, one object at a time.
func sameOrder(a, b []string) bool {
	in := func(all []string, of []string) map[string][]string {
		byObject := map[string][]string{}
		for _, at := range all {
			if slices.Contains(of, at) {
				object := at[:strings.LastIndex(at, ".")+1]
				byObject[object] = append(byObject[object], at)
			}
		}
		return byObject
	}
	return maps.EqualFunc(in(a, b), in(b, a), slices.Equal)
}

// play runs commands in one workspace and keeps what they print.
type play struct {
	t       *testing.T
	dir     string
	env     map[string]string
	printed map[string][]string
}

func newPlay(t *testing.T) *play {
	home := t.TempDir()
	return &play{t: t, dir: filepath.Join(home, "w"), printed: map[string][]string{}, env: map[string]string{
		"HOME": home, "XDG_STATE_HOME": filepath.Join(home, "state"),
	}}
}

func (p *play) run(stdin string, args ...string) (string, int) {
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs, now: time.Now, env: func(k string) string { return p.env[k] }}
	code := a.run(append([]string{"-C", p.dir}, args...))
	if code == exitUsage {
		p.t.Fatalf("%q: %s%s", args, out.String(), errs.String())
	}
	return out.String(), code
}

// json runs a command for a section.
func (p *play) json(section string, args ...string) {
	p.t.Helper()
	out, code := p.run("", append([]string{"--json"}, args...)...)
	if code != exitOK && code != exitConflict || strings.Count(out, "\n") != 1 {
		p.t.Fatalf("%q: exit code %d, %s", args, code, out)
	}
	p.printed[section] = append(p.printed[section], out)
}

func (p *play) event(fields string) {
	p.t.Helper()
	out, code := p.run(`{"v":1,"source":"myagent","session":"s1",`+fields+`}`, "hook", "--reply", "json", "--strict")
	if code != exitOK {
		p.t.Fatalf("%s: %s", fields, out)
	}
}

func (p *play) write(name, text string) {
	p.t.Helper()
	name = filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *play) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// turn is one of the program's own agent, which prints lines.
func (p *play) turn() {
	p.t.Helper()
	script := filepath.Join(p.dir, "..", "script.jsonl")
	p.must(os.WriteFile(script, []byte(`{"reasoning":"hm","text":"so","tool_calls":[{"name":"write_file","arguments":{"path":"new","content":"x\n"}},{"name":"bash","arguments":{"command":"true"}}]}
{"text":"done"}`), 0o600))
	out, code := p.run("", "--json", "run", "make new", "--new", "--approve", "full", "--script", script)
	if code != exitOK {
		p.t.Fatalf("run: exit code %d, %s", code, out)
	}
	p.printed["run"] = strings.SplitAfter(strings.TrimSuffix(out, "\n"), "\n")
	p.json("switch", "switch", "s1")
}

// tell plays turns with everything in them that has a member of its own.
func (p *play) tell() {
	p.write("a", "one\ntwo")
	p.event(`"event":"begin-turn","prompt":"zero","messages":[{"role":"user","content":"x"}]`)
	p.event(`"event":"before-edit","call":"c","tool":"write","paths":["a","b","d"]`)
	p.write("a", "one\nthree")
	p.write("b", "bytes\x00\xff")
	p.must(os.Mkdir(filepath.Join(p.dir, "d"), 0o755))
	p.event(`"event":"after-edit","call":"c"`)
	p.event(`"event":"end-turn"`)
	p.write("a", "by hand\n")
	p.event(`"event":"begin-turn","prompt":"one"`)
	if err := exec.Command("mkfifo", filepath.Join(p.dir, "pipe")).Run(); err != nil {
		p.t.Skip("there are no named pipes here")
	}
	p.event(`"event":"before-edit","call":"c","tool":"write","paths":["a","b","c","pipe"]`)
	p.write("a", "four\n")
	p.must(os.Rename(filepath.Join(p.dir, "b"), filepath.Join(p.dir, "c")))
	p.must(os.Remove(filepath.Join(p.dir, "pipe")))
	p.write("pipe", "no more\n")
	p.event(`"event":"after-edit","call":"c"`)
	p.event(`"event":"end-turn"`)
	p.json("rewind", "rewind", "0", "--dry-run")
	p.write("a", "by hand again\n")

	p.json("log", "log", "--limit", "1", "--stat")
	p.json("log", "log")
	p.json("show", "show", "0")
	p.json("show", "show", "1")
	p.json("history", "history", "a")
	p.json("diff", "diff", "0")
	p.json("diff", "diff", "0", "2", "--stat")
	p.json("diff", "diff", "0", "2")
	p.json("cat", "cat", "1:a")
	p.json("cat", "cat", "1:b")
	p.json("rewind", "rewind", "1", "--dry-run")
	p.json("rewind", "rewind", "0", "--force")
	p.json("undo-rewind, redo-rewind", "undo-rewind")
	p.json("undo-rewind, redo-rewind", "redo-rewind")
	p.json("undo-rewind, redo-rewind", "undo-rewind")
	p.event(`"event":"begin-turn","prompt":"two","messages":[{"role":"user","content":"by hand again"}]`)
	p.event(`"event":"before-edit","call":"c","tool":"write","paths":["a"]`)
	p.must(os.Remove(filepath.Join(p.dir, "a")))
	p.must(os.Mkdir(filepath.Join(p.dir, "a"), 0o755))
	p.event(`"event":"after-edit","call":"c"`)
	p.event(`"event":"end-turn"`)
	p.write("a/in the way", "")
	p.write("a/name \xff", "")
	p.json("rewind", "rewind", "2")
	p.must(os.RemoveAll(filepath.Join(p.dir, "a", "in the way")))
	p.must(os.RemoveAll(filepath.Join(p.dir, "a", "name \xff")))
	p.json("fork", "fork", "1", "--dry-run")
	p.json("fork", "fork", "1", "--name", "f")
	p.json("sessions", "sessions")
	p.json("sessions", "sessions", "rename", "f", "g")
	p.json("tree", "tree")
	p.json("switch", "switch", "-")
	p.json("switch", "switch", "s1")
	p.json("ops", "ops")
	p.json("sessions", "sessions", "delete", "g")
	p.json("sessions", "undo-rewind")
	p.json("pin", "pin", "1", "kept")
	p.json("gc", "gc", "--dry-run", "--keep-turns", "1")
	p.json("pin", "unpin", "kept")
	p.json("gc", "gc", "--purge", "a", "--messages")
	p.must(os.Truncate(filepath.Join(p.dir, "c"), 65<<20))
	p.write(".gitignore", "*.log\n")
	p.json("scan", "scan")
	p.json("doctor", "doctor")
	p.json("verify", "verify")
	one, err := encode(newProblemJSON(store.Problem{Code: store.ProblemBlob, Detail: "x", Path: "a", Blob: blob.Sum(nil), Turn: 1}))
	p.must(err)
	p.printed["verify"] = append(p.printed["verify"], `{"problems":[`+string(one)+`]}`)
	p.json("stats", "stats")
	p.json("bench", "bench", "--quick", "--only", "turn-1")
	backup := filepath.Join(p.dir, "..", "backup.db")
	p.json("backup", "backup", backup)
	p.json("restore-backup", "restore-backup", backup)
	p.turn()
	p.json("store", "store")
	p.json("store", "store", "--list")
	p.json("export-ckpt", "export-ckpt", "--out", filepath.Join(p.dir, "..", "out"))
	p.json("export-ckpt", "export-ckpt", "--all", "--out", filepath.Join(p.dir, "..", "all"))
	turn := filepath.Join(p.dir, "..", "s9.ckpt", "turn-0.json")
	p.must(os.MkdirAll(filepath.Dir(turn), 0o755))
	p.must(os.WriteFile(turn, []byte(`{"turn":0,"files":[{"path":"/etc/passwd","content":null}]}`), 0o600))
	p.json("import-ckpt", "import-ckpt", filepath.Dir(turn), "--from-root", p.dir)
	p.json("completion", "completion", "bash")
	p.json("version", "version")
	p.printed["serve"] = []string{`{"url":"","addr":"","token":""}`}  // TestServeToken looks at the real one
	p.printed["demo"] = []string{`{"steps":[{"name":"","ok":true}]}`} // its script looks at the real one
	moved := p.dir + "2"
	p.must(os.Rename(p.dir, moved))
	old := p.dir
	p.dir = moved
	p.json("store", "store", "--move", old, "--yes")
}
