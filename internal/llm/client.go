package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client asks one model of one server. It is safe for concurrent use.
type Client struct{ o Options }

// New makes a client. It sends nothing.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("read the base URL: %q is no http or https address", o.BaseURL)
	}
	return &Client{o: o}, nil
}

// Model is the name of the model that is asked.
func (c *Client) Model() string { return c.o.Model }

// Complete asks, tells emit of each piece as it comes, and returns the whole answer. Passing
// failures are retried; what came of a broken answer is void then, and emit is told so. emit may
// be nil. Errors are an *Error, or the cause with which ctx ended; then Reply holds content and
// reasoning as far as they came, and no message.
func (c *Client) Complete(ctx context.Context, r Request, emit func(Delta)) (Reply, error) {
	body, err := c.body(r)
	if err != nil {
		return Reply{}, fmt.Errorf("make a request: %w", err)
	}
	for try := 1; ; try++ {
		reply, err := c.once(ctx, body, emit)
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return reply, context.Cause(ctx)
		}
		var e *Error
		if !errors.As(err, &e) {
			return Reply{}, err
		}
		e.Tries = try
		if !e.Retryable() || try > c.o.Retries {
			return Reply{}, e
		}
		pause := c.pause(try, e.retryAfter)
		if emit != nil {
			emit(Delta{Again: e, Wait: pause})
		}
		if err := c.o.Wait(ctx, pause); err != nil {
			return Reply{}, err
		}
	}
}

// maxPause bounds the wait between two tries, whatever a server asks for.
const maxPause = time.Minute

// pause is the wait before the next try: what the server asked for, else half to one and a half
// times a wait that doubles, so that many clients do not come back at once.
func (c *Client) pause(try int, asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, 5*maxPause)
	}
	d := min(c.o.Backoff<<min(try-1, 10), maxPause)
	return d/2 + time.Duration(c.o.Jitter()*float64(d))
}

// once sends the request one time.
func (c *Client) once(ctx context.Context, body []byte, emit func(Delta)) (Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(c.o.Begin, func() { cancel(errStalled) })
	defer watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.BaseURL+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return Reply{}, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	res, err := c.o.HTTP.Do(req)
	if err != nil {
		return Reply{}, c.broken(ctx, err, Unreachable)
	}
	defer res.Body.Close()
	in := &watched{r: res.Body, alive: func() { watch.Reset(c.o.Idle) }}
	in.alive()
	if res.StatusCode != http.StatusOK {
		return Reply{}, c.refused(res, in)
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/event-stream" {
		return c.stream(ctx, in, emit)
	}
	return c.single(ctx, in, emit)
}

// stream reads an answer that comes in pieces. Only its end makes it whole.
func (c *Client) stream(ctx context.Context, in io.Reader, emit func(Delta)) (Reply, error) {
	a := &assembly{emit: emit}
	for data, err := range events(in) {
		if err != nil {
			return a.partial(), c.broken(ctx, err, Cut)
		}
		if string(bytes.TrimSpace(data)) == "[DONE]" {
			break
		}
		var ch chunk
		if err := json.Unmarshal(data, &ch); err != nil {
			return a.partial(), &Error{Kind: Malformed, Message: "the answer is malformed", err: err}
		}
		if len(ch.Error) > 0 && string(ch.Error) != "null" {
			return a.partial(), &Error{Kind: ServerError, Message: c.said(data)}
		}
		if err := a.add(ch); err != nil {
			return a.partial(), &Error{Kind: Malformed, Message: "the answer is malformed: " + err.Error()}
		}
	}
	switch a.finish {
	case "":
		return a.partial(), &Error{Kind: Cut, Message: "the answer ended before its end"}
	case FinishNoResource:
		return a.partial(), &Error{Kind: Overloaded, Message: "the server broke the answer off for lack of resources"}
	}
	return a.reply()
}

func (a *assembly) partial() Reply {
	return Reply{Content: whole(a.content), Reasoning: whole(a.reasoning)}
}

// single reads an answer of a server that does not stream; blank lines before it are signs of
// life.
func (c *Client) single(ctx context.Context, in io.Reader, emit func(Delta)) (Reply, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxEvent))
	if err != nil {
		return Reply{}, c.broken(ctx, err, Cut)
	}
	var ch chunk
	if err := json.Unmarshal(b, &ch); err != nil {
		return Reply{}, &Error{Kind: Malformed, Message: "the answer is malformed", err: err}
	}
	if len(ch.Error) > 0 && string(ch.Error) != "null" {
		return Reply{}, &Error{Kind: ServerError, Message: c.said(b)}
	}
	r, err := wholeReply(ch)
	switch {
	case err != nil:
		return Reply{}, &Error{Kind: Malformed, Message: "the answer is malformed", err: err}
	case r.Finish == FinishNoResource:
		return Reply{}, &Error{Kind: Overloaded, Message: "the server broke the answer off for lack of resources"}
	}
	if emit != nil {
		if r.Reasoning != "" {
			emit(Delta{Reasoning: r.Reasoning})
		}
		if r.Content != "" {
			emit(Delta{Content: r.Content})
		}
	}
	return r, nil
}

// broken is a connection that failed.
func (c *Client) broken(ctx context.Context, err error, kind Kind) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return &Error{Kind: Stalled, Message: "the server went silent", err: errStalled}
	}
	if errors.Is(err, errTooLong) {
		return &Error{Kind: Malformed, Message: "the answer is malformed", err: err}
	}
	text := "the connection broke"
	if kind == Unreachable {
		text = "no connection to " + c.o.BaseURL
		var op *url.Error
		if errors.As(err, &op) {
			text += ": " + op.Err.Error()
		}
	}
	return &Error{Kind: kind, Message: c.without(text), err: err}
}

// refused is an answer that is an error.
func (c *Client) refused(res *http.Response, in io.Reader) error {
	b, _ := io.ReadAll(io.LimitReader(in, 64<<10)) // what cannot be read is not told
	e := ofStatus(res.StatusCode, c.said(b))
	if e.Message == "" {
		e.Message = strings.ToLower(http.StatusText(res.StatusCode))
	}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		e.retryAfter = time.Duration(s) * time.Second
	} else if at, err := http.ParseTime(res.Header.Get("Retry-After")); err == nil {
		if now, err := http.ParseTime(res.Header.Get("Date")); err == nil { // by the server's own clock
			e.retryAfter = max(at.Sub(now), 0)
		}
	}
	return e
}

// said is the message in an error's body.
func (c *Client) said(body []byte) string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &e) == nil && len(e.Error) > 0 {
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(e.Error, &inner) == nil {
			text = inner.Message
		} else {
			text = string(unquote(e.Error))
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if runes := []rune(text); len(runes) > 500 {
		text = string(runes[:500]) + "…"
	}
	return c.without(text)
}

// without takes the key out of a text.
func (c *Client) without(text string) string {
	if c.o.Key == "" {
		return text
	}
	return strings.ReplaceAll(text, c.o.Key, "[key]")
}

// watched tells of each read that brought something.
type watched struct {
	r     io.Reader
	alive func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.alive()
	}
	return n, err
}
