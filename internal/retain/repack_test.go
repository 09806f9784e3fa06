package retain_test

import (
	"fmt"
	"strings"
	"testing"

	"reasonix/internal/retain"
	"reasonix/internal/worldtest"
)

// TestRepack: a history that was stored anew takes less, and each turn comes back as it was.
func TestRepack(t *testing.T) {
	w := newWorld(t)
	var lines []string
	for i := range 400 {
		lines = append(lines, fmt.Sprintf("\tname%d := value(%q)\n", i*7919%1000, noise(i, 6)))
	}
	for n := range 50 {
		w.starts = append(w.starts, worldtest.Files(w.T, w.Dir))
		lines[n*31%400] = fmt.Sprintf("\tchanged in turn %d: %q\n", n, noise(1000+n, 20))
		if n%10 == 9 {
			lines = append(lines, lines[:40]...)
		}
		w.Turn(fmt.Sprint("turn ", n), nil, func() { w.Write("source", strings.Join(lines, ""), 0o644) })
	}
	o, err := w.gc.Run(t.Context(), retain.Policy{Repack: true})
	if err != nil {
		t.Fatal(err)
	}
	if o.Repacked.Saved <= 0 || o.Repacked.Contents < 40 || o.Contents != 0 || o.After > o.Before {
		t.Errorf("%+v", o)
	}
	for turn := range w.starts {
		if turn%7 == 0 {
			w.Must(w.rewound(turn))
		}
	}
	problems, err := w.Capture.Store.Verify(t.Context(), true, nil)
	if err != nil || len(problems) != 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
