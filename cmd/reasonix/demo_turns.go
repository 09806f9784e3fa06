package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reasonix/agent"
	"reasonix/store"
)

// edit is one tool call of the scripted agent: the paths that it announces, and what it does. A
// command announces none.
type edit struct {
	tool  string
	paths []string
	do    func() error
}

// command stands for a shell command, which the agent cannot announce the paths of. It is done
// here, since there may be no shell.
func (d *demo) command(do func() error) edit { return edit{"bash", nil, do} }

// tidy is what such a command does: it rewrites, moves, makes and removes.
func (d *demo) tidy() error {
	for _, name := range []string{"run.sh", "helper/help.go"} {
		b, err := os.ReadFile(d.abs(name))
		if err == nil {
			err = os.WriteFile(d.abs(name), append(b, "# tidied\n"...), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(
		os.Rename(d.abs("helper/deep"), d.abs("deep")),
		os.Remove(d.abs("build")),
		os.MkdirAll(d.abs("out/new"), 0o750),
		os.WriteFile(d.abs("out/new/report.txt"), []byte("all tidy\n"), 0o640),
		os.Remove(d.abs("logo.bin")),
	)
}

func (d *demo) abs(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

func (d *demo) write(name, content string, mode fs.FileMode) edit {
	return edit{"write_file", []string{name}, func() error {
		if err := os.MkdirAll(filepath.Dir(d.abs(name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(d.abs(name), []byte(content), mode); err != nil {
			return err
		}
		return os.Chmod(d.abs(name), mode)
	}}
}

// replace edits a file in its place.
func (d *demo) replace(name, old, by string) edit {
	return edit{"edit_file", []string{name}, func() error {
		b, err := os.ReadFile(d.abs(name))
		if err != nil {
			return err
		}
		info, err := os.Stat(d.abs(name))
		if err != nil {
			return err
		}
		text := strings.Replace(string(b), old, by, 1)
		if text == string(b) {
			text += by + "\n"
		}
		return os.WriteFile(d.abs(name), []byte(text), info.Mode().Perm())
	}}
}

func (d *demo) remove(name string) edit {
	return edit{"delete_file", []string{name}, func() error { return os.Remove(d.abs(name)) }}
}

func (d *demo) rename(from, to string) edit {
	return edit{"move_file", []string{from, to}, func() error { return os.Rename(d.abs(from), d.abs(to)) }}
}

func (d *demo) chmod(name string, mode fs.FileMode) edit {
	return edit{"set_mode", []string{name}, func() error { return os.Chmod(d.abs(name), mode) }}
}

func (d *demo) link(name, target string) edit {
	return edit{"make_link", []string{name}, func() error { return os.Symlink(target, d.abs(name)) }}
}

func (d *demo) folder(name string) edit {
	return edit{"make_folder", []string{name}, func() error { return os.Mkdir(d.abs(name), 0o755) }}
}

// script is what the agent does, turn by turn, to files that are there.
func (d *demo) script(files []string) []struct {
	prompt string
	edits  []edit
} {
	noise := make([]byte, 40<<10)
	r := rand.New(rand.NewPCG(1, 2)) // the same bytes in every run
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	every := make([]edit, 0, len(files))
	for _, f := range files[4:min(len(files), 44)] {
		every = append(every, d.replace(f, "package ", "// Reviewed.\npackage "))
	}
	return []struct {
		prompt string
		edits  []edit
	}{
		{"Document the first files\nand keep it short.", []edit{
			d.replace(files[0], "package ", "// Documented.\npackage "),
			d.replace(files[1], "package ", "// Documented, too.\npackage "),
			d.replace(files[2], "\n", "\n\n"),
		}},
		{"Start a helper package", []edit{
			d.write("helper/helper.go", "package helper\n\n// Help helps.\nfunc Help() {}\n", 0o644),
			d.write("helper/deep/er/notes.txt", "no newline at the end", 0o600),
			d.write("helper/empty.txt", "", 0o644),
			d.folder("build"),
		}},
		{"Remove what is dead, rename the helper", []edit{
			d.remove(files[3]),
			d.rename("helper/helper.go", "helper/help.go"),
		}},
		{"Add a logo and a script", []edit{
			d.write("logo.bin", string(noise), 0o644),
			d.write("run.sh", "#!/bin/sh\nexec go run .\n", 0o644),
			d.chmod("run.sh", 0o755),
			d.link("latest", "helper/help.go"),
		}},
		{"Only a question: why?", nil},
		{"The notes shall be a link, the link a file", []edit{
			{"shell_like", []string{"helper/deep/er/notes.txt", "latest"}, func() error {
				if err := os.Remove(d.abs("helper/deep/er/notes.txt")); err != nil {
					return err
				}
				if err := os.Symlink("../../help.go", d.abs("helper/deep/er/notes.txt")); err != nil {
					return err
				}
				if err := os.Remove(d.abs("latest")); err != nil {
					return err
				}
				return os.WriteFile(d.abs("latest"), []byte("a file now\n"), 0o640)
			}},
			d.chmod("run.sh", 0o700),
		}},
		{"Tidy up with a command", []edit{d.command(d.tidy)}},
		{"Review forty files", every},
	}
}

// turns plays the script through the recorder.
func (d *demo) turns() error {
	d.chapter("An agent works on it")
	s, err := d.record.Session(d.ctx, "demo", "demo")
	if err != nil {
		return err
	}
	d.session = s.ID
	if err := d.say("system", "You are a coding agent."); err != nil {
		return err
	}
	before, err := snap(d.dir)
	if err != nil {
		return err
	}
	var files []string
	for name, t := range before {
		if t.mode.IsRegular() && strings.HasSuffix(name, ".go") {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	for n, t := range d.script(files) {
		m, err := d.now()
		if err != nil {
			return err
		}
		d.starts = append(d.starts, m)
		if err := d.turn(t.prompt, t.edits); err != nil {
			return fmt.Errorf("turn %d: %w", n, err)
		}
		if err := d.recorded(n, m.files, t.prompt); err != nil {
			return err
		}
	}
	return nil
}

// turn records one turn of the current session.
func (d *demo) turn(prompt string, edits []edit) error {
	user := message("user", prompt)
	if _, err := d.record.BeginTurn(d.ctx, d.session, "", prompt, []json.RawMessage{json.RawMessage(user)}); err != nil {
		return err
	}
	d.said = append(d.said, user)
	for i, e := range edits {
		if err := d.call(fmt.Sprintf("call-%d", i), e); err != nil {
			return err
		}
	}
	if err := d.say("assistant", fmt.Sprintf("Done, %d calls.", len(edits))); err != nil {
		return err
	}
	return d.record.EndTurn(d.ctx, d.session, store.TurnDone)
}

// call announces a tool call, makes it and reports it.
func (d *demo) call(id string, e edit) error {
	edit, exec := agent.Edit{Call: id, Tool: e.tool, Paths: e.paths}, agent.Exec{Call: id, Tool: e.tool}
	var err error
	if e.paths == nil {
		_, err = d.record.BeforeExec(d.ctx, d.session, exec)
	} else {
		_, err = d.record.BeforeEdit(d.ctx, d.session, edit)
	}
	if err != nil {
		return err
	}
	if err := e.do(); err != nil {
		return err
	}
	if e.paths == nil {
		_, err = d.record.AfterExec(d.ctx, d.session, exec)
	} else {
		_, err = d.record.AfterEdit(d.ctx, d.session, edit)
	}
	return err
}

func (d *demo) say(role, text string) error {
	m := message(role, text)
	d.said = append(d.said, m)
	return d.record.Append(d.ctx, d.session, []json.RawMessage{json.RawMessage(m)})
}

// message has blanks and an order of keys that nothing but keeping its bytes keeps.
func message(role, text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return `{}` // a string always marshals
	}
	return fmt.Sprintf(`{"role":%q,  "content" : %s}`, role, b)
}

// recorded checks that a turn was recorded with exactly the paths that it changed.
func (d *demo) recorded(n int, before snapshot, prompt string) error {
	t, err := d.view.Turn(d.ctx, d.session, n)
	if err != nil {
		return err
	}
	after, err := d.now()
	if err != nil {
		return err
	}
	var names []string
	for _, f := range t.Files {
		names = append(names, string(f.Pair.Path))
		if f.Pair.From != "" {
			names = append(names, string(f.Pair.From))
		}
	}
	slices.Sort(names)
	problem := differsAt(after.messages, d.said)
	if want := after.files.changed(before); problem == "" && !slices.Equal(names, want) {
		problem = fmt.Sprintf("it changed %v and recorded %v", want, names)
	}
	d.ok(fmt.Sprintf("turn %d recorded, %s: %s", n, count(len(names), "path"), firstLine(prompt, 50)), problem)
	return nil
}
