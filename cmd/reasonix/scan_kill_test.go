package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestScanKilled kills a scan after it has stored something: the store is whole, and the next
// scan goes on from there.
func TestScanKilled(t *testing.T) {
	base := t.TempDir()
	dir, state := filepath.Join(base, "w"), filepath.Join(base, "state")
	const files, size = 48, 1 << 20
	random := rand.NewChaCha8([32]byte{7})
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		content := make([]byte, size)
		_, _ = random.Read(content)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d", i)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command("reasonix", args...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + base, "XDG_STATE_HOME=" + state}
		return cmd
	}
	scan := run("scan")
	if err := scan.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- scan.Wait() }()
	for killed := false; !killed; {
		select {
		case err := <-ended:
			t.Fatalf("the scan ended before it could be killed: %v", err)
		case <-time.After(time.Millisecond): // a poll, not a guess: so much means that a part of the index is stored
			parts, _ := filepath.Glob(filepath.Join(state, "reasonix", "*", "store.db*"))
			stored := int64(0)
			for _, p := range parts {
				if fi, err := os.Stat(p); err == nil {
					stored += fi.Size()
				}
			}
			killed = stored > 30*size
		}
	}
	if err := scan.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if out, err := run("verify", "--deep").CombinedOutput(); err != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	var found struct {
		Files, Read int
		Complete    bool
	}
	out, err := run("--json", "scan").Output()
	if err != nil || json.Unmarshal(out, &found) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if found.Files != files || !found.Complete || found.Read >= files || found.Read == 0 {
		t.Errorf("%+v: want all of %d files, not all read again", found, files)
	}
	if out, err := run("verify", "--deep").CombinedOutput(); err != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
}
