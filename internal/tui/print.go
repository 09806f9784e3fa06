package tui

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"reasonix/agent"
	"reasonix/internal/llm"
	"reasonix/internal/tool"
)

// maxDiff is how many lines of a difference are shown.
const maxDiff = 60

// printer tells what happens in a turn.
type printer struct {
	out    io.Writer
	screen *Screen

	mu    sync.Mutex
	open  agent.EventKind // of the pieces on the last line; "" at the beginning of a line
	usage llm.Usage
	seen  tool.Preview // what the person was asked about, and is not shown again
}

func (p *printer) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lineLocked(text)
}

func (p *printer) lineLocked(text string) {
	p.end()
	fmt.Fprintln(p.out, text)
}

// end ends a line that pieces were written on.
func (p *printer) end() {
	if p.open != "" {
		fmt.Fprintln(p.out)
		p.open = ""
	}
}

func (p *printer) breakLine() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

// event is called by the agent, one at a time.
func (p *printer) event(e agent.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case agent.Reasoning, agent.Text:
		p.piece(e.Kind, e.Text)
	case agent.Discarded:
		p.lineLocked(p.screen.style(yellow, fmt.Sprintf("%v; %s", e.Err, Safe(e.Text))))
	case agent.Noticed:
		p.lineLocked(p.screen.style(yellow, Safe(e.Text)))
	case agent.Compacted:
		p.lineLocked(p.screen.style(dim, "what came before was summarized for the model; /undo-rewind takes that back"))
	case agent.ToolStarted:
		if p.end(); e.Tool.Preview != p.seen {
			p.preview(e.Tool.Preview)
		}
		p.seen = tool.Preview{}
	case agent.ToolEnded:
		p.ended(e)
	case agent.UsageTold:
		p.usage = e.Usage
	case agent.TurnStarted, agent.Messaged, agent.TurnEnded, agent.SessionMoved:
		p.end()
	}
}

// piece writes a part of what the model says as it comes.
func (p *printer) piece(kind agent.EventKind, text string) {
	if p.open != "" && p.open != kind {
		p.end()
	}
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r", ""), "\n") {
		if i > 0 {
			fmt.Fprintln(p.out)
			p.open = ""
		}
		if line == "" {
			continue
		}
		if line = Safe(strings.ReplaceAll(line, "\t", "    ")); kind == agent.Reasoning {
			line = p.screen.style(dim, line)
		}
		fmt.Fprint(p.out, line)
		p.open = kind
	}
}

// asked shows what a person is to decide about.
func (p *printer) asked(v tool.Preview) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.preview(v)
	p.seen = v
}

func (p *printer) preview(v tool.Preview) {
	if v.Command != "" {
		for i, l := range SafeLines(v.Command) {
			mark := "  "
			if i == 0 {
				mark = "$ "
			}
			p.lineLocked(p.screen.style(cyan, mark+l))
		}
		return
	}
	p.lineLocked(p.screen.style(cyan, "→ "+Safe(v.Title)))
	if v.Diff == "" {
		return
	}
	all := SafeLines(v.Diff)
	for _, l := range all[:min(len(all), maxDiff)] {
		p.lineLocked("  " + p.diffLine(l))
	}
	if n := len(all) - maxDiff; n > 0 {
		p.lineLocked(p.screen.style(dim, fmt.Sprintf("  … %s more", plural(n, "line"))))
	}
}

func (p *printer) diffLine(l string) string {
	switch {
	case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"), strings.HasPrefix(l, "@@"):
		return p.screen.style(dim, l)
	case strings.HasPrefix(l, "+"):
		return p.screen.style(green, l)
	case strings.HasPrefix(l, "-"):
		return p.screen.style(red, l)
	}
	return l
}

// ended tells how a call went: commands what they printed, others only when they failed.
func (p *printer) ended(e agent.Event) {
	if e.Tool.Kind != tool.Exec && !e.Tool.Failed {
		return
	}
	all := SafeLines(e.Text)
	const most = 12
	for _, l := range all[:min(len(all), most)] {
		style := dim
		if e.Tool.Failed {
			style = yellow
		}
		p.lineLocked("  " + p.screen.style(style, l))
	}
	if n := len(all) - most; n > 0 {
		p.lineLocked(p.screen.style(dim, fmt.Sprintf("  … %s more", plural(n, "line"))))
	}
}
