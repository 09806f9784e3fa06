package main

import (
	"bufio"
	"bytes"
	"iter"

	"github.com/urfave/cli/v2"

	"reasonix/internal/view"
	"reasonix/store"
)

func messagesCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "messages",
		Usage:    "print the conversation, one JSON message a line",
		Category: "looking",
		Description: "The full line, byte for byte as it was recorded; only newlines between JSON tokens become spaces.\n" +
			"Compaction changes nothing here: --effective is what a model would be sent.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "at", Usage: "only what came before `TURN`"},
			&cli.BoolFlag{Name: "effective", Usage: "what a model would be sent: with compactions in place"},
			&cli.BoolFlag{Name: "z", Aliases: []string{"0"}, Usage: "the exact bytes of each message, ended by NUL"},
		},
		Action: a.messages,
	}
}

func (a *app) messages(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("messages takes no arguments: name the session with --session")
	}
	at := c.String("at")
	if at != "" && !a.namesTurn(c.Context, at) {
		_, err := parseTurn(at)
		return err
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	turn := -1
	s, err := w.session(c.Context, a.sessionRef)
	if at != "" {
		s, turn, err = a.at(c.Context, w, at)
	}
	if err != nil {
		return err
	}
	return w.Store.View(c.Context, func(tx *store.Tx) error {
		all, err := view.Conversation(tx, s, turn, c.Bool("effective"))
		if err != nil {
			return err
		}
		return a.printMessages(all, c.Bool("z"))
	})
}

// printMessages writes messages as they were recorded; only newlines between JSON tokens, which
// would break the lines, become spaces.
func (a *app) printMessages(all iter.Seq2[store.Message, error], exact bool) error {
	out := bufio.NewWriterSize(a.stdout, 64<<10)
	for m, err := range all {
		if err != nil {
			return err
		}
		b, end := m.JSON, byte(0)
		if !exact {
			// In a valid JSON string a newline is escaped, so each one is between tokens.
			b, end = bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" ")), '\n'
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		if err := out.WriteByte(end); err != nil {
			return err
		}
	}
	return out.Flush()
}
