package ignore

import (
	"maps"
	"slices"
)

// What nobody wants in a history: made by tools out of what is there, or the memory of another
// version control program, which must never be put back in parts. A name is listed only if it
// means nothing else: build, dist, out, target, vendor, bin, obj, env and the like are source
// folders somewhere. They are looked up by name.
var folders = set(
	// Version control. (.git is protected, not ignored: no rule can include it.)
	".hg", ".svn", ".jj", ".bzr", ".sl",
	// JavaScript.
	"node_modules", "bower_components", ".pnpm-store", ".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo",
	".angular",
	// Python.
	"__pycache__", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".pytype", ".eggs",
	".ipynb_checkpoints",
	// Others.
	".gradle", ".terraform", ".dart_tool", ".stack-work", ".zig-cache", ".direnv", ".ccls-cache",
)

var files = set(".DS_Store", "Thumbs.db")

// Marker is a folder that is ignored by default only where another file proves what it is.
type Marker struct {
	Folder string
	Beside string // a name in the same folder, or ""
	Inside string // a name in the folder itself, or ""
}

var markers = []Marker{
	{Folder: "target", Beside: "Cargo.toml"},
	{Folder: "_build", Beside: "mix.exs"},
	{Folder: ".venv", Inside: "pyvenv.cfg"},
	{Folder: "venv", Inside: "pyvenv.cfg"},
	{Folder: "env", Inside: "pyvenv.cfg"},
	{Folder: ".env", Inside: "pyvenv.cfg"},
}

var byFolder = func() map[string]Marker {
	m := make(map[string]Marker, len(markers))
	for _, x := range markers {
		m[x.Folder] = x
	}
	return m
}()

// MarkerOf returns what proves that a folder called name is to be ignored by default.
func MarkerOf(name string) (Marker, bool) {
	m, ok := byFolder[name]
	return m, ok
}

// Defaults lists what is ignored unless a rule file includes it, in the form of a rule file:
// folders end in a slash. A Marker is named in parentheses.
func Defaults() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		all = append(all, name+"/")
	}
	all = append(all, slices.Sorted(maps.Keys(files))...)
	for _, m := range markers {
		where := "beside " + m.Beside
		if m.Inside != "" {
			where = "with " + m.Inside
		}
		all = append(all, m.Folder+"/ ("+where+")")
	}
	return all
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}
