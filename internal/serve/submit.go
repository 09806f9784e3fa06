package serve

import (
	"context"
	"net/http"
	"strings"
)

var errNoAgent = refuse(http.StatusConflict, "not_configured", "no agent is configured: this server shows recorded sessions",
	"configure a model, or start the server with --script FILE")

func (s *Server) submit(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Prompt *string `json:"prompt"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	if in.Prompt == nil || strings.TrimSpace(*in.Prompt) == "" {
		return badRequest("the prompt is missing")
	}
	if s.o.Agent == nil {
		return errNoAgent
	}
	turn, err := s.o.Agent.Submit(context.WithoutCancel(r.Context()), *in.Prompt, func(p Progress) {
		s.hub.publish("progress", p)
	})
	if err != nil {
		return err
	}
	s.watcher.poke()
	s.write(w, http.StatusAccepted, map[string]int{"turn": turn})
	return nil
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	if err := decode(r, &struct{}{}); err != nil {
		return err
	}
	if s.o.Agent == nil {
		return errNoAgent
	}
	was, err := s.o.Agent.Cancel(r.Context())
	if err != nil {
		return err
	}
	s.watcher.poke()
	return s.ok(w, map[string]bool{"cancelled": was})
}
