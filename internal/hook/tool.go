package hook

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// toolUse is what a tool call does to files.
type toolUse uint8

const (
	otherTool toolUse = iota // reads, searches, anything that changes no file we know of
	editTool                 // changes files that its input names
	execTool                 // runs a command
)

// editTools are tools that change the files named by these fields of their input. Names are
// compared without case and separators.
var editTools = map[string][]string{
	"write":           {"path", "file_path", "filename", "file"},
	"writefile":       {"path", "file_path", "filename", "file", "absolute_path"},
	"writetofile":     {"path", "file_path"},
	"createfile":      {"path", "file_path", "filepath"},
	"edit":            {"path", "file_path", "filename", "file"},
	"editfile":        {"path", "file_path", "target_file", "filepath"},
	"editfiles":       {"path", "file_path", "paths", "files"},
	"multiedit":       {"path", "file_path", "paths"},
	"replace":         {"path", "file_path", "absolute_path"},
	"replaceinfile":   {"path", "file_path"},
	"strreplace":      {"path", "file_path"},
	"insert":          {"path", "file_path"},
	"append":          {"path", "file_path"},
	"appendfile":      {"path", "file_path"},
	"notebookedit":    {"notebook_path", "path"},
	"movefile":        {"source", "destination", "from", "to", "src", "dst", "path", "new_path", "old_path"},
	"renamefile":      {"source", "destination", "from", "to", "src", "dst", "path", "new_path", "old_path"},
	"copyfile":        {"destination", "to", "dst", "new_path"},
	"deletefile":      {"path", "file_path", "paths", "target_file"},
	"removefile":      {"path", "file_path", "paths"},
	"createdirectory": {"path", "dir_path"},
	"applypatch":      {"path", "file_path"},
}

var execTools = []string{
	"bash", "shell", "powershell", "exec", "execcommand", "execute", "executecommand", "run", "runcommand",
	"runcommands", "runshellcommand", "runterminalcmd", "localshell", "terminal", "unifiedexec",
}

// use says what a tool call does, and which paths it names.
func use(tool string, input json.RawMessage) (toolUse, []string) {
	key := toolKey(tool)
	if slices.Contains(execTools, key) {
		return execTool, nil
	}
	fields, ok := editTools[key]
	if !ok {
		return otherTool, nil
	}
	paths := named(input, fields)
	if key == "applypatch" {
		paths = append(paths, patched(input)...)
	}
	slices.Sort(paths)
	return editTool, slices.Compact(paths)
}

// toolKey is a tool's name without its server ("mcp__fs__write_file", "functions.write"), case
// and separators.
func toolKey(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+2:]
	}
	if i := strings.LastIndexAny(tool, "./:"); i >= 0 {
		tool = tool[i+1:]
	}
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(tool))
}

// named are the paths in some fields of an input: strings, lists of them, or lists of objects
// with such a field.
func named(input json.RawMessage, fields []string) []string {
	var object map[string]json.RawMessage
	if json.Unmarshal(input, &object) != nil {
		return nil
	}
	var all []string
	for _, f := range fields {
		value := bytes.TrimSpace(object[f])
		if len(value) == 0 {
			continue
		}
		if value[0] != '[' {
			var n name
			if n.UnmarshalJSON(value) == nil && n != "" {
				all = append(all, string(n))
			}
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			continue
		}
		for _, item := range list {
			var n name
			if n.UnmarshalJSON(item) == nil && n != "" {
				all = append(all, string(n))
			} else {
				all = append(all, named(item, []string{"path", "file_path"})...)
			}
		}
	}
	return all
}

// patchMarks begin the lines of a patch that name files.
var patchMarks = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

// patched are the files of a patch in the "*** Begin Patch" form, in whichever field it is.
func patched(input json.RawMessage) []string {
	var all []string
	for _, text := range texts(input, 4) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			for _, mark := range patchMarks {
				if p, ok := strings.CutPrefix(line, mark); ok && strings.TrimSpace(p) != "" {
					all = append(all, strings.TrimSpace(p))
				}
			}
		}
	}
	return all
}

// texts are the strings in a JSON value, down to a depth.
func texts(value json.RawMessage, depth int) []string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || depth == 0 {
		return nil
	}
	var all []string
	switch value[0] {
	case '"':
		if s, ok := unquote(value[1 : len(value)-1]); ok {
			all = append(all, s)
		}
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(value, &list) // a part of a valid event
		for _, v := range list {
			all = append(all, texts(v, depth-1)...)
		}
	case '{':
		var object map[string]json.RawMessage
		_ = json.Unmarshal(value, &object)
		for _, v := range object {
			all = append(all, texts(v, depth-1)...)
		}
	}
	return all
}
