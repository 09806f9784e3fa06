package view

import (
	"fmt"
	"io"
	"strings"
)

// WriteNameStatus writes one line: the letter that git uses for the change, and the name.
func WriteNameStatus(w io.Writer, c Change) error {
	name := quoted("", c.Pair.Path)
	var err error
	switch c.Change {
	case Created:
		_, err = fmt.Fprintf(w, "A\t%s\n", name)
	case Deleted:
		_, err = fmt.Fprintf(w, "D\t%s\n", name)
	case Renamed:
		_, err = fmt.Fprintf(w, "R100\t%s\t%s\n", quoted("", c.Pair.From), name)
	case Kind:
		_, err = fmt.Fprintf(w, "T\t%s\n", name)
	default:
		_, err = fmt.Fprintf(w, "M\t%s\n", name)
	}
	return err
}

// barWidth is the longest row of plus and minus signs, in characters.
const barWidth = 40

// WriteStat writes, for each file, how many lines it gained and lost, and the sums. Folders have
// lines, and are not counted.
func WriteStat(w io.Writer, files []File, paint Paint) error {
	width, most, added, removed := 0, 1, 0, 0
	names := make([]string, len(files))
	counted := 0
	for i, f := range files {
		names[i] = quoted("", f.Pair.Path)
		if f.Pair.IsFolder() {
			names[i] += "/"
		} else {
			counted++
		}
		if f.Change.Change == Renamed {
			names[i] = quoted("", f.Pair.From) + " => " + names[i]
		}
		width, most = max(width, len(names[i])), max(most, f.Added+f.Removed)
		added, removed = added+f.Added, removed+f.Removed
	}
	for i, f := range files {
		if _, err := fmt.Fprintf(w, " %-*s | %s\n", width, names[i], Bar(f, most, paint)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, " %s changed, %s(+), %s(-)\n",
		plural(counted, "file"), plural(added, "insertion"), plural(removed, "deletion"))
	return err
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Bar says how much a file changed, beside one that changed by most lines.
func Bar(f File, most int, paint Paint) string {
	switch {
	case f.Unreadable != "":
		return f.Unreadable
	case f.Binary:
		return fmt.Sprintf("binary, %d -> %d bytes", f.Before.Size, f.After.Size)
	case f.Large:
		return fmt.Sprintf("large, %d -> %d bytes", f.Before.Size, f.After.Size)
	case f.Pair.IsFolder() && f.Change.Change != Mode:
		return "folder " + f.Change.Change
	case f.Change.Change == Mode:
		return fmt.Sprintf("mode %s -> %s", f.Before.Mode, f.After.Mode)
	case f.Added+f.Removed == 0:
		return "0"
	}
	plus, minus := f.Added, f.Removed
	if most > barWidth {
		scale := func(n int) int {
			if n == 0 {
				return 0
			}
			return max(n*barWidth/most, 1)
		}
		plus, minus = scale(plus), scale(minus)
	}
	return fmt.Sprintf("%d %s%s", f.Added+f.Removed,
		paint("add", strings.Repeat("+", plus)), paint("remove", strings.Repeat("-", minus)))
}
