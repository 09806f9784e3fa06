package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

func memoryLines() []line {
	return []line{
		{
			name: "memory-hook", what: "peak memory of a hook about one file of 10 KB", unit: "MiB",
			targets: []Target{{Of: "value", AtMost: 30}}, measure: measureHookMemory,
		},
		{
			name: "memory-capture", what: "peak memory of a hook about a file of 2 GiB", unit: "MiB",
			targets: []Target{{Of: "value", AtMost: 64}}, measure: measureCaptureMemory,
		},
		{
			name: "memory-log", what: "peak memory of `log` and of a rewind, a conversation of 1 GiB", unit: "MiB",
			targets: []Target{{Of: "value", AtMost: 100}}, measure: measureLogMemory,
		},
	}
}

// peak runs a command and is what it needed at most, in MiB.
func (p *program) peak(stdin string, args ...string) (float64, error) {
	cmd := p.command(stdin, args...)
	if err := p.run(cmd); err != nil {
		return 0, err
	}
	return peak(cmd)
}

// workspace is a new folder with a program.
func (r *rig) workspace() (*program, error) {
	dir, err := r.folder("workspace")
	if err != nil {
		return nil, err
	}
	return r.program(dir)
}

func measureHookMemory(r *rig) (figures, error) {
	p, err := r.workspace()
	if err != nil {
		return figures{}, err
	}
	if err := errors.Join(put(p.dir, "f.go", code(random(), 10<<10)), p.hook("begin-turn")); err != nil {
		return figures{}, err
	}
	most, err := p.peak(p.event("before-edit", "f.go"), "hook", "--strict")
	return figures{value: most}, err
}

// measureCaptureMemory captures a file that does not compress.
func measureCaptureMemory(r *rig) (figures, error) {
	p, err := r.workspace()
	if err != nil {
		return figures{}, err
	}
	size := int64(r.size(2<<30, 4<<20))
	f, err := os.Create(filepath.Join(p.dir, "large"))
	if err != nil {
		return figures{}, err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), size)
	if err = errors.Join(err, f.Close(), p.hook("begin-turn")); err != nil {
		return figures{}, err
	}
	cmd := p.command(p.event("before-edit", "large"), "hook", "--strict")
	cmd.Env = append(cmd.Env, "REASONIX_HOOK_DEADLINE=10m")
	if err := p.run(cmd); err != nil {
		return figures{}, err
	}
	most, err := peak(cmd)
	if err == nil {
		err = os.RemoveAll(p.dir) // and not kept until the end of the run
	}
	return figures{value: most, note: fmt.Sprintf("%d MiB", size>>20)}, errors.Join(err, os.RemoveAll(p.home))
}

// measureLogMemory lists and rewinds a long conversation of messages of 1 MiB.
func measureLogMemory(r *rig) (figures, error) {
	p, err := r.workspace()
	if err != nil {
		return figures{}, err
	}
	const length = 1 << 20
	messages, source := r.size(1024, 3), rand.NewChaCha8([32]byte{2})
	for i := range messages {
		text := make([]byte, length/2)
		_, _ = source.Read(text) // never fails
		b, err := json.Marshal(map[string]any{
			"v": 1, "event": "begin-turn", "session": "bench", "cwd": p.dir, "prompt": fmt.Sprint("say ", i),
			"messages": []any{map[string]string{"role": "user", "content": fmt.Sprintf("%x", text)}},
		})
		if err != nil {
			return figures{}, err
		}
		if err := p.run(p.command(string(b), "hook", "--strict")); err != nil {
			return figures{}, err
		}
	}
	if err := p.hook("end-turn"); err != nil {
		return figures{}, err
	}
	var most float64
	var notes []string
	for _, args := range [][]string{{"log"}, {"rewind", "1", "conversation"}, {"undo-rewind"}} {
		one, err := p.peak("", args...)
		if err != nil {
			return figures{}, err
		}
		most = max(most, one)
		notes = append(notes, fmt.Sprintf("%s %.0f", args[0], one))
	}
	return figures{value: most, note: strings.Join(notes, ", ")}, os.RemoveAll(p.home)
}
