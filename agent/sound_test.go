package agent

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"reasonix/store"
)

// TestSound makes conversations of messages in any order, as a crash or another program may leave
// them: what is sent answers each call once, before the conversation goes on, and one that was
// sound already is left as it is.
func TestSound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var in []store.Message
		for range random.IntN(12) {
			m := store.Message{Role: []string{"user", "assistant", "tool", "assistant"}[random.IntN(4)]}
			switch m.Role {
			case "assistant":
				text := `{"role":"assistant","content":"x","tool_calls":[`
				for i := range random.IntN(3) {
					if i > 0 {
						text += ","
					}
					text += fmt.Sprintf(`{"id":"c%d"}`, random.IntN(3)*10+i)
				}
				m.JSON = []byte(text + "]}")
			case "tool":
				m.JSON = answer(fmt.Sprintf("c%d", random.IntN(3)*10+random.IntN(2)), "ok")
			default:
				m.JSON = say("x")
			}
			in = append(in, m)
		}
		out, open := sound(in)
		for _, id := range open {
			out = append(out, answer(id, interruptedText))
		}
		var again []store.Message
		waiting := []string{}
		for _, raw := range out {
			var p peek
			if err := json.Unmarshal(raw, &p); err != nil {
				t.Fatal(err)
			}
			if p.Role == "tool" {
				at := slices.Index(waiting, p.CallID)
				if at < 0 {
					t.Fatalf("an answer to nothing: %s", out)
				}
				waiting = slices.Delete(waiting, at, at+1)
			} else if len(waiting) > 0 {
				t.Fatalf("%v unanswered: %s", waiting, out)
			}
			for _, c := range p.ToolCalls {
				waiting = append(waiting, c.ID)
			}
			again = append(again, store.Message{Role: p.Role, JSON: raw})
		}
		if len(waiting) > 0 {
			t.Fatalf("%v unanswered at the end: %s", waiting, out)
		}
		same, left := sound(again)
		if len(left) > 0 || !slices.EqualFunc(same, out, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Fatalf("a sound conversation was changed: %s\n%s", out, same)
		}
	}
}
