package fakellm

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	all, err := Parse([]byte("# a script\n\n{\"text\":\"hi\"}\n{\"tool_calls\":[{\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}},{\"name\":\"x\",\"arguments\":\"{oops\"}]}\n"))
	if err != nil || len(all) != 2 || all[0].Text != "hi" || len(all[1].ToolCalls) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if args, _ := all[1].ToolCalls[1].arguments(); args != "{oops" {
		t.Errorf("%q", args)
	}
	for _, bad := range []string{
		"{", `{"txt":"a typo"}`, `{} {}`, `[]`, `{"error":{"status":200}}`, `{"cut":-1}`,
		`{"tool_calls":[{"arguments":{}}]}`, `{"tool_calls":[{"name":"x","arguments":3}]}`,
	} {
		_, err := Parse([]byte("{}\n" + bad))
		if !errors.Is(err, ErrScript) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// FuzzParse: whatever is taken can be sent.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"text":"x","reasoning":"y","tool_calls":[{"name":"a","arguments":"{"}],"cut":1}`))
	f.Add([]byte("# c\n\n{}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		all, err := Parse(in)
		if err != nil {
			if !errors.Is(err, ErrScript) {
				t.Fatal(err)
			}
			return
		}
		s := &Server{o: Options{Chunk: 3}}
		for _, r := range all {
			if len(s.script(Request{}, r)) == 0 {
				t.Fatal("no events")
			}
		}
	})
}
