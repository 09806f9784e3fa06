package agent

import (
	"context"
	"fmt"

	"reasonix/internal/tool"
)

// Policy says what tools may do without asking. Reading never asks.
type Policy string

// The policies.
const (
	Ask      Policy = "ask"       // edits and commands are asked for
	AutoEdit Policy = "auto-edit" // commands are
	Full     Policy = "full"      // nothing is
)

// ParsePolicy reads a policy's name.
func ParsePolicy(name string) (Policy, error) {
	p := Policy(name)
	return p, p.check()
}

func (p Policy) check() error {
	switch p {
	case Ask, AutoEdit, Full:
		return nil
	}
	return fmt.Errorf("%q is no policy, it is ask, auto-edit or full: %w", string(p), ErrInvalid)
}

func (p Policy) allows(k tool.Kind) bool {
	return k == tool.Read || p == Full || p == AutoEdit && k == tool.Edit
}

// Approval is what a person is asked.
type Approval struct {
	ID      string // of the call
	Tool    string
	Kind    tool.Kind
	Args    string
	Preview tool.Preview
}

// Decision is what the person answers. The zero value refuses.
type Decision struct {
	Allow bool
	// Always allows all calls of this kind from now on, as long as the Controller lives.
	Always bool
	Reason string // of a refusal, for the model
}

// approve says why a call may not run; "" when it may.
func (c *Controller) approve(ctx context.Context, a Approval) (refused string, err error) {
	c.mu.Lock()
	ok := c.policy.allows(a.Kind) || c.allowed[a.Kind]
	policy := c.policy
	c.mu.Unlock()
	if ok {
		return "", nil
	}
	if c.o.Approve == nil {
		return fmt.Sprintf("Not allowed: the policy is %q and nobody is there to ask.", policy), nil
	}
	d, err := c.o.Approve(ctx, a)
	switch {
	case err != nil:
		return "", err
	case !d.Allow && d.Reason != "":
		return "The user refused this call: " + d.Reason, nil
	case !d.Allow:
		return "The user refused this call.", nil
	}
	if d.Always {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.allowed[a.Kind] = true
	}
	return "", nil
}
