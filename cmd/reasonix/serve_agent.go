package main

import (
	"context"
	"sync"

	"reasonix/agent"
	"reasonix/internal/serve"
)

// servedAgent is the agent of a server. Each prompt goes on with the session that is the current
// one by then, since tabs and other processes fork and switch in between.
type servedAgent struct {
	world   *world
	options agent.Options

	mu  sync.Mutex // guards ctl
	ctl *agent.Controller
}

// Submit begins a turn (serve.Agent).
func (s *servedAgent) Submit(ctx context.Context, prompt string, tell func(serve.Progress)) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctl != nil {
		if s.ctl.Running() {
			return 0, agent.ErrRunning
		}
		if err := s.ctl.Close(); err != nil {
			return 0, err
		}
		s.ctl = nil
	}
	o := s.options
	o.Capture, o.Engine = s.world.Capture, s.world.Rewind
	ctl, err := agent.New(o)
	if err != nil {
		return 0, err
	}
	s.ctl, s.options.New = ctl, false // a new session is begun once
	ctl.Subscribe(func(e agent.Event) {
		if p, ok := progressOf(e); ok {
			tell(p)
		}
	})
	return ctl.Start(ctx, prompt)
}

// Cancel stops the turn that runs (serve.Agent).
func (s *servedAgent) Cancel(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctl != nil && s.ctl.Cancel(), nil
}

// close ends the turn that runs; it is interrupted then.
func (s *servedAgent) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctl != nil {
		_ = s.ctl.Close() // what went wrong was told as an event
	}
}

// progressOf is what is told of an event; most of them are read from the history.
func progressOf(e agent.Event) (serve.Progress, bool) {
	p := serve.Progress{Session: e.Session, Turn: e.Turn, Text: e.Text}
	switch e.Kind {
	case agent.Text:
		p.Kind = "text"
	case agent.Reasoning:
		p.Kind = "reasoning"
	case agent.Noticed:
		p.Kind = "notice"
	case agent.Discarded:
		p.Kind = "discarded"
	case agent.TurnEnded:
		if e.Err == nil {
			return p, false
		}
		p.Kind = "error"
	default:
		return p, false
	}
	if e.Err != nil {
		p.Text = e.Err.Error()
	}
	return p, true
}
