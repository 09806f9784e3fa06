package blob_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reasonix/blob"
	"reasonix/db"
)

// project is a tree of files that look like source, and are edited as an agent does.
type project struct {
	r     *rand.Rand
	words []string
	files [][]byte
}

func newProject(files int) *project {
	p := &project{r: rand.New(rand.NewPCG(7, 7))}
	for range 600 {
		var w strings.Builder
		for range 1 + p.r.IntN(3) {
			w.WriteByte("bcdfglmnprstv"[p.r.IntN(13)])
			w.WriteByte("aeiou"[p.r.IntN(5)])
			w.WriteByte("nrstlm"[p.r.IntN(6)])
		}
		p.words = append(p.words, w.String())
	}
	for i := range files {
		var b bytes.Buffer
		fmt.Fprintf(&b, "package %s\n\nimport (\n\t\"context\"\n\t\"errors\"\n\t\"fmt\"\n)\n", p.word())
		for size := 3000 + p.r.IntN(12_000); b.Len() < size; {
			fmt.Fprintf(&b, "\n// %s %s the %s of a %s.\nfunc (%c *%s) %s(ctx context.Context, %s %s) error {\n", p.word(), p.word(), p.word(), p.word(), 'a'+rune(i%26), p.word(), p.word(), p.word(), p.word())
			for range 3 + p.r.IntN(12) {
				b.Write(p.line())
			}
			b.WriteString("\treturn nil\n}\n")
		}
		p.files = append(p.files, b.Bytes())
	}
	return p
}

// word prefers the first ones, as names in a program do.
func (p *project) word() string {
	return p.words[min(p.r.IntN(len(p.words)), p.r.IntN(len(p.words)))]
}

func (p *project) line() []byte {
	switch p.r.IntN(4) {
	case 0:
		return fmt.Appendf(nil, "\tif err := %s.%s(ctx, %s); err != nil {\n\t\treturn fmt.Errorf(\"%s %s: %%w\", err)\n\t}\n", p.word(), p.word(), p.word(), p.word(), p.word())
	case 1:
		return fmt.Appendf(nil, "\t%s := %s[%s+%d]\n", p.word(), p.word(), p.word(), p.r.IntN(100))
	case 2:
		return fmt.Appendf(nil, "\t// %s %s %s the %s when %s\n", p.word(), p.word(), p.word(), p.word(), p.word())
	default:
		return fmt.Appendf(nil, "\t%s.%s = %s(%s, %q)\n", p.word(), p.word(), p.word(), p.word(), p.word())
	}
}

// edit changes a file in one to three places.
func (p *project) edit(i int) {
	lines := bytes.SplitAfter(p.files[i], []byte("\n"))
	for range 1 + p.r.IntN(3) {
		at := 8 + p.r.IntN(len(lines)-10)
		end := at + p.r.IntN(3)
		var fresh [][]byte
		for range p.r.IntN(5) {
			fresh = append(fresh, p.line())
		}
		lines = slices.Replace(slices.Clone(lines), at, end, fresh...)
	}
	p.files[i] = bytes.Join(lines, nil)
}

// play runs turns, each with a few edits of neighbouring files, and tells of each content.
func (p *project) play(turns int, each func(file int, before, after []byte)) {
	for range turns {
		first := min(p.r.IntN(len(p.files)), p.r.IntN(len(p.files)))
		for k := range 1 + p.r.IntN(9) {
			i := (first + k) % len(p.files)
			was := p.files[i]
			p.edit(i)
			each(i, was, p.files[i])
		}
	}
}

// keepHistory stores a project's history and returns the versions of each file, oldest first.
func keepHistory(t testing.TB, s *blob.Store, d *db.DB, turns int, against bool) (versions [][]blob.Hash, json int64) {
	p := newProject(240)
	versions = make([][]blob.Hash, len(p.files))
	keep := func(i int, b []byte) {
		var base blob.Hash
		if n := len(versions[i]); n > 0 && against {
			base = versions[i][n-1]
		}
		if _, err := putAgainst(s, d, b, base); err != nil {
			t.Fatal(err)
		}
		versions[i] = append(versions[i], blob.Sum(b))
	}
	p.play(turns, func(i int, before, after []byte) {
		json += int64(len(before)) + int64(bytes.Count(before, []byte("\n"))) + 100
		if len(versions[i]) == 0 {
			keep(i, before)
		}
		keep(i, after)
	})
	return versions, json
}

func storedBytes(t testing.TB, d *db.DB) int64 {
	return query(t, d, `SELECT sum(length(data)) FROM blob`)
}

func repack(t testing.TB, s *blob.Store, versions [][]blob.Hash) (sum blob.Repacked) {
	r := s.Repacker()
	for _, all := range versions {
		all = slices.Clone(all)
		slices.Reverse(all)
		done, err := r.Versions(ctx, all)
		if err != nil {
			t.Fatal(err)
		}
		sum.Contents, sum.Saved = sum.Contents+done.Contents, sum.Saved+done.Saved
	}
	return sum
}

// BenchmarkHistory reports what 1,000 turns of small edits over 240 files of source take, in bytes: as
// JSON checkpoints with what each turn found, as whole frames, as captured, and after Repack.
func BenchmarkHistory(b *testing.B) {
	for b.Loop() {
		whole, wd := newStore(b)
		_, json := keepHistory(b, whole, wd, 1000, false)
		s, d := newStore(b)
		versions, _ := keepHistory(b, s, d, 1000, true)
		b.ReportMetric(float64(json), "json-B")
		b.ReportMetric(float64(storedBytes(b, wd)), "whole-B")
		b.ReportMetric(float64(storedBytes(b, d)), "captured-B")
		b.ReportMetric(float64(query(b, d, `SELECT (SELECT page_count FROM pragma_page_count) * 4096`)), "file-B")
		repack(b, s, versions)
		b.ReportMetric(float64(storedBytes(b, d)), "repacked-B")
		verifyAll(b, s)
	}
}
