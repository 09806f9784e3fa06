package tui

import (
	"context"
	"fmt"
	"time"
)

// Picker lets a person choose a turn and what to do with it, shows what that would do, and does it.
type Picker struct {
	Screen Screen
	Keys   *Keys
	Source Source
	Now    func() time.Time
}

// picking is a Picker at work.
type picking struct {
	*Picker
	turns   []Turn // newest first, as far as they were gone to
	more    bool   // older ones are there
	turn    int    // the one that is marked
	top     int    // the first that is seen
	action  int
	actions []Action
}

// Pick takes the screen until something was done or the person leaves: ErrLeft. The newest turn, and
// then restoring both, are marked at first.
func (p *Picker) Pick(ctx context.Context) (Picked, error) {
	g := &picking{Picker: p, actions: p.Source.Actions(), more: true}
	if err := g.older(ctx); err != nil {
		return Picked{}, err
	}
	p.Screen.enter()
	defer p.Screen.leave()
	return g.pick(ctx)
}

// older reads the turns before those that are there.
func (g *picking) older(ctx context.Context) error {
	before := -1
	if n := len(g.turns); n > 0 {
		before = g.turns[n-1].Number
	}
	turns, more, err := g.Source.Turns(ctx, before)
	g.turns, g.more = append(g.turns, turns...), more && len(turns) > 0
	return err
}

func (g *picking) pick(ctx context.Context) (Picked, error) {
	for {
		if err := g.chooseTurn(ctx); err != nil {
			return Picked{}, err
		}
		for {
			ok, err := g.chooseAction(ctx)
			if err != nil {
				return Picked{}, err
			}
			if !ok {
				break
			}
			picked, done, err := g.confirm(ctx)
			if err != nil || done {
				return picked, err
			}
		}
	}
}

// move changes what is marked by a key; it reports whether the key did that.
func move(at *int, n, page int, k Key) bool {
	switch {
	case k.Name == "up" || k.Rune == 'k':
		*at--
	case k.Name == "down" || k.Rune == 'j':
		*at++
	case k.Name == "pgup":
		*at -= page
	case k.Name == "pgdn":
		*at += page
	case k.Name == "home" || k.Rune == 'g':
		*at = 0
	case k.Name == "end" || k.Rune == 'G':
		*at = n - 1
	default:
		return false
	}
	*at = max(min(*at, n-1), 0)
	return true
}

// leaves reports whether a key ends it all.
func leaves(k Key) bool { return k.Name == "ctrl-c" || k.Name == "ctrl-d" || k.Rune == 'q' }

// chooseTurn shows the turns, two lines each.
func (g *picking) chooseTurn(ctx context.Context) error {
	for {
		columns, rows := g.Screen.size()
		page := max((rows-4)/2, 1)
		if g.more && g.turn+page >= len(g.turns) {
			if err := g.older(ctx); err != nil {
				return err
			}
		}
		g.top = max(min(g.top, g.turn), g.turn-page+1)
		lines := []string{g.Screen.style(bold, "Go back to before which turn?"), ""}
		if len(g.turns) == 0 {
			lines = append(lines, "There are no turns yet.")
		}
		for i := g.top; i < min(g.top+page, len(g.turns)); i++ {
			lines = append(lines, g.row(i, columns)...)
		}
		for len(lines) < rows-1 {
			lines = append(lines, "")
		}
		lines = append(lines[:rows-1], g.Screen.style(dim, "↑↓ move   Enter choose   Esc leave"))
		g.Screen.draw(lines)
		k, err := g.Keys.Next(ctx)
		switch {
		case err != nil:
			return err
		case move(&g.turn, len(g.turns), page, k):
		case k.Name == "enter" && len(g.turns) > 0:
			g.action = 0
			return nil
		case k.Name == "esc" || leaves(k):
			return ErrLeft
		}
	}
}

func (g *picking) row(i, columns int) []string {
	t := g.turns[i]
	mark, prompt := "  ", title(t.Prompt)
	if i == g.turn {
		mark = "> "
		prompt = g.Screen.style(bold, prompt)
	}
	head := fmt.Sprintf("%s%4d  ", mark, t.Number)
	return []string{cut(head+prompt, columns), cut("        "+g.Screen.style(dim, facts(t, g.Now())), columns)}
}

// chooseAction shows what can be done with the turn; false goes back to the turns.
func (g *picking) chooseAction(ctx context.Context) (bool, error) {
	t := g.turns[g.turn]
	for {
		columns, rows := g.Screen.size()
		lines := []string{g.Screen.style(bold, cut(fmt.Sprintf("Turn %d: %s", t.Number, title(t.Prompt)), columns)), g.Screen.style(dim, facts(t, g.Now())), ""}
		for i, a := range g.actions {
			mark, name := "  ", a.String()
			if i == g.action {
				mark = "> "
			}
			switch {
			case !possible(t, a):
				name = g.Screen.style(dim, name+" (nothing to take back)")
			case i == g.action:
				name = g.Screen.style(bold, name)
			}
			lines = append(lines, mark+name)
		}
		for len(lines) < rows-1 {
			lines = append(lines, "")
		}
		lines = append(lines[:rows-1], g.Screen.style(dim, "↑↓ move   Enter see what it would do   Esc back"))
		g.Screen.draw(lines)
		k, err := g.Keys.Next(ctx)
		switch {
		case err != nil:
			return false, err
		case move(&g.action, len(g.actions), len(g.actions), k):
		case k.Name == "enter" && possible(t, g.actions[g.action]):
			return true, nil
		case k.Name == "esc":
			return false, nil
		case leaves(k):
			return false, ErrLeft
		}
	}
}

// confirm shows the dry run and does what it says; done is false when the person went back.
func (g *picking) confirm(ctx context.Context) (picked Picked, done bool, err error) {
	t, a, how := g.turns[g.turn], g.actions[g.action], Stop
	for top := 0; ; {
		p, perr := g.Source.Preview(ctx, t.Number, a, how)
		if perr != nil {
			p = Preview{Lines: []string{"it can not be done: " + Safe(perr.Error())}, Conflicts: -1}
		}
		k, err := g.show(ctx, fmt.Sprintf("%s, turn %d", a, t.Number), p, &top)
		switch {
		case err != nil:
			return Picked{}, false, err
		case k.Name == "esc":
			return Picked{}, false, nil
		case leaves(k):
			return Picked{}, false, ErrLeft
		case k.Rune == 's' && p.Conflicts > 0:
			how, top = Skip, 0
		case k.Rune == 'f' && p.Conflicts > 0 && !p.Final:
			how, top = Force, 0
		case k.Name == "enter" && p.Conflicts == 0:
			picked, err := pick(ctx, g.Source, t, a, how)
			return picked, err == nil, err
		}
	}
}

// show draws a dry run until a key is pressed that does not scroll.
func (g *picking) show(ctx context.Context, head string, p Preview, top *int) (Key, error) {
	for {
		columns, rows := g.Screen.size()
		var all []string
		for _, l := range p.Lines {
			all = append(all, wrap(l, columns)...)
		}
		page := max(rows-4, 1)
		*top = max(min(*top, len(all)-page), 0)
		lines := []string{g.Screen.style(bold, head), ""}
		lines = append(lines, all[*top:min(*top+page, len(all))]...)
		for len(lines) < rows-1 {
			lines = append(lines, "")
		}
		lines = append(lines[:rows-1], g.Screen.style(dim, keysOf(p, len(all) > page)))
		g.Screen.draw(lines)
		k, err := g.Keys.Next(ctx)
		if err != nil || !move(top, len(all), page, k) {
			return k, err
		}
	}
}

func keysOf(p Preview, long bool) string {
	text := "Enter do it   Esc back"
	switch {
	case p.Conflicts < 0:
		text = "Esc back"
	case p.Conflicts > 0 && p.Final:
		text = "s leave conflicting files alone   Esc back"
	case p.Conflicts > 0:
		text = "s leave conflicting files alone   f overwrite them   Esc back"
	}
	if long {
		text += "   ↑↓ scroll"
	}
	return text
}
