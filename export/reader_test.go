package export_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/worldtest"
)

// What follows is a reader of the format, written from its description and using nothing of
// the exporter.

type ckptFile struct {
	Path          string  `json:"path"`
	Content       *string `json:"content"`
	Encoding      *int    `json:"encoding"`
	Mode          uint32  `json:"mode"`
	SHA256        string  `json:"sha256"`
	BlobRef       string  `json:"blobRef"`
	CaptureSource string  `json:"captureSource"`
	AfterSHA256   string  `json:"afterSha256"`
	AfterExisted  *bool   `json:"afterExisted"`
	AfterMode     uint32  `json:"afterMode"`
}

type ckptTurn struct {
	SchemaVersion int        `json:"schemaVersion"`
	Turn          int        `json:"turn"`
	Time          string     `json:"time"`
	Prompt        string     `json:"prompt"`
	MsgIndex      int        `json:"msgIndex"`
	Files         []ckptFile `json:"files"`
	Coverage      string     `json:"coverage"`
	CoverageGaps  []struct {
		Reason, Detail, Tool, Path string
	} `json:"coverageGaps"`
}

func readTurns(t *testing.T, ckpt string) []ckptTurn {
	t.Helper()
	var all []ckptTurn
	for n := 0; ; n++ {
		b, err := os.ReadFile(filepath.Join(ckpt, fmt.Sprintf("turn-%d.json", n)))
		if os.IsNotExist(err) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var c ckptTurn
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("turn %d: %v\n%s", n, err, b)
		}
		if c.Turn != n || c.SchemaVersion != 2 {
			t.Fatalf("turn-%d.json is turn %d of version %d", n, c.Turn, c.SchemaVersion)
		}
		all = append(all, c)
	}
}

func readBlob(t *testing.T, ckpt, ref string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(ckpt, "blobs", ref[:2], ref[2:4], ref))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != ref {
		t.Fatalf("blob %s has other bytes", ref)
	}
	return b
}

// restore gives the files after a rewind to turn k: per path, the earliest snapshot at or
// after k says what it was.
func restore(t *testing.T, ckpt, root string, now map[string]worldtest.Entry, k int) map[string]worldtest.Entry {
	t.Helper()
	return restoreOf(t, readTurns(t, ckpt)[k:], ckpt, root, now)
}

func restoreOf(t *testing.T, turns []ckptTurn, ckpt, root string, now map[string]worldtest.Entry) map[string]worldtest.Entry {
	t.Helper()
	files, done := maps.Clone(now), map[string]bool{}
	for _, c := range turns {
		for _, f := range c.Files {
			rel, ok := strings.CutPrefix(f.Path, root+"/")
			if !ok {
				t.Fatalf("path %q escapes %q", f.Path, root)
			}
			if done[rel] {
				continue
			}
			done[rel] = true
			if f.Content == nil && f.BlobRef == "" && f.SHA256 == "" {
				delete(files, rel)
				continue
			}
			b := readBlob(t, ckpt, f.BlobRef)
			if f.SHA256 != f.BlobRef || f.Encoding == nil {
				t.Errorf("%s: hash %s, blob %s, encoding %v", rel, f.SHA256, f.BlobRef, f.Encoding)
			} else if *f.Encoding == 0 && *f.Content != string(b) {
				t.Errorf("%s: the content is not the blob's", rel)
			}
			files[rel] = worldtest.Entry{Mode: fs.FileMode(f.Mode), Content: string(b)}
		}
	}
	return files
}
