package agent

import (
	"context"
	"errors"
	"fmt"
	"os"

	"reasonix/internal/capture"
	"reasonix/internal/llm"
	"reasonix/internal/llm/fakellm"
	"reasonix/internal/place"
	"reasonix/rewind"
)

// UserStore as Options.Store is the store that the reasonix command uses for the workspace.
const UserStore = "user"

// open opens the workspace, unless it was given.
func (c *Controller) open(ctx context.Context) error {
	if c.o.Capture != nil {
		c.capture, c.engine = c.o.Capture, c.o.Engine
		c.shut = func() error { return nil }
		if c.engine == nil {
			c.engine = rewind.New(c.capture, rewind.Options{})
		}
		return nil
	}
	dir := c.o.Dir
	if dir == "" {
		dir = "."
	}
	root, err := place.Canonical(dir)
	if err != nil {
		return err
	}
	where, gone := place.FromEnv(os.Getenv), func() error { return nil }
	switch c.o.Store {
	case UserStore:
	case "":
		c.memory = true
		if where.Store, gone, err = place.Scratch(); err != nil {
			return err
		}
	default:
		where.Store = c.o.Store
	}
	p, err := where.Find(root)
	if errors.Is(err, place.ErrNoStore) {
		p, err = where.Make(root)
	}
	if err != nil {
		return errors.Join(err, gone())
	}
	o, err := p.Open(ctx, place.Options{Create: p.Root != "", Dir: root})
	if err != nil {
		return errors.Join(fmt.Errorf("open the store of %s: %w", root, err), gone())
	}
	c.capture = &capture.Capturer{Store: o.Store, Root: o.Root, Scanning: capture.Scanning{Never: where.NotScanned(o.Root.Path())}}
	c.engine = rewind.New(c.capture, rewind.Options{})
	c.shut = func() error { return errors.Join(o.Close(), gone()) }
	return nil
}

// Connect makes a Model of a server that speaks chat completions. An empty base URL or name
// means DeepSeek's. The key goes into requests and nowhere else.
func Connect(baseURL, name, key string) (Model, error) {
	return llm.New(llm.Options{BaseURL: baseURL, Model: name, Key: key})
}

// Script makes a Model that answers from a script (docs/agent.md), without a network. Errors
// are those of the script's text.
func Script(text []byte) (Model, error) {
	replies, err := fakellm.Parse(text)
	if err != nil {
		return nil, err
	}
	return llm.New(llm.Options{HTTP: fakellm.New(fakellm.Options{Replies: replies}).Client(), Retries: 1, Backoff: 1})
}
