package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// home is an environment with a configuration file.
func home(t *testing.T, file string, env ...string) func(string) string {
	t.Helper()
	dir := t.TempDir()
	if file != "" {
		name := filepath.Join(dir, "reasonix", "reasonix.toml")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{"XDG_CONFIG_HOME": dir}
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		vars[k] = v
	}
	return func(k string) string { return vars[k] }
}

func TestLoad(t *testing.T) {
	const file = `
[capture]
scan = "always"
max_file_size = "1MiB"
max_files = 7
max_bytes = 4096
[hook]
deadline = "1500ms"
`
	all := Settings{Scan: ScanAlways, MaxFile: 1 << 20, MaxFiles: 7, MaxBytes: 4096, HookDeadline: 1500 * time.Millisecond}
	over := all
	over.MaxFile, over.Scan, over.CallTimeout = -1, ScanNever, time.Hour
	for name, c := range map[string]struct {
		env  func(string) string
		want Settings
	}{
		"nothing":     {home(t, ""), Settings{}},
		"file":        {home(t, file), all},
		"environment": {home(t, file, "REASONIX_MAX_FILE_SIZE=none", "REASONIX_SCAN=never", "REASONIX_CALL_TIMEOUT=1h"), over},
	} {
		got, err := Load(c.env)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if filepath.Base(got.File) != "reasonix.toml" {
			t.Errorf("%s: file %q", name, got.File)
		}
		got.File = ""
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestLoadTellsWhatItCannotUse: the rest counts.
func TestLoadTellsWhatItCannotUse(t *testing.T) {
	for name, c := range map[string]struct {
		env  func(string) string
		says string
		want Settings
	}{
		"a mode":       {home(t, "[capture]\nscan = 'often'\nmax_files = 3"), "auto, always or never", Settings{MaxFiles: 3}},
		"an unknown":   {home(t, "[capture]\nmax_file = 3"), "capture.max_file", Settings{}},
		"no TOML":      {home(t, "[capture\n", "REASONIX_MAX_FILES=5"), "reasonix.toml", Settings{MaxFiles: 5}},
		"a size":       {home(t, "", "REASONIX_MAX_FILE_SIZE=big"), "REASONIX_MAX_FILE_SIZE", Settings{}},
		"zero":         {home(t, "", "REASONIX_MAX_FILES=0"), "above 0", Settings{}},
		"a duration":   {home(t, "[hook]\ndeadline = 3"), "such as 3s", Settings{}},
		"a huge size":  {home(t, "", "REASONIX_MAX_BYTES=99999999 EB"), "REASONIX_MAX_BYTES", Settings{}},
		"not a string": {home(t, "[capture]\nscan = [1]"), "capture.scan", Settings{}},
	} {
		got, err := Load(c.env)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want a word of %q", name, err, c.says)
		}
		got.File = ""
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestSet(t *testing.T) {
	var s Settings
	if err := s.Set("capture.max_file_size", "2MiB"); err != nil || s.MaxFile != 2<<20 {
		t.Errorf("%d, %v", s.MaxFile, err)
	}
	for name, text := range map[string]string{"capture.max_files": "many", "capture.other": "1"} {
		if err := s.Set(name, text); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestExplain: every setting is listed with where it comes from.
func TestExplain(t *testing.T) {
	_, all, err := Explain(home(t, "[capture]\nmax_files = 9", "REASONIX_SCAN=never"))
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]string{}
	for _, s := range all {
		from[s.Name] = s.Value + " " + filepath.Base(s.From)
		if s.Default == "" || s.Env == "" {
			t.Errorf("%+v", s)
		}
	}
	if from["capture.max_files"] != "9 reasonix.toml" || from["capture.scan"] != "never REASONIX_SCAN" || from["hook.deadline"] != " ." {
		t.Errorf("%v", from)
	}
}

func FuzzFile(f *testing.F) {
	f.Add("[capture]\nscan = \"auto\"\n")
	f.Add("capture.max_files = 0x10\n[hook]\ndeadline = 1979-05-27T07:32:00Z\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Load(home(t, "#\n"+text))
		if err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%v", err)
		}
		if s.MaxFiles == 0 && s.MaxFile == 0 && s.Scan != "" && s.Scan != ScanAuto && s.Scan != ScanAlways && s.Scan != ScanNever {
			t.Errorf("%+v", s)
		}
	})
}
