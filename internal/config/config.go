// Package config reads the settings of the program: reasonix.toml in the user's configuration
// folder, and environment variables, which count more. What neither names has its default.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/dustin/go-humanize"
)

// ErrInvalid is returned when the file or a variable holds something that is no setting.
var ErrInvalid = errors.New("invalid setting")

// Scan says when a workspace is scanned.
type Scan string

// The modes of scanning.
const (
	ScanAuto   Scan = "auto"   // once an agent runs commands
	ScanAlways Scan = "always" // at the beginning and the end of each turn too
	ScanNever  Scan = "never"
)

// Settings are what the user has set; the zero value of a field means its default.
type Settings struct {
	Scan         Scan          // "" is ScanAuto
	MaxFile      int64         // bytes of one file in a scan; below 0 no limit
	MaxFiles     int           // files of a scan; below 0 no limit
	MaxBytes     int64         // bytes that one scan reads of files that none has seen; below 0 no limit
	ScanDeadline time.Duration // of one scan
	HookDeadline time.Duration // of one event
	CallTimeout  time.Duration // how long a tool call without any event counts as running
	RetainAge    time.Duration // how long turns are kept; below 0 for ever
	MaxStore     int64         // bytes of a store, beyond which older turns go; below 0 no limit

	// Of the program's own agent. The key of the account is no setting: it is only read from the
	// environment, and never written anywhere.
	BaseURL  string // of a server that speaks chat completions
	Model    string
	Context  int64  // tokens that a conversation may have
	Thinking string // enabled or disabled
	Effort   string // low, high or max
	Approve  string // ask, auto-edit or full

	File string // the file, whether or not it is there
}

// Setting is one setting as "doctor" shows it.
type Setting struct {
	Name, Env string // its key in the file, and its variable
	Value     string // as it is written; "" while it has its default
	From      string // the file or the variable; "" for a default
	Default   string
}

// setting is how one of them is read.
type setting struct {
	name, env, byDefault string
	parse                func(s *Settings, text string) error
}

var settings = []setting{
	{"capture.scan", "REASONIX_SCAN", string(ScanAuto), func(s *Settings, text string) error {
		switch s.Scan = Scan(text); s.Scan {
		case ScanAuto, ScanAlways, ScanNever:
			return nil
		}
		s.Scan = ""
		return errors.New("it is auto, always or never")
	}},
	{"capture.max_file_size", "REASONIX_MAX_FILE_SIZE", "64MiB", func(s *Settings, t string) error { return parseBytes(&s.MaxFile, t) }},
	{"capture.max_files", "REASONIX_MAX_FILES", "200000", func(s *Settings, t string) error { return parseCount(&s.MaxFiles, t) }},
	{"capture.max_bytes", "REASONIX_MAX_BYTES", "2GiB", func(s *Settings, t string) error { return parseBytes(&s.MaxBytes, t) }},
	{"capture.scan_deadline", "REASONIX_SCAN_DEADLINE", "that of the hook; 10s in the agent", func(s *Settings, t string) error { return parseDuration(&s.ScanDeadline, t) }},
	{"hook.deadline", "REASONIX_HOOK_DEADLINE", "3s", func(s *Settings, t string) error { return parseDuration(&s.HookDeadline, t) }},
	{"retain.days", "REASONIX_RETAIN_DAYS", "30", func(s *Settings, t string) error { return parseDays(&s.RetainAge, t) }},
	{"retain.max_store", "REASONIX_MAX_STORE", "5GiB", func(s *Settings, t string) error { return parseBytes(&s.MaxStore, t) }},
	{"model.base_url", "REASONIX_BASE_URL", "https://api.deepseek.com", func(s *Settings, t string) error { return parseURL(&s.BaseURL, t) }},
	{"model.name", "REASONIX_MODEL", "deepseek-flash", func(s *Settings, t string) error { s.Model = t; return nil }},
	{"model.context", "REASONIX_CONTEXT", "1000000", func(s *Settings, t string) error { return parseTokens(&s.Context, t) }},
	{"model.thinking", "REASONIX_THINKING", "enabled", func(s *Settings, t string) error { return parseWord(&s.Thinking, t, "enabled", "disabled") }},
	{"model.effort", "REASONIX_EFFORT", "the server's", func(s *Settings, t string) error { return parseWord(&s.Effort, t, "low", "high", "max") }},
	{"agent.approve", "REASONIX_APPROVE", "ask", func(s *Settings, t string) error { return parseWord(&s.Approve, t, "ask", "auto-edit", "full") }},
	{"hook.call_timeout", "REASONIX_CALL_TIMEOUT", "10m", func(s *Settings, t string) error { return parseDuration(&s.CallTimeout, t) }},
}

// unlimited is what a limit may be set to.
const unlimited = "none"

func parseBytes(to *int64, text string) error {
	if text == unlimited {
		*to = -1
		return nil
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return errors.New("it is a size such as 64MiB, or none")
	}
	*to = int64(n)
	return nil
}

func parseCount(to *int, text string) error {
	if text == unlimited {
		*to = -1
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return errors.New("it is a number above 0, or none")
	}
	*to = n
	return nil
}

// day is what a limit in days counts in.
const day = 24 * time.Hour

func parseDays(to *time.Duration, text string) error {
	var n int
	if err := parseCount(&n, text); err != nil || n > 36500 {
		return errors.New("it is a number of days above 0, or none")
	}
	*to = time.Duration(n) * day
	return nil
}

func parseDuration(to *time.Duration, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("it is a duration such as 3s")
	}
	*to = d
	return nil
}

func parseTokens(to *int64, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1000 {
		return errors.New("it is a number of tokens, at least 1000")
	}
	*to = n
	return nil
}

func parseURL(to *string, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("it is an address such as https://api.deepseek.com, without a name or a password")
	}
	*to = text
	return nil
}

func parseWord(to *string, text string, words ...string) error {
	if !slices.Contains(words, text) {
		return fmt.Errorf("it is %s or %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
	}
	*to = text
	return nil
}

// File is where the settings lie: $XDG_CONFIG_HOME, else ~/.config, on every system; "" when
// there is no home.
func File(env func(string) string) string {
	dir := env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the XDG specification: a relative path is to be ignored
		home := env("HOME")
		if home == "" {
			if home, _ = os.UserHomeDir(); home == "" {
				return ""
			}
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "reasonix", "reasonix.toml")
}

// Load reads the settings. It returns all that can be understood, and one error, matching
// ErrInvalid, for all that cannot: a hook goes on without those, other callers refuse.
func Load(env func(string) string) (Settings, error) {
	s, _, err := Explain(env)
	return s, err
}

// Set changes one setting by its name in the file, as a flag does.
func (s *Settings) Set(name, text string) error {
	for _, one := range settings {
		if one.name == name {
			if err := one.parse(s, text); err != nil {
				return fmt.Errorf("%w: %s = %q: %w", ErrInvalid, name, text, err)
			}
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not known", ErrInvalid, name)
}

// Explain is Load with where each setting comes from.
func Explain(env func(string) string) (Settings, []Setting, error) {
	s := Settings{File: File(env)}
	written, errs := read(s.File)
	all := make([]Setting, 0, len(settings))
	for _, one := range settings {
		shown := Setting{Name: one.name, Env: one.env, Default: one.byDefault}
		from, text := s.File, written[one.name]
		delete(written, one.name)
		if v := env(one.env); v != "" {
			from, text = one.env, v
		}
		if text != "" {
			if err := one.parse(&s, text); err != nil {
				errs = append(errs, fmt.Errorf("%w: %s = %q in %s: %w", ErrInvalid, one.name, text, from, err))
			} else {
				shown.Value, shown.From = text, from
			}
		}
		all = append(all, shown)
	}
	for name := range written {
		errs = append(errs, fmt.Errorf("%w: %s in %s is not known", ErrInvalid, name, s.File))
	}
	return s, all, errors.Join(errs...)
}

// read reads the file as texts by dotted keys.
func read(file string) (map[string]string, []error) {
	written := map[string]string{}
	if file == "" {
		return written, nil
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return written, nil
	}
	if err != nil {
		return written, []error{fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	var tree map[string]any
	if err := toml.Unmarshal(b, &tree); err != nil {
		return written, []error{fmt.Errorf("%w: %s: %w", ErrInvalid, file, err)}
	}
	flatten("", tree, written)
	return written, nil
}

func flatten(prefix string, tree map[string]any, to map[string]string) {
	for key, v := range tree {
		if inner, ok := v.(map[string]any); ok {
			flatten(prefix+key+".", inner, to)
			continue
		}
		to[prefix+key] = strings.TrimSpace(fmt.Sprint(v))
	}
}
