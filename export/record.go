package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"reasonix/blob"
	"reasonix/internal/charset"
	"reasonix/store"
)

// record is what a turn's file says of a path, once its content is stored.
type record struct {
	turn   int // place in turns
	path   store.Path
	before store.State
	after  store.State // unknown, the zero State, until settle
	sum    [sha256.Size]byte
	hasSum bool // of the content after it
	mode   uint32
}

// readFiles takes over what the file of a turn says of paths.
func (i *importer) readFiles(ctx context.Context, k int) error {
	t := &i.turns[k]
	if i.claude != nil {
		return i.readHistory(ctx, k)
	}
	if t.file == "" {
		return nil
	}
	in, err := i.readTurn(t.file)
	if err != nil {
		return err // it could be read a moment ago
	}
	seen := map[store.Path]bool{}
	for n, s := range in.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, ok := i.pathOf(t, s.Path)
		if !ok || seen[p] { // the first of two names of one path counts
			continue
		}
		seen[p] = true
		r := record{turn: k, path: p}
		if r.before, err = i.before(ctx, t, n, p, s); err != nil {
			return err
		}
		i.result.Files++
		r.mode = modeOf(s.AfterMode, s.Mode)
		switch {
		case s.AfterExisted != nil && !*s.AfterExisted:
			r.after = store.AbsentState
		case s.AfterSHA256 != "":
			r.sum, r.hasSum = parseSum(s.AfterSHA256)
		}
		i.records = append(i.records, r)
	}
	return nil
}

// before is the state of a path at the beginning of a turn.
func (i *importer) before(ctx context.Context, t *turnPlan, n int, p store.Path, s snapIn) (store.State, error) {
	if !s.existed() {
		if s.PayloadExpired || t.expired {
			i.warn(Warning{Code: WarnExpired, File: t.file, Turn: t.number, Path: s.Path, Detail: "its content was dropped by the other program"})
			return store.UncapturedState, nil
		}
		return store.AbsentState, nil
	}
	c, why, err := i.content(ctx, t, n, p, s)
	if err != nil {
		return store.State{}, err
	}
	if why != "" {
		code := WarnBlob
		switch {
		case s.PayloadExpired || t.expired:
			code = WarnExpired
		case s.BlobRef == "" && t.dir == "":
			code = WarnInexact
		}
		i.warn(Warning{Code: code, File: t.file, Turn: t.number, Path: s.Path, Detail: why})
		return store.UncapturedState, nil
	}
	i.last[p] = c.hash
	return store.State{Kind: store.File, Mode: modeOf(s.Mode), Blob: c.hash, Size: c.size}, nil
}

// modeOf is the first mode that is one; the usual one where the files say nothing.
func modeOf(modes ...*int64) uint32 {
	for _, m := range modes {
		if m != nil && *m >= 0 && *m <= 0o777 {
			return uint32(*m)
		}
	}
	return 0o644
}

// content stores the content of a snapshot: the raw bytes where they are kept, else those that its text
// gives. why says what is wrong when there is none.
func (i *importer) content(ctx context.Context, t *turnPlan, n int, p store.Path, s snapIn) (c content, why string, err error) {
	want, known := parseSum(s.SHA256)
	if known {
		if c, ok := i.contents[want]; ok {
			return c, "", nil
		}
	} else if s.SHA256 != "" {
		return c, "its hash is no SHA-256", nil
	}
	var raw string // the file of the raw bytes
	switch {
	case t.dir != "":
		raw = path.Join(t.dir, "files", fmt.Sprintf("%04d.before", n))
	case s.BlobRef != "":
		sum, ok := parseSum(s.BlobRef)
		if !ok {
			why = "its blob is no SHA-256"
			break
		}
		if !known {
			want, known = sum, true
		}
		h := hex.EncodeToString(sum[:])
		raw = path.Join("blobs", h[:2], h[2:4], h)
	}
	if raw != "" {
		c, why, err = i.raw(ctx, raw, want, known, i.last[p])
		if err != nil || why == "" {
			return c, why, err
		}
	}
	if s.Content == nil {
		if why == "" {
			why = "nothing holds its content"
		}
		return c, why, nil
	}
	return i.inline(ctx, s, want, known, i.last[p], why)
}

// raw stores a file of raw bytes.
func (i *importer) raw(ctx context.Context, name string, want [sha256.Size]byte, known bool, base blob.Hash) (c content, why string, err error) {
	f, err := i.ckpt.open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return c, name + " is missing", nil
		}
		return c, name + " cannot be read", nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > maxContent {
		return c, name + " is too long", nil
	}
	return i.keep(ctx, f, want, known, base, name)
}

// keep stores what r gives, if that has the hash it should have; base is what the path had before.
func (i *importer) keep(ctx context.Context, r io.Reader, want [sha256.Size]byte, known bool, base blob.Hash, what string) (c content, why string, err error) {
	sha := sha256.New()
	p, err := i.store.Blobs().PrepareAgainst(ctx, io.TeeReader(r, sha), base)
	if err != nil {
		return c, "", err
	}
	var got [sha256.Size]byte
	sha.Sum(got[:0])
	if known && got != want {
		return c, what + " has another hash", i.store.Blobs().Discard(ctx, p)
	}
	c = content{p.Hash(), p.Size()}
	i.contents[got] = c
	return c, "", i.bind(ctx, p)
}

// inline stores the bytes that a text stands for.
func (i *importer) inline(ctx context.Context, s snapIn, want [sha256.Size]byte, known bool, base blob.Hash, before string) (content, string, error) {
	kind := charset.UTF8
	if s.Encoding != nil {
		if kind = charset.Encoding(*s.Encoding); *s.Encoding < 0 || *s.Encoding > 255 || !kind.Known() {
			return content{}, fmt.Sprintf("encoding %d is not known", *s.Encoding), nil
		}
	}
	b, err := kind.Encode(*s.Content)
	if err != nil || !known && kind == charset.GB18030 && strings.ContainsRune(*s.Content, '\uFFFD') {
		// What is no text was counted as this kind, and lost what it could not decode.
		return content{}, "its text does not give the bytes back", nil
	}
	c, why, err := i.keep(ctx, bytes.NewReader(b), want, known, base, "its text")
	if why != "" && before != "" {
		why = before + ", and " + why
	}
	return c, why, err
}

func parseSum(text string) (sum [sha256.Size]byte, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(sum) {
		return sum, false
	}
	return [sha256.Size]byte(b), true
}

var drive = regexp.MustCompile(`^[A-Za-z]:[\\/]`)

// pathOf is the path of the workspace that a name in the files stands for.
func (i *importer) pathOf(t *turnPlan, name string) (p store.Path, ok bool) {
	bad := func(code, detail string) (store.Path, bool) {
		i.warn(Warning{Code: code, File: t.file, Turn: t.number, Path: name, Detail: detail})
		return "", false
	}
	if name == "" || strings.ContainsRune(name, 0) || len(name) > 4096 {
		return bad(WarnPath, "it is no path")
	}
	clean := func(s string) string {
		if drive.MatchString(s) {
			s = strings.ReplaceAll(s, `\`, "/")
		}
		return path.Clean(filepath.ToSlash(s))
	}
	rel, root := clean(name), clean(i.o.FromRoot)
	if path.IsAbs(rel) || drive.MatchString(name) {
		below, found := strings.CutPrefix(rel, strings.TrimSuffix(root, "/")+"/")
		if !found {
			i.elsewhere = append(i.elsewhere, rel)
			return bad(WarnOutside, "it does not lie below "+i.o.FromRoot)
		}
		rel = below
	}
	if rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return bad(WarnOutside, "it leaves the workspace")
	}
	p, linked, err := i.disk.Check(rel)
	switch {
	case err != nil:
		return bad(WarnPath, err.Error())
	case linked:
		return bad(WarnSymlink, "a parent of it is a link in the workspace")
	}
	return p, true
}

// settle finds the states after: by their hash among the contents that are there, else on the disk, else
// as the next turn that is about the path found it. What is found nowhere is not known.
func (i *importer) settle(ctx context.Context) error {
	next := map[store.Path]*record{}
	for k := len(i.records) - 1; k >= 0; k-- {
		r := &i.records[k]
		later := next[r.path]
		next[r.path] = r
		if r.after.Known() {
			continue
		}
		if c, ok := i.contents[r.sum]; r.hasSum && ok {
			r.after = store.State{Kind: store.File, Mode: r.mode, Blob: c.hash, Size: c.size}
			continue
		}
		if later != nil && !r.hasSum {
			r.after = later.before
			continue
		}
		r.after = store.UncapturedState
		if !r.hasSum {
			continue
		}
		state, p, sum, err := i.disk.Read(ctx, r.path)
		if err != nil {
			return err
		}
		if state.Kind != store.File || sum != r.sum || p == nil {
			if p != nil {
				err = i.store.Blobs().Discard(ctx, p)
			}
			if err != nil {
				return err
			}
			continue
		}
		i.contents[sum] = content{state.Blob, state.Size}
		r.after = store.State{Kind: store.File, Mode: r.mode, Blob: state.Blob, Size: state.Size}
		if err := i.bind(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// commonFolder is the deepest folder that all of some absolute names lie below; "" when only the root
// of a file system is.
func commonFolder(names []string) string {
	common := path.Dir(names[0])
	for _, n := range names[1:] {
		for common != path.Dir(common) && !strings.HasPrefix(n, common+"/") {
			common = path.Dir(common)
		}
	}
	if common == "/" || common == "." || len(common) == 3 && drive.MatchString(common) {
		return ""
	}
	return common
}
