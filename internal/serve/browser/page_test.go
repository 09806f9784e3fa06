package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"reasonix/internal/serve"
	"reasonix/internal/worldtest"
	"reasonix/rewind"
	"reasonix/store"
)

func message(role, content string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"role": role, "content": content})
	return raw
}

// project is a small history as an agent makes one.
func project(t testing.TB) *worldtest.World {
	w := worldtest.New(t)
	w.Turn("Set up the project with a main package and a greeting", []json.RawMessage{message("user", "Set up the project"), message("assistant", "I made two files.")}, func() {
		w.Write("main.go", "package main\n\nfunc main() {\n\tgreet()\n}\n", 0o644)
		w.Write("greet.go", "package main\n\nimport \"fmt\"\n\nfunc greet() { fmt.Println(\"hello\") }\n", 0o644)
	})
	w.Turn("Greet people by their name", []json.RawMessage{message("user", "Greet people by their name")}, func() {
		w.Write("greet.go", "package main\n\nimport \"fmt\"\n\n// greet says hello to a person.\nfunc greet(name string) { fmt.Printf(\"hello, %s\\n\", name) }\n", 0o644)
		w.Write("main.go", "package main\n\nimport \"os\"\n\nfunc main() {\n\tgreet(os.Args[1])\n}\n", 0o644)
	})
	w.Turn("What would you test here?", []json.RawMessage{message("user", "What would you test?"), message("assistant", "The empty name, and names with blanks.")}, func() {})
	w.Turn("Write those tests, and remove the old notes", []json.RawMessage{message("user", "Write those tests")}, func() {
		w.Write("greet_test.go", "package main\n\nimport \"testing\"\n\nfunc TestGreet(t *testing.T) { greet(\"\") }\n", 0o644)
		w.Write("docs/notes.md", "# Notes\n\nNothing yet.\n", 0o644)
	})
	return w
}

func (b *tab) file(name string) string {
	raw, err := os.ReadFile(b.Abs(name))
	if err != nil {
		return "absent"
	}
	return string(raw)
}

// TestOpenPickRestoreUndo goes the way of a person: picks a turn, looks at its difference, sees what each
// restore would do before it is done, and undoes it.
func TestOpenPickRestoreUndo(t *testing.T) {
	b := open(t, project(t), nil)
	b.wait(`document.querySelectorAll(".turn").length === 4`)
	b.shot("light")
	b.pick(1)
	b.click("#detail .file summary")
	b.wait(`document.querySelector("#detail .diff .added")`)
	if text := b.text("#detail .diff"); !strings.Contains(text, "greet says hello to a person") {
		t.Errorf("the difference: %q", text)
	}
	b.shot("diff")
	now := b.file("greet.go")

	b.button("#detail .actions", "Restore code")
	b.wait(`document.querySelector("#dialog[open] .plan-list")`)
	plan := b.text("#dialog")
	for _, want := range []string{"Will be written", "main.go", "Will be deleted", "greet_test.go", "docs/notes.md"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the dry run does not say %q:\n%s", want, plan)
		}
	}
	b.shot("dry-run")
	if b.file("greet.go") != now {
		t.Fatal("a dry run wrote a file")
	}
	b.button("#dialog", "Restore")
	b.wait(`!document.querySelector("#undo").hidden && document.querySelector("#undo").textContent.includes("Restored")`)
	if got := b.file("greet.go"); !strings.Contains(got, `"hello"`) || b.file("greet_test.go") != "absent" {
		t.Errorf("after the restore: %q", got)
	}
	b.shot("undo-bar")
	b.button("#undo", "Undo")
	b.button("#dialog", "Undo")
	b.wait(`document.querySelector("#undo").textContent.includes("Undone")`)
	if b.file("greet.go") != now {
		t.Errorf("after undo: %q", b.file("greet.go"))
	}
	b.button("#undo", "Redo")
	b.button("#dialog", "Redo")
	b.wait(`document.querySelector("#undo").textContent.includes("Done again")`)
	b.button("#undo", "Undo")
	b.button("#dialog", "Undo")
	b.wait(`document.querySelector("#undo").textContent.includes("Undone")`)

	b.pick(3)
	b.key("m")
	b.button("#dialog", "Restore")
	b.wait(`document.querySelectorAll(".turn").length === 3`)
	if b.file("greet_test.go") == "absent" {
		t.Error("a restore of the conversation took a file")
	}
	b.key("u")
	b.button("#dialog", "Undo")
	b.wait(`document.querySelectorAll(".turn").length === 4`)

	b.pick(1)
	b.key("b")
	b.button("#dialog", "Restore")
	b.wait(`document.querySelectorAll(".turn").length === 1`)
	if got := b.file("greet.go"); !strings.Contains(got, `"hello"`) {
		t.Errorf("after restoring both: %q", got)
	}
}

// TestConflictsForkAndSwitch meets a hand edit, leaves it and forces over it, then forks and switches.
func TestConflictsForkAndSwitch(t *testing.T) {
	w := project(t)
	w.Put("greet.go", "by hand\n", 0o644)
	b := open(t, w, nil)
	b.pick(1)
	b.button("#detail .actions", "Restore code")
	b.wait(`document.querySelector("#dialog .conflicts")`)
	if text := b.text("#dialog .conflicts"); !strings.Contains(text, "greet.go") || !strings.Contains(text, "somebody else") {
		t.Errorf("the conflict: %q", text)
	}
	b.shot("conflict")
	b.button("#dialog", "Leave those alone")
	b.button("#dialog", "Restore")
	b.wait(`document.querySelector("#undo").textContent.includes("Restored")`)
	if b.file("greet.go") != "by hand\n" || strings.Contains(b.file("main.go"), "os.Args") {
		t.Errorf("after skipping: %q, %q", b.file("greet.go"), b.file("main.go"))
	}
	b.button("#undo", "Undo")
	b.button("#dialog", "Undo")
	b.wait(`document.querySelector("#undo").textContent.includes("Undone")`)
	b.button("#detail .actions", "Restore code")
	b.button("#dialog", "Overwrite them")
	b.button("#dialog", "Restore")
	b.wait(`document.querySelector("#undo").textContent.includes("Restored")`)
	if !strings.Contains(b.file("greet.go"), `"hello"`) {
		t.Errorf("after forcing: %q", b.file("greet.go"))
	}
	b.button("#undo", "Undo")
	b.button("#dialog", "Undo")
	b.wait(`document.querySelector("#undo").textContent.includes("Undone")`)
	if b.file("greet.go") != "by hand\n" {
		t.Errorf("the hand edit did not come back: %q", b.file("greet.go"))
	}

	b.pick(2)
	b.key("f")
	b.wait(`document.querySelector("#fork-name")`)
	eval[bool](b, `(document.querySelector("#fork-name").value = "other way", document.querySelector("#fork-name").dispatchEvent(new Event("input")), true)`)
	b.button("#dialog", "Fork")
	b.wait(`document.querySelector("#undo").textContent.includes("Forked")`)
	b.wait(`document.querySelectorAll(".turn").length === 2`)
	b.click("#view-tree")
	b.wait(`document.querySelectorAll(".branch").length === 2`)
	if text := b.text("#list-tree"); !strings.Contains(text, "other way") || !strings.Contains(text, "forked at turn 2") {
		t.Errorf("the tree: %q", text)
	}
	b.shot("tree")
	b.button("#list-tree", "Switch")
	b.button("#dialog", "Switch")
	b.wait(`document.querySelector("#undo").textContent.includes("Switched")`)
	b.click("#view-ops")
	b.wait(`document.querySelectorAll(".op").length >= 5`)
	b.shot("operations")
	b.click("#view-turns")
	b.wait(`document.querySelectorAll(".turn").length === 4`)
}

// TestHostileTextsStayText records what would be markup, or deceive, in every place that is shown.
func TestHostileTextsStayText(t *testing.T) {
	w := worldtest.New(t)
	const evil = `<img src=x onerror="document.title='owned'"></script><script>document.title='owned'</script>`
	prompt := evil + "\n\u202egnp.exe\u0007"
	w.Turn(prompt, []json.RawMessage{message("user", prompt), message(`assistant"><b>`, evil), json.RawMessage(`{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"<b>","arguments":"` + "<i>" + `"}}]}`)}, func() {
		w.Write(`<b onmouseover=alert(1)>.txt`, evil+"\n\u2066x\u0000y\n", 0o644)
		w.Write("caf\xe9 & \"quotes\".txt", evil, 0o644)
		w.Write("text.html", evil+"\nline\u202e two\n", 0o644)
	})
	b := open(t, w, nil)
	b.pick(0)
	for range 3 {
		eval[bool](b, `([...document.querySelectorAll("#detail details.file")].forEach((d) => { d.open = true; }), true)`)
	}
	b.wait(`document.querySelector("#detail .diff .added")`)
	b.click(`[data-tab="talk"]`)
	b.wait(`document.querySelectorAll(".message").length === 3`)
	b.shot("hostile-talk")
	text := b.text("#detail")
	for _, want := range []string{"<img src=x onerror", "⟨U+202E⟩gnp.exe␇", "</script>"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown as it is:\n%s", want, text)
		}
	}
	b.click(`[data-tab="files"]`)
	b.wait(`document.querySelectorAll("#detail .file").length === 3`)
	b.shot("hostile-files")
	if n := eval[int](b, `document.querySelectorAll("#detail img, #detail b, #detail script, .timeline img, .timeline script").length`); n != 0 {
		t.Errorf("%d elements came out of texts", n)
	}
	b.button("#detail .actions", "Restore both")
	b.wait(`document.querySelector("#dialog .plan-list")`)
	if n := eval[int](b, `document.querySelectorAll("#dialog img, #dialog b").length`); n != 0 {
		t.Errorf("%d elements came out of names", n)
	}
	if title := eval[string](b, "document.title"); strings.Contains(title, "owned") {
		t.Error("a script of a text ran")
	}
}

// TestManyTurns scrolls through ten thousand turns, of which only what can be seen is there.
func TestManyTurns(t *testing.T) {
	w := worldtest.New(t)
	const turns = 10_000
	for done := 0; done < turns; {
		w.Must(w.Capture.Store.Update(t.Context(), func(tx *store.WriteTx) error {
			for range 1000 {
				if _, err := tx.BeginTurn(w.ID, "", fmt.Sprintf("prompt number %d", done)); err != nil {
					return err
				}
				if err := tx.EndTurn(w.ID, store.TurnDone); err != nil {
					return err
				}
				done++
			}
			return nil
		}))
	}
	b := open(t, w, nil)
	b.wait(`document.querySelector('[data-turn="9999"] .prompt')?.textContent === "prompt number 9999"`)
	eval[bool](b, `(document.querySelector("#timeline").scrollTop = 5000 * 68, true)`)
	b.wait(`document.querySelector('[data-turn="4995"] .prompt')?.textContent === "prompt number 4995"`)
	if n := eval[int](b, `document.querySelectorAll(".turn").length`); n > 60 {
		t.Errorf("%d rows for what can be seen", n)
	}
	b.key("G")
	b.wait(`document.querySelector('[data-turn="0"] .prompt')?.textContent === "prompt number 0"`)
	b.wait(`document.querySelector("#detail h1")?.textContent.startsWith("Turn 0")`)
	b.key("k")
	b.wait(`document.querySelector("#detail h1")?.textContent.startsWith("Turn 1")`)
	b.key("/")
	b.wait(`document.activeElement.id === "search"`)
	b.key("number 77")
	b.wait(`document.querySelector("#search").value === "number 77"`)
	b.wait(`document.querySelector(".turn .prompt")?.textContent === "prompt number 7799"`)
	b.wait(`[...document.querySelectorAll(".turn .prompt")].every((e) => e.textContent.includes("number 77"))`)
	b.shot("search")
}

// TestNewsFromElsewhere has another process of the workspace record and rewind.
func TestNewsFromElsewhere(t *testing.T) {
	b := open(t, project(t), nil)
	b.pick(2)
	b.Turn("Another turn, by another program", nil, func() { b.Write("new.txt", "x\n", 0o644) })
	b.wait(`document.querySelector('[data-turn="4"]')`)
	b.wait(`document.querySelector("#detail h1").textContent.startsWith("Turn 2")`) // what is read stays
	b.Apply(rewind.Request{Kind: store.OpRewind, Turn: 3, Scope: store.Both})
	b.wait(`document.querySelectorAll(".turn").length === 3`)
	b.wait(`document.querySelector("#undo").textContent.includes("Restored to before turn 3")`)
	b.button("#undo", "Undo")
	b.button("#dialog", "Undo")
	b.wait(`document.querySelectorAll(".turn").length === 5`)
	if b.file("new.txt") != "x\n" {
		t.Error("undo of what another program did")
	}
}

// TestTwoTabs has two tabs of a browser see what is done in the other one, and a plan that the other one made void.
func TestTwoTabs(t *testing.T) {
	b := open(t, project(t), nil)
	other := &tab{World: b.World, base: b.base}
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithListener(other.listen))
	other.ctx = ctx
	t.Cleanup(end)
	other.Must(chromedp.Do(ctx))
	other.do(chromedp.Navigate(b.base + "/")) // the cookie lets it in
	other.wait(`document.querySelector("#live-text")?.textContent === "live"`)

	other.pick(2)
	other.button("#detail .actions", "Restore both")
	other.wait(`document.querySelector("#dialog[open] .plan-list")`)
	b.pick(3)
	b.button("#detail .actions", "Restore both")
	b.button("#dialog", "Restore")
	b.wait(`document.querySelectorAll(".turn").length === 3`)
	other.wait(`document.querySelectorAll(".turn").length === 3`)
	other.button("#dialog", "Restore")
	other.wait(`document.querySelector("#dialog[open]").textContent.includes("Something changed meanwhile")`)
	other.button("#dialog", "Restore")
	other.wait(`document.querySelectorAll(".turn").length === 2`)
	b.wait(`document.querySelectorAll(".turn").length === 2`)
	other.mu.Lock()
	defer other.mu.Unlock()
	if len(other.problems) > 0 {
		t.Errorf("the other tab: %q", other.problems)
	}
}

// TestLooks takes pictures in dark and on a phone, and checks that nothing sticks out there.
func TestLooks(t *testing.T) {
	b := open(t, project(t), nil)
	b.media("prefers-color-scheme", "dark")
	b.pick(1)
	b.click("#detail .file summary")
	b.wait(`document.querySelector("#detail .diff .added")`)
	b.shot("dark")
	b.size(390, 800)
	b.key("\x1b")
	b.wait(`getComputedStyle(document.querySelector(".side")).display !== "none"`)
	b.shot("phone-list")
	fits := func(where string) {
		t.Helper()
		if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 390 {
			t.Errorf("%s: the page is %d wide on a screen of 390", where, wide)
		}
	}
	fits("the list")
	b.pick(3)
	b.wait(`getComputedStyle(document.querySelector(".detail")).display !== "none"`)
	fits("a turn")
	b.shot("phone-turn")
	b.button("#detail .actions", "Restore both")
	b.wait(`document.querySelector("#dialog .plan-list")`)
	fits("the dry run")
	b.shot("phone-dry-run")
	b.media("prefers-color-scheme", "light")
	b.shot("phone-dry-run-light")
	b.button("#dialog", "Cancel")
	b.key("?")
	b.wait(`document.querySelector("#dialog[open] kbd")`)
	b.shot("phone-keys")
}

// echo is an agent that records a turn for each prompt.
type echo struct{ w *worldtest.World }

func (e echo) Submit(ctx context.Context, prompt string, _ func(serve.Progress)) (int, error) {
	if prompt == "refuse" {
		return 0, errors.New("the model is not there")
	}
	t, err := e.w.Recorder.BeginTurn(ctx, e.w.ID, "", prompt, nil)
	if err != nil {
		return 0, err
	}
	return t.Number(), e.w.Recorder.EndTurn(ctx, e.w.ID, store.TurnDone)
}

func (echo) Cancel(context.Context) (bool, error) { return false, nil }

// TestComposer submits a prompt where an agent is configured, and says where none is.
func TestComposer(t *testing.T) {
	w := project(t)
	b := open(t, w, func(o *serve.Options) { o.Agent = echo{w} })
	b.wait(`!document.querySelector("#composer").hidden && document.querySelector("#viewer").hidden`)
	eval[bool](b, `(document.querySelector("#prompt").value = "do <b>more</b>", true)`)
	b.button("#composer", "Send")
	b.wait(`document.querySelector('[data-turn="4"] .prompt')?.textContent === "do <b>more</b>"`)
	viewer := open(t, project(t), nil)
	viewer.wait(`document.querySelector("#composer").hidden && !document.querySelector("#viewer").hidden`)
}
