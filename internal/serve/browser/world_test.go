package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"reasonix/internal/serve"
	"reasonix/internal/worldtest"
)

// tab is the page in a browser, over a world that a real server serves.
type tab struct {
	*worldtest.World
	ctx  context.Context
	base string

	mu       sync.Mutex
	problems []string // what the browser complained of; guarded by mu
}

// program finds a browser; the test skips where there is none, unless nothing may skip.
func program(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "chrome"}
	if given := os.Getenv("REASONIX_BROWSER"); given != "" {
		names = []string{given}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	why := "there is no browser: install chromium, or name one in REASONIX_BROWSER"
	if os.Getenv("REASONIX_NO_SKIP") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// open serves a world with a token and opens its page as a person does, by the printed address.
func open(t *testing.T, w *worldtest.World, change func(*serve.Options)) *tab {
	t.Helper()
	browser := program(t)
	const token = "a-token-for-the-test"
	o := serve.Options{Capture: w.Capture, Engine: w.Engine, Token: token, Version: "test", Log: t.Logf, Limits: serve.Limits{Poll: 10 * time.Millisecond}}
	if change != nil {
		change(&o)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	w.Must(err)
	serving, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve.New(o).Serve(serving, ln) }()
	b := &tab{World: w, base: "http://" + ln.Addr().String()}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.NoSandbox, chromedp.DisableGPU)
	alloc, endAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endTab := chromedp.NewContext(alloc, chromedp.WithListener(b.listen))
	b.ctx = ctx
	t.Cleanup(func() {
		endTab()
		endAlloc()
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, p := range b.problems {
			t.Errorf("the browser: %s", p)
		}
	})
	b.Must(chromedp.Do(ctx)) // starts the browser, which lives as long as this context
	b.size(1280, 860)
	b.do(chromedp.Navigate(b.base + "/?token=" + token))
	b.wait(`document.body.dataset.ready === "true"`)
	b.wait(`document.querySelector("#live-text").textContent === "live"`)
	return b
}

// listen notes what must not happen: errors, violations of the page's policy, requests to elsewhere.
func (b *tab) listen(ev any) {
	problem := ""
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		problem = "exception: " + ev.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" || ev.Type == "warning" {
			problem = fmt.Sprintf("console: %v", ev.Args)
		}
	case *log.EventEntryAdded:
		if !answer(ev.Entry) && ev.Entry.Level != "verbose" && ev.Entry.Level != "info" {
			problem = ev.Entry.Text + " " + ev.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(ev.Request.URL, b.base+"/") && !strings.HasPrefix(ev.Request.URL, "data:") && ev.Request.URL != "about:blank" {
			problem = "a request to " + ev.Request.URL
		}
	}
	if problem != "" {
		b.mu.Lock()
		b.problems = append(b.problems, problem)
		b.mu.Unlock()
	}
}

var oneTurn = regexp.MustCompile(`/checkpoints/\d+\?`)

// answer reports whether the browser calls an error what is an answer like another one: a conflict, and
// that a turn is gone which somebody else rewound between the list and the look at it.
func answer(e *log.Entry) bool {
	return strings.Contains(e.Text, "status of 409") || strings.Contains(e.Text, "status of 404") && oneTurn.MatchString(e.URL)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	b.Must(chromedp.Do(ctx, steps...))
}

func (b *tab) size(width, height int64) {
	b.T.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// media sets what a person prefers, such as prefers-color-scheme: names and values in turn.
func (b *tab) media(prefers ...string) {
	b.T.Helper()
	var features []*emulation.MediaFeature
	for pair := range slices.Chunk(prefers, 2) {
		features = append(features, &emulation.MediaFeature{Name: pair[0], Value: pair[1]})
	}
	b.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		return cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: features,
		})
	})
}

// eval gives the value of an expression.
func eval[T any](b *tab, expression string) T {
	b.T.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.T.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits for an expression to be true.
func (b *tab) wait(expression string) {
	b.T.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			b.shot("failed")
			b.T.Fatalf("%s never became true (%v); the page says:\n%s", expression, err, eval[string](b, "document.body.innerText"))
		}
	}
}

// js is a text as JavaScript.
func js(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// click clicks on what a selector finds.
func (b *tab) click(selector string) {
	b.T.Helper()
	b.wait(`document.querySelector(` + js(selector) + `) && !document.querySelector(` + js(selector) + `).disabled`)
	eval[bool](b, `(document.querySelector(`+js(selector)+`).click(), true)`)
}

// button clicks on the button of that text in what a selector finds.
func (b *tab) button(in, text string) {
	b.T.Helper()
	find := `[...document.querySelectorAll(` + js(in+" button") + `)].find((e) => e.textContent === ` + js(text) + ` && !e.disabled)`
	b.wait(find)
	eval[bool](b, `(`+find+`.click(), true)`)
}

func (b *tab) key(keys string) {
	b.T.Helper()
	b.do(chromedp.KeyEvent(keys))
}

func (b *tab) text(selector string) string {
	b.T.Helper()
	return eval[string](b, `(document.querySelector(`+js(selector)+`) ?? {innerText: ""}).innerText`)
}

// pick chooses a turn in the list.
func (b *tab) pick(turn int) {
	b.T.Helper()
	b.click(fmt.Sprintf(`[data-turn="%d"]`, turn))
	b.wait(fmt.Sprintf(`document.querySelector("#detail h1")?.textContent.startsWith("Turn %d")`, turn))
}

// shot keeps a picture where REASONIX_SHOTS names a folder.
func (b *tab) shot(name string) {
	dir := os.Getenv("REASONIX_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	b.Must(err)
	b.Must(os.MkdirAll(dir, 0o755))
	b.Must(os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}
