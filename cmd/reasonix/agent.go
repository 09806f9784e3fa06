package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/urfave/cli/v2"

	"reasonix/agent"
	"reasonix/internal/config"
	"reasonix/internal/llm"
	"reasonix/internal/llm/fakellm"
	"reasonix/internal/place"
)

// agentFlags are those of the commands that run the program's own agent.
func agentFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "approve", Usage: "what tools may do without asking: `POLICY` is ask, auto-edit or full (default: agent.approve, else ask)"},
		&cli.StringFlag{Name: "script", Usage: "take the model's answers from `FILE` instead of a server (docs/agent.md)"},
		&cli.BoolFlag{Name: "new", Usage: "begin a new session instead of going on with the current one"},
	}
}

// errNoKey is returned when the model's server wants a key and there is none.
var errNoKey = errors.New("there is no key for the model's server")

// agentOptions are what flags and settings say about an agent; errNoKey when they name no model.
func (a *app) agentOptions(c *cli.Context) (agent.Options, error) {
	set, err := config.Load(a.env)
	if err != nil {
		return agent.Options{}, err
	}
	o := agent.Options{Thinking: set.Thinking, Effort: set.Effort, Context: set.Context, New: c.Bool("new")}
	policy := c.String("approve")
	if policy == "" {
		policy = set.Approve
	}
	if policy != "" {
		if o.Policy, err = agent.ParsePolicy(policy); err != nil {
			return o, &usage{text: fmt.Sprintf("unknown value %q of --approve", policy), hint: "it is ask, auto-edit or full"}
		}
	}
	o.Model, err = a.model(set, c.String("script"))
	return o, err
}

// openAgent opens the workspace, making its store where there is none, and an agent in it. The
// caller closes the agent, then the world. change, which may be nil, has the last word on the
// options.
func (a *app) openAgent(c *cli.Context, change func(*agent.Options)) (*world, *agent.Controller, error) {
	o, err := a.agentOptions(c)
	if err != nil {
		return nil, nil, err
	}
	w, err := a.openOrMake(c.Context, nil)
	if err != nil {
		return nil, nil, err
	}
	ctl, err := a.controller(c.Context, w, o, change)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	return w, ctl, nil
}

func (a *app) controller(ctx context.Context, w *world, o agent.Options, change func(*agent.Options)) (*agent.Controller, error) {
	o.Capture, o.Engine = w.Capture, w.Rewind
	if a.sessionRef != "" && !o.New {
		s, err := w.session(ctx, a.sessionRef)
		if err != nil {
			return nil, err
		}
		o.Session = s.ID
	}
	if change != nil {
		change(&o)
	}
	return agent.New(o)
}

// model is the model's server, or a script that stands for one.
func (a *app) model(set config.Settings, script string) (agent.Model, error) {
	if script != "" {
		replies, err := fakellm.Load(script)
		if err != nil {
			return nil, err
		}
		return llm.New(llm.Options{HTTP: fakellm.New(fakellm.Options{Replies: replies}).Client(), Retries: 2, Backoff: 1})
	}
	key := a.env("REASONIX_API_KEY")
	if key == "" {
		key = a.env("DEEPSEEK_API_KEY")
	}
	if key == "" && set.BaseURL == "" {
		return nil, errNoKey
	}
	return llm.New(llm.Options{BaseURL: set.BaseURL, Model: set.Model, Key: key, HTTP: &http.Client{}})
}

// openOrMake opens the workspace's store; where there is none, it makes one for the folder unless
// may, which may be nil, has something against it.
func (a *app) openOrMake(ctx context.Context, may func(root string) error) (*world, error) {
	p, err := a.find()
	if errors.Is(err, place.ErrNoStore) {
		var root string
		if root, err = place.Canonical(a.dir()); err != nil {
			return nil, a.noFolder(err)
		}
		if may != nil {
			if err := may(root); err != nil {
				return nil, err
			}
		}
		p, err = a.where().Make(root)
	}
	if err != nil {
		return nil, err
	}
	return a.openWhole(ctx, p, true)
}
