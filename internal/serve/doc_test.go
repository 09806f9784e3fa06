package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/http.md has every route, every parameter and member of a request, every event, and every
// status with its code; and no other.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	w := newWorld(t)
	for _, rt := range New(Options{Capture: w.Capture, Engine: w.Engine}).table() {
		path := strings.NewReplacer("{$}", "", "/page/{file...}", "/page/").Replace(rt.path)
		if !strings.Contains(doc, rt.method+" "+path) && !strings.Contains(doc, "`"+path+"`") {
			t.Errorf("%s %s is not documented", rt.method, path)
		}
	}
	source, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	for _, name := range source {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?:refuse\(http\.Status\w+, |http\.Status\w+, |code: )"([a-z_]+)"`).FindAllStringSubmatch(string(text), -1) {
			codes[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`told\{"([a-z_]+)"|publish\("([a-z_]+)"|return "([a-z]+ed)"`).FindAllStringSubmatch(string(text), -1) {
			if event := m[1] + m[2] + m[3]; !strings.Contains(doc, "`"+event+"`") {
				t.Errorf("the event %s is not documented", event)
			}
		}
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| (\\d{3}) \\| `([a-z_]+)` \\|").FindAllStringSubmatch(doc, -1) {
		documented = append(documented, m[2])
		if !codes[m[2]] {
			t.Errorf("%s %s is documented and never sent", m[1], m[2])
		}
	}
	for code := range codes {
		if !slices.Contains(documented, code) {
			t.Errorf("the code %s is not documented", code)
		}
	}
	if len(documented) < 12 {
		t.Error(fmt.Sprint("the table of statuses was not found: ", documented))
	}
}
