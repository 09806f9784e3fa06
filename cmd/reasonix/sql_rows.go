package main

import (
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// rowWriter prints the rows of an answer.
type rowWriter interface {
	head(columns []string) error
	row(values []any) error
	end() error
}

// jsonRows prints each row as an object, with the columns in their order.
type jsonRows struct {
	w       io.Writer
	columns [][]byte
}

func (j *jsonRows) head(columns []string) error {
	for _, c := range columns {
		b, err := json.Marshal(c)
		if err != nil {
			return err
		}
		j.columns = append(j.columns, b)
	}
	return nil
}

func (j *jsonRows) row(values []any) error {
	line := []byte{'{'}
	for i, v := range values {
		if i > 0 {
			line = append(line, ',')
		}
		if raw, ok := v.([]byte); ok {
			v = hex.EncodeToString(raw) // as the views show hashes
		}
		b, err := json.Marshal(v)
		if err != nil {
			b, err = json.Marshal(fmt.Sprint(v)) // an infinity
		}
		if err != nil {
			return err
		}
		line = append(append(append(line, j.columns[i]...), ':'), b...)
	}
	_, err := j.w.Write(append(line, '}', '\n'))
	return err
}

func (j *jsonRows) end() error { return nil }

type csvRows struct{ w *csv.Writer }

func (c *csvRows) head(columns []string) error { return c.w.Write(columns) }

func (c *csvRows) row(values []any) error {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = cell(v)
	}
	return c.w.Write(cells)
}

func (c *csvRows) end() error { c.w.Flush(); return c.w.Error() }

// cell is a value as text: NULL is empty, a blob is hexadecimal.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []byte:
		return hex.EncodeToString(v)
	}
	return fmt.Sprint(v)
}

// Of a table, so many rows are aligned together, and on a terminal cells are cut at so many
// characters.
const (
	tableBatch = 500
	tableCell  = 60
)

// tableRows prints aligned columns, in batches so that memory does not grow with the answer.
type tableRows struct {
	a    *app
	rows [][]string
	cut  int // cells that were not printed whole
}

func (t *tableRows) head(columns []string) error {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = t.a.paint(t.a.stdout, bold, printable(c))
	}
	t.rows = append(t.rows, names)
	return nil
}

func (t *tableRows) row(values []any) error {
	whole := t.a.verbose || !onTerminal(t.a.stdout)
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = printable(oneLine.Replace(cell(v)))
		if runes := []rune(cells[i]); !whole && len(runes) > tableCell {
			cells[i] = string(runes[:tableCell-1]) + "…"
			t.cut++
		}
	}
	if t.rows = append(t.rows, cells); len(t.rows) < tableBatch {
		return nil
	}
	return t.flush()
}

// oneLine keeps a row on a line; --csv and --json print values exactly.
var oneLine = strings.NewReplacer("\r\n", `\n`, "\n", `\n`, "\r", `\r`, "\t", " ")

func (t *tableRows) flush() error {
	err := table(t.a.stdout, t.rows)
	t.rows = nil
	return err
}

func (t *tableRows) end() error {
	err := t.flush()
	if t.cut > 0 {
		t.a.note("%s cut, marked with …; -v prints all of them", count(t.cut, "value"))
	}
	return err
}
