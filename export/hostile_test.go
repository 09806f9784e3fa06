package export_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reasonix/export"
	"reasonix/internal/capture"
	"reasonix/internal/worldtest"
)

// turnFile is a turn of version 2 with files as they stand.
func turnFile(n int, files string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"turn":%d,"time":"2026-01-02T03:04:05Z","prompt":"p%d","msgIndex":%d,"files":%s}`, n, n, n, files)
}

const (
	helloSum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"
	good     = `{"path":"good.txt","content":"hello","encoding":0,"mode":420}`
)

// TestHostileFiles reads files that lie or are damaged. Each fault is a warning of its kind, the turn
// that is good is there, and no file of the workspace or beside it is touched.
func TestHostileFiles(t *testing.T) {
	one := func(snap string) map[string]string {
		return map[string]string{"turn-0.json": turnFile(0, "["+snap+"]"), "turn-1.json": turnFile(1, "["+good+"]")}
	}
	long := strings.Repeat("x/", 3000)
	for name, c := range map[string]struct {
		files map[string]string
		codes []string
	}{
		"nothing":              {one(`{"path":"a.txt","content":"x","encoding":0}`), nil},
		"up":                   {one(`{"path":"../beside.txt","content":"x"}`), []string{export.WarnOutside}},
		"up from within":       {one(`{"path":"a/../../beside.txt","content":null}`), []string{export.WarnOutside}},
		"absolute":             {one(`{"path":"/etc/passwd","content":null}`), []string{export.WarnOutside}},
		"the root":             {one(`{"path":".","content":null}`), []string{export.WarnOutside}},
		"no name":              {one(`{"path":"","content":null}`), []string{export.WarnPath}},
		"NUL":                  {one(`{"path":"a\u0000b","content":"x"}`), []string{export.WarnPath}},
		"too deep":             {one(`{"path":"` + long + `","content":"x"}`), []string{export.WarnPath}},
		"drive":                {one(`{"path":"C:\\Windows\\x","content":null}`), []string{export.WarnOutside}},
		"git":                  {one(`{"path":".git/hooks/pre-commit","content":"x"}`), []string{export.WarnPath}},
		"git further down":     {one(`{"path":"sub/.git/config","content":"x"}`), []string{export.WarnPath}},
		"symlinked parent":     {one(`{"path":"inner/x.txt","content":"x"}`), []string{export.WarnSymlink}},
		"parent links out":     {one(`{"path":"link/beside.txt","content":"x"}`), []string{export.WarnPath}},
		"cut off":              {map[string]string{"turn-0.json": `{"turn":0,"files":[{"pa`, "turn-1.json": turnFile(1, "["+good+"]")}, []string{export.WarnCorrupt}},
		"not JSON":             {map[string]string{"turn-0.json": "\x00\x01\x02", "turn-1.json": turnFile(1, "["+good+"]")}, []string{export.WarnCorrupt}},
		"files no list":        {map[string]string{"turn-0.json": turnFile(0, `{"a":1}`), "turn-1.json": turnFile(1, "["+good+"]")}, []string{export.WarnCorrupt}},
		"negative":             {map[string]string{"turn-9.json": turnFile(-1, "null"), "turn-1.json": turnFile(1, "["+good+"]")}, []string{export.WarnRange}},
		"absurd turn":          {map[string]string{"turn-9.json": turnFile(2000000000, "null"), "turn-1.json": turnFile(1, "["+good+"]")}, []string{export.WarnRange}},
		"overflow":             {map[string]string{"turn-9.json": `{"turn":99999999999999999999}`, "turn-1.json": turnFile(1, "["+good+"]")}, []string{export.WarnCorrupt}},
		"unknown version":      {map[string]string{"turn-9.json": `{"schemaVersion":9,"turn":9}`, "turn-1.json": turnFile(1, "["+good+"]")}, []string{export.WarnRange}},
		"two for a turn":       {map[string]string{"a.json": `{"turn":1,"files":null}`, "b.json": `{"turn":1,"files":[` + good + `]}`, "turn-1.json": turnFile(1, "["+good+"]")}, []string{export.WarnDuplicate, export.WarnDuplicate}},
		"blob missing":         {one(`{"path":"a","content":null,"sha256":"` + helloSum + `","blobRef":"` + helloSum + `"}`), []string{export.WarnBlob}},
		"blob named by a path": {one(`{"path":"a","content":null,"blobRef":"../../../../etc/passwd"}`), []string{export.WarnBlob}},
		"hash no hash":         {one(`{"path":"a","content":"hello","sha256":"zz"}`), []string{export.WarnInexact}},
		"text of another hash": {one(`{"path":"a","content":"other","encoding":0,"sha256":"` + helloSum + `"}`), []string{export.WarnInexact}},
		"encoding unknown":     {one(`{"path":"a","content":"x","encoding":77}`), []string{export.WarnInexact}},
		"encoding negative":    {one(`{"path":"a","content":"x","encoding":-1}`), []string{export.WarnInexact}},
		"text of noise":        {one(`{"path":"a","content":"\ufffd\u0000\u4723","encoding":4}`), []string{export.WarnInexact}},
		"dropped":              {one(`{"path":"a","content":null,"payloadExpired":true}`), []string{export.WarnExpired}},
		"mode absurd":          {one(`{"path":"a","content":"x","encoding":0,"mode":4294967295}`), nil},
		"payload of another sum": {map[string]string{
			"turn-0.json": turnFile(0, "null"), "turn-1.json": turnFile(1, "["+good+"]"),
			"turns/0/meta.json":         `{"schemaVersion":3,"turn":0,"time":"2027-01-01T00:00:00Z","files":[{"path":"a","content":null,"sha256":"` + helloSum + `"}]}`,
			"turns/0/files/0000.before": "tampered",
		}, []string{export.WarnBlob}},
		"blob is a link out": {map[string]string{
			"turn-0.json": turnFile(0, `[{"path":"a","content":null,"blobRef":"`+helloSum+`"}]`), "turn-1.json": turnFile(1, "["+good+"]"),
			"blobs/2c/f2/" + helloSum: "-> /etc/passwd",
		}, []string{export.WarnBlob}},
		"folder links out":     {map[string]string{"turn-0.json": turnFile(0, "null"), "turn-1.json": turnFile(1, "["+good+"]"), "turns": "-> /tmp"}, []string{export.WarnCorrupt}},
		"expired is no folder": {map[string]string{"turn-0.json": turnFile(0, "null"), "turn-1.json": turnFile(1, "["+good+"]"), "expired": "x"}, []string{export.WarnCorrupt}},
		"conversation is no file": {map[string]string{
			"turn-0.json": turnFile(0, "null"), "turn-1.json": turnFile(1, "["+good+"]"), "../s.events.jsonl/x": "", "../s.jsonl.meta/x": "",
		}, []string{export.WarnCorrupt, export.WarnCorrupt}},
		"tombstone": {map[string]string{
			"turn-1.json":       turnFile(1, "["+good+"]"),
			"turns/7/meta.json": `{"schemaVersion":3,"turn":7,"time":"2027-01-01T00:00:00Z","files":[]}`,
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Put("a.txt", "mine", 0o644)
			w.Must(os.Symlink("..", w.Abs("link")))
			w.Put("sub/x.txt", "mine", 0o644)
			w.Must(os.Symlink("sub", w.Abs("inner")))
			beside := filepath.Join(filepath.Dir(w.Dir), "beside.txt")
			w.Must(os.WriteFile(beside, []byte("beside"), 0o600))
			dir := filepath.Join(t.TempDir(), "s.ckpt")
			for file, content := range c.files {
				file = filepath.Join(dir, file)
				w.Must(os.MkdirAll(filepath.Dir(file), 0o755))
				if to, ok := strings.CutPrefix(content, "-> "); ok {
					w.Must(os.Symlink(to, file))
					continue
				}
				w.Must(os.WriteFile(file, []byte(content), 0o644))
			}
			before := [2]map[string]worldtest.Entry{worldtest.Files(t, filepath.Dir(w.Dir)), worldtest.Files(t, dir)}
			r, err := export.Import(t.Context(), w.Capture.Store, capture.Disk{Capture: w.Capture}, dir, export.ImportOptions{FromRoot: w.Capture.Root.Path()})
			w.Must(err)
			var codes []string
			for _, one := range r.Warnings {
				codes = append(codes, one.Code)
				if one.Detail == "" {
					t.Errorf("%+v says nothing", one)
				}
			}
			slices.Sort(codes)
			if diff := cmp.Diff(c.codes, codes); diff != "" {
				t.Errorf("warnings %+v: %s", r.Warnings, diff)
			}
			if r.Turns != 2 {
				t.Errorf("%d turns", r.Turns)
			}
			if diff := cmp.Diff(before, [2]map[string]worldtest.Entry{worldtest.Files(t, filepath.Dir(w.Dir)), worldtest.Files(t, dir)}); diff != "" {
				t.Errorf("files were touched: %s", diff)
			}
			w.ID = r.Session.ID
			turns := readTurns(t, w.export(filepath.Join(t.TempDir(), "out")).Dir)
			if f := turns[1].Files; name != "two for a turn" && (len(f) != 1 || *f[0].Content != "hello") {
				t.Errorf("the good turn: %+v", f)
			}
		})
	}
}
