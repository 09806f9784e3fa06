package worldtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Checkpoints makes a session of checkpoint files, version 2, below root: dir/long.jsonl with two
// messages a turn and dir/long.ckpt/. Each turn is about files of size bytes, whose content no
// other turn has. It returns the bytes of all files by their names below dir.
func Checkpoints(t testing.TB, dir, root string, turns, files, size int) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var lines []byte
	content := func(turn, file int) []byte {
		r := rand.New(rand.NewPCG(uint64(file), 1)) // versions of a file are much alike, as they are in life
		b := make([]byte, 0, size)
		for len(b) < size {
			b = fmt.Appendf(b, "%d: line %x of the file\n", len(b), r.Uint64())
		}
		return append(b[:size-20], fmt.Sprintf("turn %-14d\n", turn)...)
	}
	ref := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	for turn := range turns {
		var snaps []map[string]any
		for file := range files {
			b, after := content(turn, file), content(turn+1, file)
			h := ref(b)
			all["long.ckpt/blobs/"+h[:2]+"/"+h[2:4]+"/"+h] = b
			snaps = append(snaps, map[string]any{
				"path": fmt.Sprintf("%s/dir/file-%d.txt", root, file), "content": string(b), "encoding": 0, "mode": 0o644,
				"sha256": h, "blobRef": h, "captureSource": "previewer",
				"afterSha256": ref(after), "afterExisted": true, "afterMode": 0o644,
			})
		}
		one, err := json.Marshal(map[string]any{
			"schemaVersion": 2, "turn": turn, "time": "2026-01-01T00:00:00Z", "prompt": fmt.Sprint("prompt ", turn),
			"msgIndex": 2 * turn, "files": snaps, "coverage": "complete",
		})
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("long.ckpt/turn-%d.json", turn)] = one
		lines = fmt.Appendf(lines, "{\"role\":\"user\",\"content\":\"prompt %d\"}\n{\"role\":\"assistant\",\"content\":\"answer %d\"}\n", turn, turn)
	}
	all["long.jsonl"] = lines
	WriteAll(t, dir, all)
	return all
}

// WriteAll writes files below dir with plain system calls, without a sync.
func WriteAll(t testing.TB, dir string, all map[string][]byte) {
	t.Helper()
	for name, b := range all {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
