package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reasonix/agent"
)

// commands are those of the chat, with what they do. Those that name one of the program's own commands
// take its arguments and flags.
var commands = []struct{ name, own, does string }{
	{"rewind", "rewind", "[TURN] [code|conversation|both]: go back; alone, the picker"},
	{"undo-rewind", "undo-rewind", "take the last rewind back"},
	{"redo-rewind", "redo-rewind", "take the last undo back"},
	{"fork", "fork", "TURN: begin another session there, and go on in it"},
	{"switch", "switch", "SESSION: go to another session; - is the one before"},
	{"tree", "tree", "sessions and their forks"},
	{"checkpoints", "log", "the turns of this session"},
	{"diff", "diff", "[TURN [TURN]]: what changed"},
	{"show", "show", "[TURN]: one turn"},
	{"compact", "", "[FOCUS]: a summary takes the place of the conversation"},
	{"summarize", "", "TURN from|upto: the same for one side of a turn"},
	{"retry", "", "take the last turn back and ask it again"},
	{"approve", "", "ask|auto-edit|full: what the agent may do without asking"},
	{"help", "", "this list"},
	{"quit", "", "leave"},
}

func commandNames() []string {
	var all []string
	for _, c := range commands {
		all = append(all, "/"+c.name)
	}
	return all
}

// command does a slash command.
func (c *Chat) command(ctx context.Context, words []string) (quit bool, err error) {
	if len(words) == 0 {
		words = []string{"help"}
	}
	name, args := words[0], words[1:]
	if name == "exit" || name == "q" {
		name = "quit"
	}
	for _, known := range commands {
		if known.name == name && known.own != "" {
			return false, c.own(ctx, known.own, args)
		}
	}
	switch name {
	case "quit":
		return true, nil
	case "help":
		for _, k := range commands {
			c.put.line(fmt.Sprintf("  %s  %s", pad("/"+k.name, 13), k.does))
		}
		return false, nil
	case "compact":
		return false, c.during(ctx, func(ctx context.Context) error { return c.Agent.Compact(ctx, strings.Join(args, " ")) })
	case "summarize":
		return false, c.summarize(ctx, args)
	case "retry":
		return false, c.during(ctx, func(ctx context.Context) error { _, err := c.Agent.Retry(ctx); return err })
	case "approve":
		return false, c.approve(args)
	}
	return false, fmt.Errorf("there is no /%s; /help lists the commands", Safe(name))
}

// own runs one of the program's own commands, and goes along where it went.
func (c *Chat) own(ctx context.Context, name string, args []string) error {
	before, err := c.Agent.Checkpoints()
	if err != nil {
		return err
	}
	if name == "rewind" && len(args) == 0 {
		picked, err := c.Pick(ctx)
		if errors.Is(err, ErrLeft) {
			return nil
		}
		if err != nil {
			return err
		}
		if side, ok := sideOf[picked.Action]; ok {
			return c.during(ctx, func(ctx context.Context) error { return c.Agent.Summarize(ctx, picked.Turn.Number, side) })
		}
		for _, l := range picked.Lines {
			c.put.line(l)
		}
	} else if err := c.Command(ctx, c.put.out, slices.Concat([]string{name}, args)); err != nil {
		return err
	}
	if err := c.Agent.Follow(); err != nil {
		return err
	}
	if name == "rewind" {
		c.remember(before)
	}
	return nil
}

// sideOf is what is summarized by an action.
var sideOf = map[Action]agent.Side{SummarizeFrom: agent.From, SummarizeUpTo: agent.UpTo}

func (c *Chat) summarize(ctx context.Context, args []string) error {
	sides := map[string]agent.Side{"from": agent.From, "upto": agent.UpTo}
	if len(args) != 2 {
		return errors.New("/summarize takes a turn and a side: /summarize 3 from, or /summarize 3 upto")
	}
	turn, err := strconv.Atoi(args[0])
	side, ok := sides[args[1]]
	if err != nil || turn < 0 || !ok {
		return errors.New("/summarize takes a turn and a side: /summarize 3 from, or /summarize 3 upto")
	}
	return c.during(ctx, func(ctx context.Context) error { return c.Agent.Summarize(ctx, turn, side) })
}

func (c *Chat) approve(args []string) error {
	if len(args) == 0 {
		c.put.line("approve " + string(c.Agent.Policy()))
		return nil
	}
	p, err := agent.ParsePolicy(args[0])
	if err != nil {
		return err
	}
	return c.Agent.SetPolicy(p)
}
