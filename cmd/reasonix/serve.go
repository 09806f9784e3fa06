package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"reasonix/agent"
	"reasonix/internal/serve"
)

func serveCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "serve",
		Usage:    "show and move sessions in a web page, and answer programs over HTTP",
		Category: "other",
		Description: "Prints the URL of the page, with a token that is made anew at each start. Programs send it as\n" +
			"Authorization: Bearer TOKEN. With --auth none no token is asked, which is allowed on this machine's\n" +
			"own addresses only. Another address needs a --token of your own. docs/http.md describes the API.\n" +
			"Where a model's key or a --script is given, prompts can be submitted. Nobody can be asked there, so\n" +
			"--approve says what the agent may do.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "addr", Usage: "listen on `HOST:PORT`; port 0 takes a free one", Value: "127.0.0.1:8080"},
			&cli.StringFlag{Name: "auth", Usage: "token or none", Value: "token"},
			&cli.StringFlag{Name: "token", Usage: "`TOKEN` to ask for, at least 16 characters; better given as REASONIX_TOKEN, which other users cannot see"},
			&cli.StringSliceFlag{Name: "host", Usage: "also answer to `NAME`, such as that of a proxy; may be repeated"},
		}, agentFlags()...),
		Action: a.serve,
	}
}

// minToken is the length of the shortest token that is taken from a person.
const minToken = 16

func (a *app) serve(c *cli.Context) error {
	if c.Args().Present() {
		return badUsage("serve takes no arguments")
	}
	token, err := a.tokenOf(c)
	if err != nil {
		return err
	}
	ln, err := a.listen(c, token)
	if err != nil {
		return err
	}
	defer ln.Close()
	o, err := a.agentOptions(c)
	if err != nil && !errors.Is(err, errNoKey) {
		return err
	}
	w, err := a.openServed(c, o)
	if err != nil {
		return err
	}
	defer w.Close()
	options := a.serveOptions(c, w)
	if o.Model != nil {
		runs := &servedAgent{world: w, options: o}
		defer runs.close()
		options.Agent, options.Policy = runs, cmp.Or(string(o.Policy), string(agent.Ask))
	}
	if token == "" && c.String("auth") == "token" {
		token = serve.NewToken()
	}
	options.Token = token
	if err := a.announce(ln, token); err != nil {
		return err
	}
	if o.Model != nil && (o.Policy == "" || o.Policy == agent.Ask) {
		a.note("the agent can only read: --approve auto-edit or full lets it do more")
	}
	return serve.New(options).Serve(c.Context, ln)
}

// openServed opens the workspace; an agent needs none that is there already.
func (a *app) openServed(c *cli.Context, o agent.Options) (*world, error) {
	if o.Model == nil {
		return a.open(c)
	}
	return a.openOrMake(c.Context, nil)
}

// tokenOf is the token that the user gives; "" when one is to be made, or none is asked.
func (a *app) tokenOf(c *cli.Context) (string, error) {
	token := c.String("token")
	if !c.IsSet("token") {
		token = a.env("REASONIX_TOKEN")
	}
	switch auth := c.String("auth"); {
	case auth != "token" && auth != "none":
		return "", badUsage("unknown value %q of --auth: it is token or none", auth)
	case auth == "none" && c.IsSet("token"):
		return "", badUsage("--auth none asks for no token: leave --token out")
	case auth == "none":
		return "", nil
	case token == "" && c.IsSet("token"), token != "" && len(token) < minToken:
		return "", badUsage("a token has at least %d characters", minToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`",;\`, r) }):
		return "", badUsage("a token consists of visible ASCII characters other than \" , ; and \\")
	}
	return token, nil
}

// listen opens the address. What others could reach needs a token that its user knows.
func (a *app) listen(c *cli.Context, token string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(c.Context, "tcp", c.String("addr"))
	if err != nil {
		return nil, withHint(fmt.Errorf("listen on %s: %w", c.String("addr"), err), "--addr 127.0.0.1:0 takes a free port")
	}
	if ip := ln.Addr().(*net.TCPAddr).IP; ip.IsLoopback() || token != "" {
		if !ip.IsLoopback() {
			a.note("warning: what goes over the network is not encrypted; put a proxy with TLS before it")
		}
		return ln, nil
	}
	_ = ln.Close()
	if c.String("auth") == "none" {
		return nil, badUsage("--auth none is for addresses of this machine alone, such as 127.0.0.1:8080")
	}
	return nil, badUsage("an address that others reach needs a token of your own: --token, or REASONIX_TOKEN")
}

func (a *app) announce(ln net.Listener, token string) error {
	addr := ln.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: addr.Port}
	}
	at := url.URL{Scheme: "http", Host: addr.String(), Path: "/"}
	if token != "" {
		at.RawQuery = url.Values{"token": {token}}.Encode()
	}
	out := serveJSON{URL: at.String(), Addr: ln.Addr().String(), Token: token}
	err := a.emit(out, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, out.URL)
		return err
	})
	if err == nil {
		a.note("serving until interrupted (process %d)", os.Getpid())
	}
	return err
}

// serveJSON is printed once, when the server listens.
type serveJSON struct {
	URL   string `json:"url"`
	Addr  string `json:"addr"`
	Token string `json:"token"`
}

func (a *app) serveOptions(c *cli.Context, w *world) serve.Options {
	nested, err := a.where().Nested(context.WithoutCancel(c.Context), w.Root.Path())
	if err != nil {
		a.note("other stores could not be listed: %v", err)
	}
	return serve.Options{
		Capture: w.Capture, Engine: w.Rewind, Hosts: c.StringSlice("host"), Nested: nested,
		Version: version, Now: a.now, Log: a.note,
	}
}
