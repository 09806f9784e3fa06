package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"reasonix/db"
	"reasonix/store"
)

const sqlViews = "sessions, turns, messages, changes, operations, forks, blobs, pins and gaps"

// maxQuery bounds a query, in bytes.
const maxQuery = 1 << 20

func sqlCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "sql",
		Usage:     "ask the store in SQL; it cannot be changed by that",
		ArgsUsage: "[QUERY]",
		Category:  "looking",
		Description: "Without QUERY it is read from standard input. The views are\n" + sqlViews + ".\n" +
			"blob_text(BLOB) and blob_bytes(BLOB) give the content of a blob, diff_text(BLOB, BLOB) a unified diff\n" +
			"of two; NULL stands for an empty one there.\n" +
			"With --json each row is an object on a line of its own. On a terminal long values are cut in the\n" +
			"table, which says so; -v, --csv and --json print them whole.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "csv", Usage: "print comma-separated values"}},
		Action: a.sql,
	}
}

func (a *app) sql(c *cli.Context) error {
	query, err := a.query(c)
	if err != nil {
		return err
	}
	if a.json && c.Bool("csv") {
		return badUsage("--json and --csv contradict each other")
	}
	p, err := a.find()
	if err != nil {
		return err
	}
	contents, err := store.Open(c.Context, p.Store, store.Options{ReadOnly: true, Now: a.now})
	if err != nil {
		return err
	}
	defer contents.Close()
	d, err := db.Open(c.Context, p.Store, db.Options{
		ReadOnly: true, Now: a.now, Functions: sqlFunctions(c.Context, contents.Blobs()),
	})
	if err != nil {
		return err
	}
	var out rowWriter
	switch {
	case a.json:
		out = &jsonRows{w: a.stdout}
	case c.Bool("csv"):
		out = &csvRows{w: csv.NewWriter(a.stdout)}
	default:
		out = &tableRows{a: a}
	}
	err = a.ask(c.Context, d, withLargeMessages(query), out)
	return errors.Join(err, d.Close())
}

// query is the one statement that an argument or standard input asks.
func (a *app) query(c *cli.Context) (string, error) {
	if c.NArg() > 1 {
		return "", badUsage("sql takes one query, in quotes, not %d arguments", c.NArg())
	}
	query := c.Args().First()
	if c.NArg() == 0 {
		if onTerminal(a.stdin) {
			a.note("type a query and end it with ctrl-d")
		}
		b, err := a.readInput(c.Context, maxQuery+1)
		if err != nil {
			return "", fmt.Errorf("read query: %w", err)
		}
		query = string(b)
	}
	if len(query) > maxQuery {
		return "", badUsage("the query has more than %d bytes", maxQuery)
	}
	return query, checkQuery(query)
}

// readInput reads standard input, at most limit bytes, until ctx ends.
func (a *app) readInput(ctx context.Context, limit int64) (b []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, err = io.ReadAll(io.LimitReader(a.stdin, limit))
	}()
	select {
	case <-done:
		return b, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// checkQuery lets one reading statement through. The connection refuses writes to the store by
// itself; this keeps out what gets around that: ATTACH and VACUUM INTO make files, PRAGMA
// changes the connection, and a second statement would come after it.
func checkQuery(query string) error {
	words, statements := sqlWords(query)
	if len(words) == 0 {
		return badUsage("the query is empty")
	}
	if statements > 1 {
		return badUsage("one statement at a time")
	}
	if !slices.Contains([]string{"select", "with", "values", "explain"}, strings.ToLower(words[0])) {
		return &usage{
			text: "sql only reads: a query begins with SELECT, WITH, VALUES or EXPLAIN, not " + quote(words[0]),
			hint: "the views are " + sqlViews,
		}
	}
	return nil
}

// sqlWords is the first word of a query and the number of its statements, found without being
// fooled by strings, quoted names and comments.
func sqlWords(query string) (words []string, statements int) {
	inside := false // of a statement
	for i := 0; i < len(query); {
		rest := query[i:]
		switch c := query[i]; {
		case strings.HasPrefix(rest, "--"):
			i += lengthTo(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			i += 2 + lengthTo(rest[2:], "*/")
		case c == ';':
			inside = false
			i++
		case strings.IndexByte(" \t\r\n\f", c) >= 0:
			i++
		default:
			if !inside {
				inside, statements = true, statements+1
				words = append(words, firstWord(rest))
			}
			switch c {
			case '\'', '"', '`':
				i += 1 + lengthTo(rest[1:], string(c))
			case '[':
				i += 1 + lengthTo(rest[1:], "]")
			default:
				i++
			}
		}
	}
	return words, statements
}

// lengthTo is the length of text up to and with end, or all of it.
func lengthTo(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

func firstWord(text string) string {
	i := strings.IndexFunc(text, func(r rune) bool { return (r|0x20 < 'a' || r|0x20 > 'z') && r != '_' })
	switch {
	case i < 0:
		return text
	case i == 0:
		return text[:1]
	}
	return text[:i]
}

func (a *app) ask(ctx context.Context, d *db.DB, query string, out rowWriter) error {
	return d.View(ctx, func(tx *db.ReadTx) error {
		var waiting int
		if err := tx.Get(&waiting, `SELECT count(*) FROM operations WHERE state = 'applying'`); err == nil && waiting > 0 {
			a.note("an interrupted operation waits: any other command takes it back")
		}
		rows, err := tx.Query(query)
		if err != nil {
			return queryError(ctx, err)
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		if err := out.head(columns); err != nil {
			return err
		}
		for rows.Next() {
			values, err := rows.SliceScan()
			if err != nil {
				return err
			}
			if err := out.row(values); err != nil {
				return err
			}
		}
		if err := rows.Err(); err != nil {
			return queryError(ctx, err)
		}
		return out.end()
	})
}

// queryError tells a query that SQLite refuses from a store that fails.
func queryError(ctx context.Context, err error) error {
	if ctx.Err() != nil || db.IsCorrupt(err) || db.IsBusy(err) || db.IsFull(err) {
		return err
	}
	return &usage{text: fmt.Sprintf("query: %s", err), hint: "the views are " + sqlViews + "; docs/schema.md describes their columns"}
}
