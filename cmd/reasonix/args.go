package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// urfave/cli stops looking for flags at the first argument: "rewind 2 --dry-run" would really
// rewind. order therefore puts argv in the order that it understands,
//
//	[global flags] command [subcommand] [flags] -- [arguments]
//
// and refuses what it does not know. A flag is known when the command or the program has it;
// "--" ends flags; "-", "-1" and "-1:PATH" are arguments.
func (a *app) order(c *cli.App, argv []string) ([]string, error) {
	a.dash = -1
	if n := len(argv); n > 0 && argv[n-1] == "--generate-bash-completion" {
		return argv, nil
	}
	o := ordering{app: c}
	for i := 0; i < len(argv); i++ {
		arg := argv[i]
		switch {
		case arg == "--":
			rest := argv[i+1:]
			if o.command == nil && len(rest) > 0 {
				o.word(rest[0])
				rest = rest[1:]
			}
			a.dash = len(o.args)
			o.args = append(o.args, rest...)
			i = len(argv)
		case !isFlag(arg):
			o.word(arg)
		default:
			o.flags = append(o.flags, flagWord{text: arg})
			// Whether the next word is its value is known once the command is.
			takes, err := o.takesValue(arg, argv[i+1:])
			if err != nil {
				return nil, err
			}
			if takes {
				i++
				o.flags[len(o.flags)-1].value = &argv[i]
			}
		}
	}
	return o.result()
}

type flagWord struct {
	text  string
	value *string // the word after it, when that is its value
}

type ordering struct {
	app     *cli.App
	name    string // of a command that there is not
	command *cli.Command
	path    []string // of the command
	flags   []flagWord
	args    []string
}

var number = regexp.MustCompile(`^-[0-9]+(:.*)?$`)

func isFlag(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && !number.MatchString(arg)
}

// word takes the next word that is no flag.
func (o *ordering) word(arg string) {
	switch {
	case o.command == nil && o.name == "":
		o.first(arg)
	case o.command != nil && len(o.args) == 0 && o.command.Name == "rewind" && arg == "fork":
		// A published form: "rewind fork 3" forks.
		o.command, o.path = o.app.Command("fork"), []string{"fork"}
	case o.command != nil && len(o.args) == 0 && o.command.Command(arg) != nil:
		o.command = o.command.Command(arg)
		o.path = append(o.path, o.command.Name)
	default:
		o.args = append(o.args, arg)
	}
}

// first takes the command. It may have a slash, as in an agent's chat, where its arguments may
// also come in the same word: "/rewind 2 code".
func (o *ordering) first(arg string) {
	words := []string{arg}
	if inside, ok := strings.CutPrefix(arg, "/"); ok {
		words = strings.Fields(inside)
	}
	if len(words) > 0 {
		o.command = o.app.Command(words[0])
	}
	if o.command == nil {
		o.name = arg
		return
	}
	o.path = []string{o.command.Name}
	for _, w := range words[1:] {
		o.word(w)
	}
}

// flag finds a flag by a word such as --name=value, and whether it is the program's.
func (o *ordering) flag(word string) (f cli.Flag, global bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"), "=")
	if o.command != nil {
		for _, f := range o.command.Flags {
			if slices.Contains(f.Names(), name) {
				return f, false
			}
		}
	}
	for _, f := range o.app.Flags {
		if slices.Contains(f.Names(), name) {
			return f, true
		}
	}
	if name == "help" || name == "h" {
		return cli.HelpFlag, o.command == nil
	}
	return nil, false
}

// takesValue reports whether the word after a flag belongs to it.
func (o *ordering) takesValue(word string, rest []string) (bool, error) {
	if strings.Contains(word, "=") {
		return false, nil
	}
	f, _ := o.flag(word)
	if f == nil {
		return false, o.unknown(word)
	}
	if b, ok := f.(interface{ TakesValue() bool }); !ok || !b.TakesValue() {
		return false, nil
	}
	if len(rest) == 0 {
		return false, badUsage("flag %s needs a value", word)
	}
	return true, nil
}

func (o *ordering) unknown(word string) error {
	if o.command == nil {
		return badUsage("unknown flag %s before the command", word)
	}
	return badUsage("unknown flag %s of %s", word, strings.Join(o.path, " "))
}

func (o *ordering) result() ([]string, error) {
	if o.command == nil && o.name == "" {
		return o.withoutCommand()
	}
	if o.command == nil {
		if err := o.help(); err != nil || o.command == nil {
			return []string{"--help"}, err
		}
	}
	var global, own []string
	for _, w := range o.flags {
		f, isGlobal := o.flag(w.text)
		if f == nil {
			return nil, o.unknown(w.text)
		}
		words := []string{w.text}
		if w.value != nil {
			// In one word, so that a value which looks like a flag stays a value.
			words = []string{w.text + "=" + *w.value}
		}
		if isGlobal {
			global = append(global, words...)
		} else {
			own = append(own, words...)
		}
	}
	all := append(append(global, o.path...), own...)
	return append(append(all, "--"), o.args...), nil
}

// help makes "help COMMAND" the command with --help; without one it stays that of the program.
func (o *ordering) help() error {
	if o.name != "help" && o.name != "h" {
		return &usage{text: "unknown command " + quote(o.name), hint: hintHelp}
	}
	words := o.args
	o.args = nil
	for _, w := range words {
		if o.command == nil && (w == "help" || w == "h") {
			continue
		}
		before := o.command
		o.name = ""
		o.word(w)
		if o.command == before {
			return &usage{text: "unknown command " + quote(strings.Join(words, " ")), hint: hintHelp}
		}
	}
	o.args, o.flags = nil, append(o.flags, flagWord{text: "--help"})
	return nil
}

const hintHelp = "reasonix --help lists the commands"

// withoutCommand handles flags alone: help and version.
func (o *ordering) withoutCommand() ([]string, error) {
	for _, w := range o.flags {
		if f, _ := o.flag(w.text); f == nil {
			return nil, o.unknown(w.text)
		}
	}
	return []string{"--help"}, nil
}

// asksFor reports whether a flag of the program, such as --json, stands among words that could
// not be parsed as a whole.
func asksFor(argv []string, flag string) bool {
	for _, arg := range argv {
		if arg == "--" {
			return false
		}
		if arg == flag || arg == flag+"=true" {
			return true
		}
	}
	return false
}

// isHook reports whether words that may not make sense as a whole are a call of hook.
func isHook(c *cli.App, argv []string) bool {
	o := ordering{app: c}
	lost := false // after a flag that nobody knows, the next word may be its value
	for i := 0; i < len(argv); i++ {
		switch arg := argv[i]; {
		case arg == "--":
		case isFlag(arg):
			takes, err := o.takesValue(arg, argv[i+1:])
			lost = lost || err != nil
			if takes {
				i++
			}
		case arg == "hook" || arg == "/hook":
			return true
		case !lost || c.Command(strings.TrimPrefix(arg, "/")) != nil:
			return false
		}
	}
	return false
}

// flagText is a flag in the text of --help. Defaults are told where they say something: not that
// a switch is off or that a name is not given.
func flagText(f cli.Flag) string {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	usage, value := doc.GetUsage(), ""
	if before, rest, found := strings.Cut(usage, "`"); found {
		if name, after, found := strings.Cut(rest, "`"); found {
			usage, value = before+name+after, " "+name
		}
	}
	if s, ok := f.(*cli.StringFlag); ok && s.Value != "" {
		usage += " (default: " + s.Value + ")"
	}
	if doc.TakesValue() && value == "" {
		value = " value"
	}
	var names []string
	for _, n := range f.Names() {
		dash := "--"
		if len(n) == 1 {
			dash = "-"
		}
		names = append(names, dash+n+value)
	}
	return strings.Join(names, ", ") + "\t" + usage
}
