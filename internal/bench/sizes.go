package bench

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"

	"reasonix/store"
)

func sizeLines() []line {
	return []line{
		{
			name: "size", what: "1,000 turns of small edits over 240 source files: the whole store", unit: "bytes",
			targets: []Target{{Of: "JSON", AtLeast: 18}, {Of: "git gc --aggressive", AtLeast: 1 / 1.2}}, measure: measureSize,
		},
		{
			name: "size-repacked", what: "their contents after `gc --repack`", unit: "bytes",
			targets: []Target{{Of: "git gc --aggressive, its blobs", AtLeast: 1 / 0.9}}, measure: measureRepacked,
		},
	}
}

// edits is a history of small edits that has been recorded by every side.
type edits struct {
	w           *world
	json        int64 // bytes
	frames      int64 // of each different content in a zstd frame of its own
	packs, pack int64 // of git: all of its packs, and the blobs in them; 0 where there is none
}

// edits records it, the first time. In each turn four files change in a line or two.
func (r *rig) edits() (*edits, error) {
	return once(r, "edits", func() (*edits, error) {
		w, err := r.world("")
		if err != nil {
			return nil, err
		}
		e := &edits{w: w}
		texts, err := r.texts(r.size(240, 8))
		if err != nil {
			return nil, err
		}
		for i, text := range texts {
			if err := put(w.dir, fileName(i), text); err != nil {
				return nil, err
			}
		}
		git, err := r.shadow(w.dir)
		if err != nil {
			return nil, err
		}
		at, err := r.folder("json")
		if err != nil {
			return nil, err
		}
		frames, err := newFrames()
		if err != nil {
			return nil, err
		}
		rnd, turns := random(), &jsonTurn{dir: at}
		for range r.size(1000, 12) {
			turns.begin("change what has to be changed")
			if err := w.begin(); err != nil {
				return nil, err
			}
			for range 4 {
				i := rnd.IntN(len(texts))
				name := fileName(i)
				turns.add(name, texts[i])
				e.frames += frames.add(texts[i])
				texts[i] = edited(rnd, texts[i])
				if err := w.edit(func() error { return put(w.dir, name, texts[i]) }, name); err != nil {
					return nil, err
				}
				e.frames += frames.add(texts[i])
			}
			n, err := turns.save()
			if err != nil {
				return nil, err
			}
			e.json += int64(n)
			if err := w.end(); err != nil {
				return nil, err
			}
			if git != nil {
				if err := git.keep(); err != nil {
					return nil, err
				}
			}
		}
		if git != nil {
			e.packs, e.pack, err = git.packed()
		}
		return e, err
	})
}

func measureSize(r *rig) (figures, error) {
	e, err := r.edits()
	if err != nil {
		return figures{}, err
	}
	if err := e.w.store.Checkpoint(r.ctx); err != nil {
		return figures{}, err
	}
	info, err := os.Stat(e.w.file)
	if err != nil {
		return figures{}, err
	}
	stats, err := e.w.stats()
	if err != nil {
		return figures{}, err
	}
	f := figures{value: float64(info.Size()), note: fmt.Sprintf("contents take %d bytes of it", stats.Stored)}
	f.size("JSON", e.json, "")
	f.size("zstd, each content by itself", e.frames, "")
	f.size("git gc --aggressive", e.packs, noGit)
	return f, nil
}

func measureRepacked(r *rig) (figures, error) {
	e, err := r.edits()
	if err != nil {
		return figures{}, err
	}
	if _, err := e.w.store.Repack(r.ctx, nil); err != nil {
		return figures{}, err
	}
	stats, err := e.w.stats()
	if err != nil {
		return figures{}, err
	}
	f := figures{value: float64(stats.Stored)}
	f.size("git gc --aggressive, its blobs", e.pack, noGit)
	return f, nil
}

// size adds the bytes that somebody else needs; 0 are none.
func (f *figures) size(name string, bytes int64, missing string) {
	b := Beside{Name: name, Value: float64(bytes), Ratio: float64(bytes) / f.value}
	if bytes == 0 {
		b = Beside{Name: name, Missing: missing}
	}
	f.beside = append(f.beside, b)
}

func (w *world) stats() (out store.Stats, err error) {
	err = w.store.View(w.r.ctx, func(tx *store.Tx) error {
		out, err = tx.Stats(1)
		return err
	})
	return out, err
}

// frames measures contents that are compressed one by one, each different one once.
type frames struct {
	encoder *zstd.Encoder
	known   map[[32]byte]bool
}

func newFrames() (*frames, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault))
	return &frames{encoder, map[[32]byte]bool{}}, err
}

// add is how many bytes a content adds.
func (f *frames) add(text string) int64 {
	key := blake3.Sum256([]byte(text))
	if f.known[key] {
		return 0
	}
	f.known[key] = true
	return int64(len(f.encoder.EncodeAll([]byte(text), nil)))
}

// keep commits the work tree on a branch.
func (s *shadow) keep() error {
	tree, err := s.tree()
	if err != nil {
		return err
	}
	args := []string{"commit-tree", "-m", "turn", tree}
	if parent, err := s.run("rev-parse", "-q", "--verify", "refs/heads/turns"); err == nil {
		args = append(args, "-p", parent)
	}
	commit, err := s.run(args...)
	if err == nil {
		_, err = s.run("update-ref", "refs/heads/turns", commit)
	}
	return err
}

// packed packs as tightly as git can; all is what the packs take with their indexes, blobs what
// the contents take in them.
func (s *shadow) packed() (all, blobs int64, err error) {
	if _, err := s.run("gc", "-q", "--aggressive", "--prune=now"); err != nil {
		return 0, 0, err
	}
	err = filepath.WalkDir(filepath.Join(s.repo, "objects"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	objects, err := s.run("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectsize:disk)")
	for row := range strings.Lines(objects) {
		if size, ok := strings.CutPrefix(strings.TrimSpace(row), "blob "); ok {
			n, nerr := strconv.ParseInt(size, 10, 64)
			if nerr != nil {
				return 0, 0, fmt.Errorf("git cat-file: %w", nerr)
			}
			blobs += n
		}
	}
	return all, blobs, err
}
