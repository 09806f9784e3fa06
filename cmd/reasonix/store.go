package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"reasonix/internal/capture"
	"reasonix/internal/place"
	"reasonix/internal/report"
	"reasonix/store"
)

func storeCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "store",
		Usage:    "print the path of the workspace's store",
		Category: "store",
		Description: "--list shows the stores of all workspaces and whether those are still there. --move is for a\n" +
			"workspace that was renamed or replaced: it shows both folders and asks before it binds.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "list", Usage: "list all stores"},
			&cli.StringFlag{Name: "move", Usage: "bind the store of the workspace that was at `OLD_ROOT` to this folder"},
			&cli.BoolFlag{Name: "yes", Usage: "bind without asking; needed where there is no terminal"},
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.Args().Present():
				return badUsage("store takes no arguments")
			case c.Bool("list") && c.IsSet("move"):
				return badUsage("--list and --move are two things")
			case c.Bool("list"):
				return a.listStores(c)
			case c.IsSet("move"):
				return a.moveStore(c)
			}
			return a.storePath(c)
		},
	}
}

func (a *app) storePath(c *cli.Context) error {
	p, err := a.find()
	if err != nil {
		return err
	}
	o, err := p.Open(c.Context, place.Options{Dir: a.workspace, Now: a.now})
	if err != nil {
		return err
	}
	root, path := o.Root.Path(), o.Store.Path()
	if err := o.Close(); err != nil {
		return err
	}
	out := struct {
		Store string `json:"store"`
		Root  string `json:"root"`
	}{report.Text(path), report.Text(root)}
	return a.emit(out, func(to io.Writer) error {
		// The exact bytes: the line is made for other programs.
		_, err := fmt.Fprintln(to, path)
		return err
	})
}

type storeJSON struct {
	Store      string `json:"store"`
	Root       string `json:"root"`
	Exists     bool   `json:"exists"` // the workspace is still there
	Sessions   int    `json:"sessions"`
	Size       int64  `json:"size"`
	ModifiedMS int64  `json:"modified_ms"`
	Error      string `json:"error,omitempty"`
}

func (a *app) listStores(c *cli.Context) error {
	all, err := a.where().List(c.Context)
	if err != nil {
		return err
	}
	out := struct {
		Stores []storeJSON `json:"stores"`
	}{[]storeJSON{}}
	for _, e := range all {
		s := storeJSON{
			Store: report.Text(e.Place.Store), Root: report.Text(e.Place.Root), Exists: !e.Missing && e.Err == nil,
			Sessions: e.Sessions, Size: e.Size, ModifiedMS: e.Modified.UnixMilli(),
		}
		if e.Err != nil {
			s.Error = e.Err.Error()
		}
		out.Stores = append(out.Stores, s)
	}
	return a.emit(out, func(to io.Writer) error { return a.printStores(to, all) })
}

func (a *app) printStores(w io.Writer, all []place.Entry) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no stores yet")
		return err
	}
	rows := [][]string{{"workspace", "sessions", "size", "changed", "store"}}
	for _, e := range all {
		root := printable(e.Place.Root)
		switch {
		case e.Err != nil:
			root = a.paint(w, red, "cannot be read: "+firstLine(e.Err.Error(), 60))
		case e.Missing:
			root += a.paint(w, yellow, " (gone)")
		}
		rows = append(rows, []string{root, fmt.Sprint(e.Sessions), size(e.Size), a.ago(e.Modified), printable(e.Place.Store)})
	}
	return table(w, rows)
}

func (a *app) moveStore(c *cli.Context) error {
	if _, err := place.Canonical(a.dir()); err != nil {
		return a.noFolder(err)
	}
	m, err := a.where().PlanMove(c.Context, c.String("move"), a.dir())
	if err != nil {
		return err
	}
	if !c.Bool("yes") || !a.quiet {
		fmt.Fprintf(a.stderr, "store   %s, %s\n", printable(m.Old.Store), count(m.Sessions, "session"))
		fmt.Fprintf(a.stderr, "was of  %s (%s)\n", printable(m.From.Root), folderID(m.From))
		fmt.Fprintf(a.stderr, "will be %s (%s)\n", printable(m.To.Root), folderID(m.To))
	}
	switch {
	case c.Bool("yes"):
	case !onTerminal(a.stdin):
		return &usage{text: "there is no terminal to ask whether the store is to be bound to this folder", hint: "look at the two folders, then add --yes"}
	case !a.confirm("bind it?"):
		return fmt.Errorf("not confirmed: %w", errInterrupted)
	}
	if err := a.where().Move(c.Context, m, lockAtOnce); err != nil {
		return err
	}
	out := struct {
		Store string `json:"store"`
		From  string `json:"from"`
		To    string `json:"to"`
	}{report.Text(m.New.Store), report.Text(m.From.Root), report.Text(m.To.Root)}
	return a.emit(out, func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "the store of %s is now that of %s\n", printable(m.From.Root), printable(m.To.Root))
		return err
	})
}

// lockAtOnce takes a store's workspace, unless somebody is at work in it.
func lockAtOnce(s *store.Store) (func(), error) {
	unlock, free, err := (&capture.Capturer{Store: s}).TryExclusive()
	if err == nil && !free {
		err = capture.ErrLocked
	}
	return unlock, err
}

func folderID(w store.Workspace) string { return fmt.Sprintf("device %d, inode %d", w.Device, w.Inode) }

// confirm asks a person.
func (a *app) confirm(question string) bool {
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// size is a number of bytes for a person.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1024, 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[unit])
}
