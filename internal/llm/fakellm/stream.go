package fakellm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// give answers with a reply.
func (s *Server) give(w http.ResponseWriter, r *http.Request, req Request, reply Reply) {
	if f := reply.Error; f != nil {
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		message := f.Message
		if message == "" {
			message = http.StatusText(f.Status)
		}
		fail(w, f.Status, message)
		return
	}
	for i := range reply.ToolCalls {
		if reply.ToolCalls[i].ID == "" {
			reply.ToolCalls[i].ID = fmt.Sprintf("call_%d_%d", s.count(), i)
		}
	}
	if reply.Whole || !req.Stream {
		s.whole(w, req, reply)
		return
	}
	s.stream(w, r, s.script(req, reply), reply)
}

func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// stream sends events, and breaks off where the reply says so.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, events []string, reply Reply) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	out := http.NewResponseController(w)
	fmt.Fprint(w, ": keep-alive\n\n")
	for i, e := range events {
		if reply.Cut > 0 && i == reply.Cut {
			panic(http.ErrAbortHandler) // closes the connection without an end
		}
		if reply.Stall > 0 && i == reply.Stall {
			_ = out.Flush()
			select {
			case <-r.Context().Done():
			case <-s.gone:
			}
			return
		}
		if i == len(events)/2 {
			fmt.Fprint(w, ": keep-alive\n\n")
			if reply.Garbage != "" {
				fmt.Fprintf(w, "data: %s\n\n", reply.Garbage)
			}
		}
		fmt.Fprintf(w, "data: %s\n\n", e)
		if out.Flush() != nil {
			return // the client went away
		}
	}
	if reply.Cut > 0 {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// script is a reply as events: reasoning, text, and the calls' arguments in turns.
func (s *Server) script(req Request, reply Reply) []string {
	all := []string{event(`"role":"assistant","content":""`)}
	if req.Thinking.Type != "disabled" {
		all = append(all, event(`"reasoning_content":""`))
	}
	for _, part := range s.split(reply.Reasoning, reply.SplitBytes) {
		all = append(all, event(`"reasoning_content":`+part))
	}
	for _, part := range s.split(reply.Text, reply.SplitBytes) {
		all = append(all, event(`"content":`+part))
	}
	all = append(all, s.calls(reply)...)
	finish, _ := json.Marshal(reply.finish())
	all = append(all, fmt.Sprintf(`{"id":"fake","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":%s}]}`, finish))
	return append(all, fmt.Sprintf(`{"id":"fake","object":"chat.completion.chunk","choices":[],"usage":%s}`, usage(req, reply)))
}

// calls interleaves the fragments of parallel calls.
func (s *Server) calls(reply Reply) (all []string) {
	rest := make([][]string, len(reply.ToolCalls))
	for i, c := range reply.ToolCalls {
		args, _ := c.arguments() // checked when the script was read
		rest[i] = s.split(args, reply.SplitBytes)
		name, _ := json.Marshal(c.Name)
		id, _ := json.Marshal(c.ID)
		head := fmt.Sprintf(`"id":%s,"type":"function",`, id)
		if reply.NoIDs {
			head = ""
		}
		all = append(all, event(fmt.Sprintf(`"tool_calls":[{"index":%d,%s"function":{"name":%s,"arguments":""}}]`, i, head, name)))
	}
	for more := true; more; {
		more = false
		for i := range rest {
			if len(rest[i]) == 0 {
				continue
			}
			all = append(all, event(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, rest[i][0])))
			rest[i], more = rest[i][1:], true
		}
	}
	return all
}

func event(delta string) string {
	return `{"id":"fake","object":"chat.completion.chunk","choices":[{"index":0,"delta":{` + delta + `},"finish_reason":null}]}`
}

// split cuts a text into JSON strings. Characters stay whole unless within is set; then the
// parts hold pieces of them, raw.
func (s *Server) split(text string, within bool) (parts []string) {
	for len(text) > 0 {
		n := min(s.o.Chunk, len(text))
		for !within && n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		parts = append(parts, quote(text[:n]))
		text = text[n:]
	}
	return parts
}

// quote is a JSON string; bytes that are no character stay as they are.
func quote(part string) string {
	var b bytes.Buffer
	b.WriteByte('"')
	for i := range len(part) {
		switch c := part[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (r Reply) finish() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.ToolCalls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func usage(req Request, reply Reply) string {
	total, hit := req.Total, req.Hit
	done := int64(len(reply.Text)+len(reply.Reasoning))/4 + 1
	if u := reply.Usage; u != nil {
		total, done = u.Prompt, u.Completion
		hit = min(hit, total)
	}
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_cache_hit_tokens":%d,"prompt_cache_miss_tokens":%d,"completion_tokens_details":{"reasoning_tokens":%d}}`,
		total, done, total+done, hit, total-hit, len(reply.Reasoning)/4)
}

// whole answers in one piece.
func (s *Server) whole(w http.ResponseWriter, req Request, reply Reply) {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type call struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	message := map[string]any{"role": "assistant", "content": reply.Text, "reasoning_content": reply.Reasoning}
	var calls []call
	for _, c := range reply.ToolCalls {
		args, _ := c.arguments()
		calls = append(calls, call{c.ID, "function", function{c.Name, args}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	b, _ := json.Marshal(map[string]any{
		"id": "fake", "object": "chat.completion", "usage": json.RawMessage(usage(req, reply)),
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": reply.finish()}},
	})
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, "\n\n\n%s", b)
}
