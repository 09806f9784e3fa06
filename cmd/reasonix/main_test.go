package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is the program itself when it is called reasonix: the scripts, and the tests
// that need separate processes, run the real main.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"reasonix": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("W", filepath.Join(e.WorkDir, "w"))
			e.Cd = filepath.Join(e.WorkDir, "w")
			return errors.Join(os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o700), os.MkdirAll(e.Cd, 0o755))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": scriptCode, "event": scriptEvent, "turn": scriptTurn,
			"manifest": scriptManifest, "json": scriptJSON, "mode": scriptMode, "let": scriptLet, "damage": scriptDamage, "break": scriptBreak,
		},
	})
}

// code N COMMAND… runs a command that must exit with N.
func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// event KIND [key=value…] sends an event in a process of its own, and fails with it. Values of
// paths are separated by commas; messages and input are JSON.
func scriptEvent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: event kind key=value...")
	}
	e := map[string]any{"v": 1, "event": args[0], "source": "script", "session": "s1"}
	for _, arg := range args[1:] {
		k, v, _ := strings.Cut(arg, "=")
		switch k {
		case "paths":
			e[k] = strings.Split(v, ",")
		case "messages", "input", "pre", "from_idx", "to_idx", "roots":
			e[k] = json.RawMessage(v)
		default:
			e[k] = v
		}
	}
	send(ts, e)
}

func send(ts *testscript.TestScript, e map[string]any) {
	b, err := json.Marshal(e)
	ts.Check(err)
	file := ts.MkAbs(filepath.Join(ts.Getenv("WORK"), "event.json"))
	ts.Check(os.WriteFile(file, b, 0o600))
	cmd := exec.Command("reasonix", "hook", "--strict")
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "XDG_STATE_HOME=" + ts.Getenv("XDG_STATE_HOME")}
	in, err := os.Open(file)
	ts.Check(err)
	defer in.Close()
	cmd.Stdin = in
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		ts.Fatalf("event %s: %v\n%s", b, err, out)
	}
}

// turn PROMPT [path=content…] plays a whole turn: prompt, one edit of all paths (an empty
// content deletes), end.
func scriptTurn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: turn prompt path=content...")
	}
	base := func(kind string) map[string]any {
		return map[string]any{"v": 1, "event": kind, "source": "script", "session": "s1", "call": "c"}
	}
	begin := base("begin-turn")
	begin["prompt"] = args[0]
	begin["messages"] = []any{map[string]string{"role": "user", "content": args[0]}}
	send(ts, begin)
	var paths []string
	for _, arg := range args[1:] {
		p, _, _ := strings.Cut(arg, "=")
		paths = append(paths, p)
	}
	if len(paths) > 0 {
		before := base("before-edit")
		before["paths"], before["tool"] = paths, "write"
		send(ts, before)
		for _, arg := range args[1:] {
			p, content, _ := strings.Cut(arg, "=")
			file := ts.MkAbs(p)
			if content == "" {
				ts.Check(os.Remove(file))
				continue
			}
			ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
			ts.Check(os.WriteFile(file, []byte(content+"\n"), 0o644))
		}
		send(ts, base("after-edit"))
	}
	end := base("end-turn")
	end["messages"] = []any{map[string]string{"role": "assistant", "content": "did " + args[0]}}
	send(ts, end)
}

// manifest FILE writes down what the current folder holds.
func scriptManifest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: manifest file")
	}
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), args[0]), []byte(manifest(ts.MkAbs("."))), 0o600))
}

// manifest is kind, mode and content of everything below a folder.
func manifest(dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			fmt.Fprintf(&b, "link %q %q\n", rel, target)
			return err
		case fi.IsDir():
			fmt.Fprintf(&b, "dir %04o %q\n", fi.Mode().Perm(), rel)
		default:
			content, err := os.ReadFile(name)
			fmt.Fprintf(&b, "file %04o %q %x\n", fi.Mode().Perm(), rel, sha256.Sum256(content))
			return err
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return b.String()
}

// json PATH [VALUE] looks into the last standard output, one JSON object: PATH is dotted (of a
// list an index, or ?field for the element where that is true), and the value as JSON must be
// VALUE. ! json PATH means that there is none.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	v, found := lookUp(ts, args[0])
	if found == neg {
		ts.Fatalf("json %s: found %v", args[0], found)
	}
	if neg || len(args) == 1 {
		return
	}
	got, err := json.Marshal(v)
	ts.Check(err)
	if string(got) != args[1] {
		ts.Fatalf("json %s: %s, want %s", args[0], got, args[1])
	}
}

// let NAME PATH puts a string of the last standard output into an environment variable.
func scriptLet(ts *testscript.TestScript, neg bool, args []string) {
	v, _ := lookUp(ts, args[1])
	text, ok := v.(string)
	if !ok || neg {
		ts.Fatalf("let %s: there is no string at %s", args[0], args[1])
	}
	ts.Setenv(args[0], text)
}

func lookUp(ts *testscript.TestScript, path string) (v any, found bool) {
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &v); err != nil {
		ts.Fatalf("stdout is not one JSON value: %v\n%s", err, ts.ReadFile("stdout"))
	}
	for key := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v, found = at[key]
		case []any:
			if field, ok := strings.CutPrefix(key, "?"); ok {
				v, found = where(at, field)
				break
			}
			i, err := strconv.Atoi(key)
			if found = err == nil && i < len(at); found {
				v = at[i]
			}
		default:
			found = false
		}
		if !found {
			return nil, false
		}
	}
	return v, found
}

// where is the element of a list whose field is true.
func where(list []any, field string) (any, bool) {
	for _, v := range list {
		if object, ok := v.(map[string]any); ok && object[field] == true {
			return v, true
		}
	}
	return nil, false
}

// mode FILE OCTAL checks permission bits.
func scriptMode(ts *testscript.TestScript, neg bool, args []string) {
	fi, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", fi.Mode().Perm()); (got == args[1]) == neg {
		ts.Fatalf("%s has mode %s, not %s", args[0], got, args[1])
	}
}

// break STORE OFFSET BYTES overwrites a part of a file, BYTES being hexadecimal.
func scriptBreak(ts *testscript.TestScript, neg bool, args []string) {
	off, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	var b []byte
	_, err = fmt.Sscanf(args[2], "%x", &b)
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteAt(b, off)
	ts.Check(errors.Join(err, f.Close()))
}

// damage STORE TEXT flips a bit of each place where a file holds TEXT.
func scriptDamage(ts *testscript.TestScript, neg bool, args []string) {
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	n := bytes.Count(b, []byte(args[1]))
	if n == 0 || neg {
		ts.Fatalf("%s does not hold %q", name, args[1])
	}
	bad := []byte(args[1])
	bad[0] ^= 1
	ts.Check(os.WriteFile(name, bytes.ReplaceAll(b, []byte(args[1]), bad), 0o600))
}
