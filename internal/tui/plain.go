package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Plain is the picker in lines: for screen readers, and where there is no terminal to draw on.
type Plain struct {
	In     *Lines
	Out    io.Writer
	Source Source
	Now    func() time.Time
}

// Lines are what a person answers where nothing is drawn.
type Lines struct {
	In *bufio.Reader
	// Echo prints the answers: where they come from a file or another program, no terminal does.
	Echo bool
}

// ask asks, and reads a line without its end. Errors: io.EOF, also with the last line.
func (l *Lines) ask(out io.Writer, question string) (string, error) {
	fmt.Fprint(out, question)
	line, err := l.In.ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	if l.Echo {
		fmt.Fprintln(out, Safe(line))
	}
	return line, err
}

// most is how many turns are listed at once.
const most = 20

// Pick asks in lines. An empty answer takes what is offered; "q", or the end of the input, leaves: ErrLeft.
func (p *Plain) Pick(ctx context.Context) (Picked, error) {
	t, err := p.turn(ctx)
	if err != nil {
		return Picked{}, err
	}
	a, err := p.action(ctx, t)
	if err != nil {
		return Picked{}, err
	}
	return p.confirm(ctx, t, a)
}

// ask reads an answer.
func (p *Plain) ask(ctx context.Context, question string) (string, error) {
	line, err := p.In.ask(p.Out, question)
	line = strings.TrimSpace(line)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case line == "q" || errors.Is(err, io.EOF) && line == "":
		return "", ErrLeft
	case err != nil && !errors.Is(err, io.EOF):
		return "", err
	}
	return line, nil
}

func (p *Plain) turn(ctx context.Context) (Turn, error) {
	var all, rest []Turn // newest first; rest are those that were not listed yet
	more, before := true, -1
	list := func() error {
		if len(rest) == 0 {
			var err error
			if rest, more, err = p.Source.Turns(ctx, before); err != nil || len(rest) == 0 {
				return err
			}
			all, before = append(all, rest...), rest[len(rest)-1].Number
		}
		n := min(len(rest), most)
		for i := n - 1; i >= 0; i-- {
			fmt.Fprintf(p.Out, "%d. %s (%s)\n", rest[i].Number, title(rest[i].Prompt), facts(rest[i], p.Now()))
		}
		rest = rest[n:]
		return nil
	}
	if err := list(); err != nil {
		return Turn{}, err
	}
	if len(all) == 0 {
		fmt.Fprintln(p.Out, "There are no turns yet.")
		return Turn{}, ErrLeft
	}
	for {
		older := ""
		if more || len(rest) > 0 {
			older = ", m for older ones"
		}
		answer, err := p.ask(ctx, fmt.Sprintf("Go back to before which turn? A number%s, Enter for %d, q to leave: ", older, all[0].Number))
		if err != nil {
			return Turn{}, err
		}
		if answer == "" {
			return all[0], nil
		}
		if answer == "m" && older != "" {
			if err := list(); err != nil {
				return Turn{}, err
			}
			continue
		}
		n, err := strconv.Atoi(answer)
		if err != nil || n < 0 || n > all[0].Number {
			fmt.Fprintf(p.Out, "%s is no turn.\n", Safe(answer))
			continue
		}
		return p.numbered(ctx, all, n)
	}
}

// numbered is a turn by its number, whether it was listed or not.
func (p *Plain) numbered(ctx context.Context, all []Turn, n int) (Turn, error) {
	if last := all[len(all)-1].Number; n < last {
		older, _, err := p.Source.Turns(ctx, n+1)
		if err != nil || len(older) == 0 {
			return Turn{}, err
		}
		return older[0], nil
	}
	return all[all[0].Number-n], nil
}

func (p *Plain) action(ctx context.Context, t Turn) (Action, error) {
	all := p.Source.Actions()
	for i, a := range all {
		note := ""
		if !possible(t, a) {
			note = " (nothing to take back)"
		}
		fmt.Fprintf(p.Out, "%d. %s%s\n", i+1, a, note)
	}
	for {
		answer, err := p.ask(ctx, "What? A number, Enter for 1, q to leave: ")
		if err != nil {
			return 0, err
		}
		n := 1
		if answer != "" {
			if n, err = strconv.Atoi(answer); err != nil {
				n = 0
			}
		}
		if n >= 1 && n <= len(all) && possible(t, all[n-1]) {
			return all[n-1], nil
		}
		fmt.Fprintln(p.Out, "That can not be done.")
	}
}

func (p *Plain) confirm(ctx context.Context, t Turn, a Action) (Picked, error) {
	how := Stop
	for {
		preview, err := p.Source.Preview(ctx, t.Number, a, how)
		if err != nil {
			return Picked{}, err
		}
		for _, l := range preview.Lines {
			fmt.Fprintln(p.Out, l)
		}
		question := "Do it? y or n: "
		switch {
		case preview.Conflicts > 0 && preview.Final:
			question = "Leave the conflicting files alone? s or n: "
		case preview.Conflicts > 0:
			question = "Leave the conflicting files alone, or overwrite them? s, f or n: "
		}
		answer, err := p.ask(ctx, question)
		switch {
		case err != nil:
			return Picked{}, err
		case preview.Conflicts > 0 && answer == "s":
			how = Skip
		case preview.Conflicts > 0 && answer == "f" && !preview.Final:
			how = Force
		case preview.Conflicts == 0 && (answer == "y" || answer == "yes"):
			return pick(ctx, p.Source, t, a, how)
		case answer == "n" || answer == "no" || answer == "":
			return Picked{}, ErrLeft
		}
	}
}
