package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"reasonix/blob"
	"reasonix/db"
)

// maxSQLBlob is the longest content that a query is given, in bytes.
const maxSQLBlob = 256 << 20

// sqlFunctions are what queries can call besides SQLite's own.
func sqlFunctions(ctx context.Context, blobs *blob.Store) []db.Function {
	read := func(arg any) ([]byte, error) {
		text, ok := arg.(string)
		if !ok {
			return nil, fmt.Errorf("a blob is named by 64 hexadecimal digits, not by %v", arg)
		}
		h, err := blob.ParseHash(text)
		if err != nil {
			return nil, err
		}
		b, err := blobs.Read(ctx, h, maxSQLBlob)
		if err == nil && b == nil {
			b = []byte{}
		}
		if errors.Is(err, blob.ErrExpired) {
			return nil, nil // as of a content that there is none of
		}
		return b, err
	}
	text := func(arg any) (string, error) {
		if arg == nil {
			return "", nil
		}
		b, err := read(arg)
		if err == nil && !utf8.Valid(b) {
			err = fmt.Errorf("blob %v is not text", arg)
		}
		return string(b), err
	}
	return []db.Function{
		{Name: "blob_bytes", Args: 1, Do: func(args []any) (any, error) {
			if args[0] == nil {
				return nil, nil
			}
			b, err := read(args[0])
			if b == nil {
				return nil, err
			}
			return b, err
		}},
		{Name: "blob_text", Args: 1, Do: func(args []any) (any, error) {
			if args[0] == nil {
				return nil, nil
			}
			b, err := read(args[0])
			if b == nil || !utf8.Valid(b) {
				return nil, err // what is no text has none
			}
			return string(b), err
		}},
		{Name: "diff_text", Args: 2, Do: func(args []any) (any, error) {
			before, err := text(args[0])
			if err != nil {
				return nil, err
			}
			after, err := text(args[1])
			if err != nil {
				return nil, err
			}
			return udiff.Unified("before", "after", before, after), nil
		}},
	}
}

// largeMessages is the view messages with what lies in blobs filled in: a view of the store itself
// has to work in every SQLite client, which has no blob_text.
const largeMessages = `messages AS (
  SELECT session, idx, turn, role,
         CASE WHEN blob IS NULL THEN content
              WHEN json_valid(CAST(blob_bytes(blob) AS TEXT)) THEN json_extract(CAST(blob_bytes(blob) AS TEXT), '$.content') END AS content,
         CASE WHEN blob IS NULL THEN json ELSE CAST(blob_bytes(blob) AS TEXT) END AS json,
         blob
  FROM main.messages)`

var (
	sqlMessages    = regexp.MustCompile(`(?i)\bmessages\b`)
	sqlOwnMessages = regexp.MustCompile(`(?i)\b(main\s*\.\s*messages|messages\s*(\([^)]*\))?\s+AS\s+((NOT\s+)?MATERIALIZED\s*)?\()`)
	sqlWith        = regexp.MustCompile(`(?i)^(\s|--[^\n]*\n|/\*(?s:.*?)\*/)*WITH\s+(RECURSIVE\s+)?`)
	sqlBegins      = regexp.MustCompile(`(?i)^(\s|--[^\n]*\n|/\*(?s:.*?)\*/)*(SELECT|VALUES)\b`)
)

// withLargeMessages lets a query that names messages see them whole.
func withLargeMessages(query string) string {
	if !sqlMessages.MatchString(query) || sqlOwnMessages.MatchString(query) {
		return query
	}
	if at := sqlWith.FindStringIndex(query); at != nil {
		return query[:at[1]] + largeMessages + ", " + query[at[1]:]
	}
	if sqlBegins.MatchString(query) {
		return "WITH " + largeMessages + " " + query
	}
	return query
}
