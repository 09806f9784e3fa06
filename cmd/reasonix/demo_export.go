package main

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

	"reasonix/export"
)

// exported writes the session in the exchange form and reads it back by that form's own rule:
// per path, the earliest snapshot at or after a turn says what it was.
func (d *demo) exported() error {
	d.chapter("$ reasonix export-ckpt")
	now, err := snap(d.dir)
	if err != nil {
		return err
	}
	r, err := export.Write(d.ctx, d.w.Store, d.session, export.Options{Dir: filepath.Join(d.temp, "export")})
	if err != nil {
		return err
	}
	b, err := os.ReadFile(r.JSONL)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	kept, err := d.messages(d.session)
	if err != nil {
		return err
	}
	d.ok(fmt.Sprintf("%s exported, byte for byte", count(len(lines), "message")), differsAt(lines, kept))
	for n := range d.starts {
		got, err := d.restored(r.Dir, now, n)
		if err != nil {
			return err
		}
		// Links and folders the form cannot say.
		want := filesOf(d.starts[n].files)
		d.ok(fmt.Sprintf("turn %d from the export: %s", n, count(len(want), "file")), filesOf(got).differs(want))
	}
	return nil
}

// filesOf leaves out links, folders and what was ever a link: those the form does not restore.
func filesOf(s snapshot) snapshot {
	out := snapshot{}
	for name, t := range s {
		if t.mode.IsRegular() && name != "latest" && name != "helper/deep/er/notes.txt" {
			out[name] = t
		}
	}
	return out
}

func (d *demo) restored(ckpt string, now snapshot, from int) (snapshot, error) {
	all, done := maps.Clone(now), map[string]bool{}
	for n := from; n < len(d.starts); n++ {
		b, err := os.ReadFile(filepath.Join(ckpt, fmt.Sprintf("turn-%d.json", n)))
		if err != nil {
			return nil, err
		}
		var turn struct {
			Files []struct {
				Path    string
				Mode    fs.FileMode
				BlobRef string
			}
		}
		if err := json.Unmarshal(b, &turn); err != nil {
			return nil, err
		}
		for _, f := range turn.Files {
			name, err := filepath.Rel(d.dir, f.Path)
			if err != nil {
				return nil, err
			}
			if name = filepath.ToSlash(name); done[name] {
				continue
			}
			if done[name] = true; f.BlobRef == "" {
				delete(all, name)
				continue
			}
			content, err := os.ReadFile(filepath.Join(ckpt, "blobs", f.BlobRef[:2], f.BlobRef[2:4], f.BlobRef))
			if err != nil {
				return nil, err
			}
			if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != f.BlobRef {
				return nil, fmt.Errorf("blob %s has other bytes", f.BlobRef)
			}
			all[name] = thing{mode: f.Mode, content: content}
		}
	}
	return all, nil
}
