package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func processLines() []line {
	return []line{
		{
			name: "hook", what: "the whole process of `reasonix hook` about one edit in the tree", unit: "ms",
			targets: []Target{{Of: "value", AtMost: 10}, {Of: "p99", AtMost: 15}, {Of: "git", AtLeast: 2}}, measure: measureHook,
		},
		{
			name: "start", what: "start of the program: `reasonix version`", unit: "ms",
			targets: []Target{{Of: "value", AtMost: 4}}, measure: measureStart,
		},
	}
}

// program is the program in a workspace of its own, with a home that nobody else uses.
type program struct {
	r    *rig
	dir  string
	home string
}

// program prepares processes in dir.
func (r *rig) program(dir string) (*program, error) {
	if r.o.Program == "" {
		return nil, errMissing("the program's own file is not known")
	}
	home, err := r.folder("home")
	return &program{r, dir, home}, err
}

// command is one process that is not started yet.
func (p *program) command(stdin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.r.ctx, p.r.o.Program, args...)
	cmd.Dir, cmd.Stdin = p.dir, strings.NewReader(stdin)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "XDG_STATE_HOME=" + filepath.Join(p.home, "state"),
		"XDG_CONFIG_HOME=" + filepath.Join(p.home, "config"),
	}
	return cmd
}

// run runs a command to its end.
func (p *program) run(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args[1:], " "), err, strings.TrimSpace(out.String()))
	}
	return nil
}

// event is what an agent reports about paths.
func (p *program) event(kind string, paths ...string) string {
	b, _ := json.Marshal(map[string]any{ // strings always marshal
		"v": 1, "event": kind, "session": "bench", "cwd": p.dir, "tool": "edit_file", "call": "c", "paths": paths,
	})
	return string(b)
}

func (p *program) hook(kind string, paths ...string) error {
	return p.run(p.command(p.event(kind, paths...), "hook", "--strict"))
}

func measureHook(r *rig) (figures, error) {
	t, err := r.tree()
	if err != nil {
		return figures{}, err
	}
	p, err := r.program(t.dir)
	if err != nil {
		return figures{}, err
	}
	git, err := r.shadow(t.dir)
	if err != nil {
		return figures{}, err
	}
	const file = "edited-by-bench.go"
	if err := put(t.dir, file, code(random(), 10<<10)); err != nil {
		return figures{}, err
	}
	err = errors.Join(p.hook("begin-turn"), p.hook("before-edit", file))
	if git != nil {
		err = errors.Join(err, git.commit())
	}
	if err != nil {
		return figures{}, err
	}
	rnd, text := random(), code(random(), 10<<10)
	change := func() error {
		text = edited(rnd, text)
		return put(t.dir, file, text)
	}
	f, err := r.compare(
		side{times: r.size(40, 3), prepare: change, do: func() error { return p.hook("after-edit", file) }},
		git.side(r.size(8, 1), change, func() error { return git.commit() }),
	)
	f.note = t.note()
	return f, errors.Join(err, os.Remove(filepath.Join(t.dir, file)))
}

// measureStart starts the program beside a Go program that prints one line.
func measureStart(r *rig) (figures, error) {
	dir, err := r.folder("start")
	if err != nil {
		return figures{}, err
	}
	p, err := r.program(dir)
	if err != nil {
		return figures{}, err
	}
	other := side{name: "a Go program that prints a line", times: r.size(40, 3), missing: "Go is not here"}
	if tool, err := exec.LookPath("go"); err == nil {
		source, hello := filepath.Join(dir, "main.go"), filepath.Join(dir, "hello.exe")
		if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(1) }\n"), 0o600); err != nil {
			return figures{}, err
		}
		build := exec.CommandContext(r.ctx, tool, "build", "-o", hello, source)
		if out, err := build.CombinedOutput(); err != nil {
			return figures{}, fmt.Errorf("build a program to compare with: %w: %s", err, out)
		}
		other.missing, other.do = "", func() error { return exec.CommandContext(r.ctx, hello).Run() }
	}
	return r.compare(side{times: r.size(40, 3), do: func() error { return p.run(p.command("", "version")) }}, other)
}
