package browser

import (
	"fmt"
	"slices"
	"testing"
)

// contrasts gives, of each text that is seen, its color's contrast with what lies behind it, where
// it is too small to be read well: WCAG 2 asks for 4.5.
const contrasts = `(() => {
	const rgb = (c) => c.match(/[\d.]+/g).map(Number);
	const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
	const bad = [];
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim() !== "");
		if (!own || !e.checkVisibility() || e.closest(":disabled, .hidden-text, .skip")) continue;
		const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(e.tagName + "." + e.className + " " + e.textContent.slice(0, 20) + " " + ((a + 0.05) / (b + 0.05)).toFixed(2));
	}
	return bad;
})()`

// nameless gives what can be used and tells nobody what it is.
const nameless = `[...document.querySelectorAll("button, input, textarea, summary, a, [tabindex='0'], dialog[open]")].filter((e) => e.checkVisibility() &&
	!(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.labels?.length || e.textContent.trim())).map((e) => e.outerHTML)`

// TestAccessible looks at names, contrast, the order of focus, and motion.
func TestAccessible(t *testing.T) {
	b := open(t, project(t), nil)
	look := func(where string) {
		t.Helper()
		if bad := eval[[]string](b, nameless); len(bad) > 0 {
			t.Errorf("%s: without a name: %q", where, bad)
		}
		for _, scheme := range []string{"light", "dark"} {
			b.media("prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce")
			if bad := eval[[]string](b, contrasts); len(bad) > 0 {
				t.Errorf("%s, %s: hard to read: %q", where, scheme, bad)
			}
		}
	}
	b.media("prefers-reduced-motion", "reduce")
	if moves := eval[string](b, `getComputedStyle(document.querySelector(".turn")).transitionDuration`); moves != "0s" {
		t.Errorf("rows move for %s", moves)
	}
	b.pick(3)
	b.wait(`document.querySelector("#detail .file summary")`)
	look("a turn")

	eval[bool](b, `(document.activeElement.blur(), true)`)
	var order []string
	for range 8 {
		b.key("\t")
		order = append(order, eval[string](b, `document.activeElement.id || document.activeElement.textContent`))
	}
	want := []string{"Skip to the turn", "help", "view-turns", "view-tree", "view-ops", "search", "timeline", "Restore both"}
	if !slices.Equal(order, want) {
		t.Errorf("focus goes to %q, want %q", order, want)
	}
	b.key("\r")
	b.wait(`document.querySelector("#dialog[open] .plan-list") && document.activeElement.textContent === "Restore"`)
	look("a dry run")
	b.key("\x1b")
	b.wait(`!document.querySelector("#dialog").open && document.activeElement.textContent === "Restore both"`)
	for _, view := range []string{"tree", "ops"} {
		b.click(fmt.Sprintf("#view-%s", view))
		b.wait(fmt.Sprintf(`document.querySelector("#list-%s").children.length > 0`, view))
		look(view)
	}
}
