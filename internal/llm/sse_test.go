package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func all(t *testing.T, text string) (got []string) {
	t.Helper()
	for data, err := range events(iotest.OneByteReader(strings.NewReader(text))) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(data))
	}
	return got
}

func TestEvents(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                       nil,
		": keep-alive\n\n":                       nil,
		"data: a\n\ndata:b\n\n":                  {"a", "b"},
		"data: a\r\n\r\ndata: b\r\n\r\n":         {"a", "b"},
		"data: a\r\rdata: b\r\r":                 {"a", "b"},
		"event: x\ndata: a\nid: 3\ndata:  b\n\n": {"a\n b"},
		"data: a\n: c\n\n\n\ndata\n\n":           {"a", ""},
		"data: no end":                           {"no end"},
		"retry: 3\n\nnonsense\n\n":               nil,
	} {
		if got := all(t, text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for _, text := range []string{"", "plain", "ü\U0001F600\"\\/\b\f\n\r\t\u2028\x01"} {
		b, _ := json.Marshal(text)
		if got := whole(unquote(b)); got != text {
			t.Errorf("%s: %q", b, got)
		}
	}
	// A pair and a character that were split between two strings.
	parts := append(unquote([]byte(`"a\ud83d"`)), unquote([]byte(`"\ude00b"`))...)
	if got := whole(parts); got != "a\U0001F600b" {
		t.Errorf("%q", got)
	}
	if got := whole(append(unquote([]byte("\"\xc3\"")), unquote([]byte("\"\xbc\""))...)); got != "ü" {
		t.Errorf("%q", got)
	}
	if got := whole(unquote([]byte(`"\ud83d x"`))); got != "\uFFFD x" {
		t.Errorf("%q", got)
	}
}

// FuzzEvents feeds streams: the same events come however the bytes arrive, and an answer that is
// put together of them is always a valid message.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n: c\r\n\r\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"x\",\"arguments\":\"\\ud83d\"}}]}}]}\n\n"))
	f.Add([]byte("data: a\rdata: b\r\r"))
	f.Fuzz(func(t *testing.T, in []byte) {
		a := &assembly{}
		var once, slow [][]byte
		for data, err := range events(bytes.NewReader(in)) {
			if err != nil {
				t.Fatal(err)
			}
			once = append(once, bytes.Clone(data))
			var c chunk
			if json.Unmarshal(data, &c) == nil && a.add(c) != nil {
				return
			}
		}
		for data, err := range events(iotest.OneByteReader(bytes.NewReader(in))) {
			if err != nil {
				t.Fatal(err)
			}
			slow = append(slow, bytes.Clone(data))
		}
		if !slices.EqualFunc(once, slow, bytes.Equal) {
			t.Fatalf("%q\n%q", once, slow)
		}
		r, err := a.reply()
		if err != nil || !json.Valid(r.Message) || !utf8.Valid(r.Message) {
			t.Fatalf("%s: %v", r.Message, err)
		}
	})
}

// FuzzUnquote compares with encoding/json where that can tell.
func FuzzUnquote(f *testing.F) {
	f.Add([]byte(`"a\u00e9\ud83d\ude00\n"`))
	f.Add([]byte(`"\ud83d"`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var want string
		if !utf8.Valid(in) || json.Unmarshal(in, &want) != nil || len(in) == 0 || in[0] != '"' || in[len(in)-1] != '"' {
			_ = whole(unquote(in))
			return
		}
		if got := whole(unquote(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	})
}
