package main

import (
	"fmt"
	"io"
	"unicode"

	"github.com/urfave/cli/v2"

	"reasonix/store"
)

func pinCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "pin",
		Usage:     "name a turn, so that gc keeps it; list the names",
		ArgsUsage: "[TURN NAME]",
		Category:  "store",
		Description: "NAME can be used wherever a TURN can, and keeps the files of that turn restorable for as long as\n" +
			"it is there. Without arguments the pins are listed. unpin takes a name away.",
		Action: a.pin,
	}
}

func unpinCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:        "unpin",
		Usage:       "take the name of a turn away",
		ArgsUsage:   "NAME",
		Category:    "store",
		Description: "The turn stays, until gc finds it too old.",
		Action:      a.unpin,
	}
}

type pinJSON struct {
	Name      string          `json:"name"`
	Session   store.SessionID `json:"session"`
	Turn      int             `json:"turn"`
	CreatedMS int64           `json:"created_ms"`
}

func newPinJSON(p store.Pin) pinJSON {
	return pinJSON{Name: p.Name, Session: p.Session, Turn: p.Turn, CreatedMS: p.Created.UnixMilli()}
}

// isPinName leaves out whatever could be taken for a turn, a flag, a scope or SESSION:TURN. (As a
// regular expression it would cost every start of the program a millisecond and a half.)
func isPinName(name string) bool {
	for i, r := range name {
		if !unicode.IsLetter(r) && r != '_' && (i == 0 || !unicode.IsNumber(r) && r != '.' && r != '-') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

func checkPinName(name string) error {
	_, scope := store.ParseScope(name)
	if isPinName(name) && !isTurn(name) && scope != nil {
		return nil
	}
	return &usage{
		text: quote(printable(name)) + " cannot name a turn",
		hint: "a name begins with a letter and goes on with letters, digits and _.-; it is not latest, code, conversation or both",
	}
}

func (a *app) pin(c *cli.Context) error {
	if c.NArg() != 0 && c.NArg() != 2 {
		return badUsage("pin takes a turn and a name, or nothing to list the names")
	}
	if c.NArg() == 2 {
		if err := checkPinName(c.Args().Get(1)); err != nil {
			return err
		}
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	if c.NArg() == 0 {
		return a.pins(c, w)
	}
	s, n, err := a.at(c.Context, w, c.Args().First())
	if err != nil {
		return err
	}
	if n == s.Turns {
		return noTurn(c.Context, w, s, n)
	}
	name := c.Args().Get(1)
	var pin store.Pin
	err = w.Store.Update(c.Context, func(tx *store.WriteTx) error {
		if err := tx.AddPin(name, s.ID, n); err != nil {
			return err
		}
		pin, err = tx.Pin(name)
		return err
	})
	if err != nil {
		return err
	}
	return a.emit(newPinJSON(pin), func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "turn %d of session %s is kept as %s\n", n, s.ID, name)
		return err
	})
}

func (a *app) pins(c *cli.Context, w *world) error {
	var all []store.Pin
	err := w.Store.View(c.Context, func(tx *store.Tx) (err error) { all, err = tx.Pins(); return err })
	if err != nil {
		return err
	}
	out := struct {
		Pins []pinJSON `json:"pins"`
	}{[]pinJSON{}}
	for _, p := range all {
		out.Pins = append(out.Pins, newPinJSON(p))
	}
	return a.emit(out, func(to io.Writer) error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(to, "no pins")
			return err
		}
		rows := [][]string{{"name", "session", "turn", "since"}}
		for i := range rows[0] {
			rows[0][i] = a.paint(to, dim, rows[0][i])
		}
		for _, p := range all {
			rows = append(rows, []string{p.Name, string(p.Session), fmt.Sprint(p.Turn), a.ago(p.Created)})
		}
		return table(to, rows)
	})
}

func (a *app) unpin(c *cli.Context) error {
	if c.NArg() != 1 {
		return badUsage("unpin takes the name of a pin")
	}
	w, err := a.open(c)
	if err != nil {
		return err
	}
	defer w.Close()
	name := c.Args().First()
	var pin store.Pin
	err = w.Store.Update(c.Context, func(tx *store.WriteTx) error {
		if pin, err = tx.Pin(name); err != nil {
			return err
		}
		return tx.RemovePin(name)
	})
	if err != nil {
		return err
	}
	return a.emit(newPinJSON(pin), func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "turn %d of session %s has no longer the name %s\n", pin.Turn, pin.Session, pin.Name)
		return err
	})
}
