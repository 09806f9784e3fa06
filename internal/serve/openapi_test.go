package serve

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// described is the part of openapi.json that the tests look at.
type described struct {
	doc   map[string]any
	paths map[string]map[string]map[string]any // path, method, operation
}

func readOpenAPI(t *testing.T) *described {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(openAPIDocument))
	if err != nil {
		t.Fatal(err)
	}
	d := &described{doc: v.(map[string]any), paths: map[string]map[string]map[string]any{}}
	for path, methods := range d.doc["paths"].(map[string]any) {
		d.paths[path] = map[string]map[string]any{}
		for m, op := range methods.(map[string]any) {
			d.paths[path][strings.ToUpper(m)] = op.(map[string]any)
		}
	}
	return d
}

// statuses are those that an operation documents.
func (d *described) statuses(method, path string) []string {
	return slices.Sorted(maps.Keys(d.paths[path][method]["responses"].(map[string]any)))
}

// conforms checks an answer against the schema of its path, method, status and content type.
func (d *described) conforms(method, path string, a answer) error {
	op, ok := d.paths[path][method]
	if !ok {
		return errors.New("the path is not described")
	}
	at := fmt.Sprintf("#/paths/%s/%s/responses/%d", strings.ReplaceAll(path, "/", "~1"), strings.ToLower(method), a.status)
	response, ok := op["responses"].(map[string]any)[fmt.Sprint(a.status)].(map[string]any)
	if !ok {
		return fmt.Errorf("status %d is not described", a.status)
	}
	if to, isRef := response["$ref"].(string); isRef {
		at = to
		response = d.doc["components"].(map[string]any)["responses"].(map[string]any)[to[strings.LastIndex(to, "/")+1:]].(map[string]any)
	}
	content, _ := response["content"].(map[string]any)
	if content == nil {
		return nil
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if _, ok := content[kind]; !ok {
		return fmt.Errorf("content type %q is not described", kind)
	}
	if kind != "application/json" {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("openapi.json", d.doc); err != nil {
		return err
	}
	schema, err := c.Compile("openapi.json" + at + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// pathOf is a route's path as OpenAPI writes it.
func pathOf(rt route) string {
	return strings.NewReplacer("{$}", "", "{file...}", "{file}").Replace(rt.path)
}

// Every route is described and nothing else is, and every name of a request is one that the
// description has.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	d := readOpenAPI(t)
	w := newWorld(t)
	s := New(Options{Capture: w.Capture, Engine: w.Engine})
	left := maps.Clone(d.paths)
	for _, rt := range s.table() {
		if _, ok := d.paths[pathOf(rt)][rt.method]; !ok || len(d.paths[pathOf(rt)]) != 1 {
			t.Errorf("%s %s is not described, or more than it is", rt.method, pathOf(rt))
		}
		delete(left, pathOf(rt))
	}
	if len(left) > 0 {
		t.Errorf("described and not there: %v", slices.Collect(maps.Keys(left)))
	}
}

// TestOpenAPIEveryStatus gets, of every path, every status that is described, and checks each
// answer against its schema. What cannot be provoked is not described.
func TestOpenAPIEveryStatus(t *testing.T) {
	d := readOpenAPI(t)
	servers := provokable(t)
	for path, methods := range d.paths {
		for method := range methods {
			for _, status := range d.statuses(method, path) {
				p := provoke(method, path, status)
				s := servers[p.server]
				if s == nil {
					t.Errorf("%s %s: nobody knows how to get %s", method, path, status)
					continue
				}
				a := s.provoked(method, p)
				if fmt.Sprint(a.status) != status {
					t.Errorf("%s %s: %d in place of %s: %.300s", method, p.path, a.status, status, a.body)
				}
				if err := d.conforms(method, path, a); err != nil {
					t.Errorf("%s %s: %v\n%.500s", method, p.path, err, a.body)
				}
			}
		}
	}
}

// TestOpenAPIShapes checks answers with members that come seldom.
func TestOpenAPIShapes(t *testing.T) {
	d := readOpenAPI(t)
	s := newServed(t, nil)
	w := s.World
	w.Turn("every kind of change", nil, func() {
		w.Write("caf\xe9", "name\n", 0o644)
		w.Write("binary", "\x00\xff", 0o755)
		w.Remove("d/f0.txt")
		w.Edit(func() { w.Must(os.Symlink("a.txt", w.Abs("link"))) }, "link")
		w.Edit(func() { w.Must(os.Rename(w.Abs("d/f1.txt"), w.Abs("moved.txt"))) }, "d/f1.txt", "moved.txt")
	})
	w.Put("a.txt", "by hand", 0o644)
	w.Put("d/f0.txt/in the way", "x", 0o644)
	check := func(method, pattern, path, body string) {
		t.Helper()
		a := s.do(method, path, body)
		if err := d.conforms(method, pattern, a); err != nil {
			t.Errorf("%s %s: %v\n%.500s", method, path, err, a.body)
		}
	}
	check("GET", "/checkpoints", "/checkpoints?stat=true", "")
	check("GET", "/checkpoints/{turn}", "/checkpoints/5", "")
	check("GET", "/checkpoints/{turn}/diff", "/checkpoints/5/diff", "")
	check("GET", "/checkpoints/{turn}/diff", "/checkpoints/0/diff?to=disk", "")
	check("POST", "/rewind", "/rewind", `{"turn":0,"dry_run":true}`)
	check("POST", "/rewind", "/rewind", `{"turn":5,"skip_conflicts":true}`)
	check("POST", "/undo-rewind", "/undo-rewind", `{"skip_conflicts":true}`)
	check("POST", "/fork", "/fork", `{"turn":1,"name":"n"}`)
	check("POST", "/switch", "/switch", `{"session":"n"}`)
	check("POST", "/switch", "/switch", `{"session":"-","skip_conflicts":true}`)
	_, err := s.Engine.DeleteSession(t.Context(), "abcd1235", false)
	w.Must(err)
	check("POST", "/undo-rewind", "/undo-rewind", `{"session":"abcd1235"}`)
	for _, path := range []string{"/tree", "/sessions", "/operations", "/status"} {
		check("GET", path, path, "")
	}
}
