// Command reasonix is a git-free time machine for the sessions of coding agents.
//
// One command lies in one file: flags, then options, then a call into the packages below,
// then output. Results go to standard output, messages and progress to standard error. What
// an error means for the exit code is decided in exit.go alone, and the order of arguments in
// args.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

func main() {
	cli.FlagStringer = flagText
	os.Exit(run(os.Args[1:]))
}

// run is the program; it returns the exit code.
func run(args []string) int {
	surviveFullFiles()
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		now: time.Now, env: os.Getenv,
	}
	return a.run(args)
}

func (a *app) run(args []string) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	defer func() {
		if p := recover(); p != nil {
			code = a.fail(&panicError{value: p, stack: debug.Stack()})
		}
	}()
	err := a.dispatch(ctx, args)
	if isHook(a.cli(), args) {
		return a.fail(a.hookError(ctx, args, err))
	}
	var bad *usage
	if errors.As(err, &bad) {
		a.json = a.json || asksFor(args, "--json") // the flags may not have been read
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", errInterrupted, err)
	}
	return a.fail(err)
}

func (a *app) dispatch(ctx context.Context, args []string) error {
	c := a.cli()
	ordered, err := a.order(c, args)
	if err != nil {
		return err
	}
	return c.RunContext(ctx, append([]string{c.Name}, ordered...))
}

// cli describes the program to urfave/cli, which parses what order has put in order.
func (a *app) cli() *cli.App {
	c := &cli.App{
		Name:                      "reasonix",
		Usage:                     "rewind, undo and fork coding-agent sessions, without git",
		Description:               description,
		Writer:                    a.stdout,
		ErrWriter:                 a.stderr,
		Reader:                    a.stdin,
		HideVersion:               true, // -v means verbose
		EnableBashCompletion:      true,
		DisableSliceFlagSeparator: true, // a path may hold a comma
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              usageError,
		Flags:                     a.globalFlags(),
		Before:                    a.checkGlobals,
		Commands: []*cli.Command{
			runCommand(a), chatCommand(a),
			sessionsCommand(a), logCommand(a), showCommand(a), diffCommand(a), messagesCommand(a),
			catCommand(a), historyCommand(a), treeCommand(a), opsCommand(a),
			rewindCommand(a), undoCommand(a), redoCommand(a), forkCommand(a), switchCommand(a),
			exportCommand(a), importCommand(a), hookCommand(a), scanCommand(a), doctorCommand(a),
			sqlCommand(a), verifyCommand(a), statsCommand(a), benchCommand(a), gcCommand(a), pinCommand(a), unpinCommand(a),
			backupCommand(a), restoreCommand(a), storeCommand(a),
			serveCommand(a), demoCommand(a), completionCommand(a), versionCommand(a),
		},
	}
	for _, cmd := range c.Commands {
		prepare(cmd)
	}
	return c
}

// prepare sets what every command has in common.
func prepare(cmd *cli.Command) {
	// Otherwise "h" and "help" as arguments of any command would be commands.
	cmd.HideHelpCommand = true
	cmd.OnUsageError = usageError
	for _, sub := range cmd.Subcommands {
		prepare(sub)
	}
}

func usageError(_ *cli.Context, err error, _ bool) error { return badUsage("%s", err) }

const description = `The agent's hooks, or its own calls, record every turn: its prompt, its messages and the
files before and after each edit. Any turn can be rewound, every rewind can be undone.

TURN is a number from 0, -1 or latest for the last one, the name of a pin, or SESSION:TURN.
The slash forms work too: reasonix /rewind 2 code

Environment:
  REASONIX_STORE           the store's file, as --store
  REASONIX_HOOK_DEADLINE   how long a hook may take, such as 3s (the default)
  REASONIX_RETAIN_DAYS     how many days turns stay restorable (30; none for all)
  REASONIX_MAX_STORE       bytes of a store, beyond which older turns go (5GiB; none)
  REASONIX_CALL_TIMEOUT    how long a tool call without any event counts as running (10m)
  REASONIX_SCAN            auto (once an agent runs commands), always or never
  REASONIX_SCAN_DEADLINE   how long a scan may take
  REASONIX_MAX_FILE_SIZE   what is larger is not captured by scans, such as 64MiB (the default)
  REASONIX_MAX_FILES       nor are more files than these (200000)
  REASONIX_MAX_BYTES       nor more new bytes in one scan (2GiB)
  REASONIX_TOKEN           what serve asks for in place of a token of its own
  DEEPSEEK_API_KEY         the key of the model's server, for run; REASONIX_API_KEY counts more
  REASONIX_BASE_URL        the model's server (https://api.deepseek.com)
  REASONIX_MODEL           the model (deepseek-flash)
  REASONIX_CONTEXT         how many tokens a conversation may have (1000000)
  REASONIX_THINKING        enabled or disabled; REASONIX_EFFORT: low, high or max
  REASONIX_APPROVE         what the agent may do without asking: ask, auto-edit or full
  XDG_CONFIG_HOME          where reasonix/reasonix.toml with the same settings lies (~/.config)
  XDG_STATE_HOME           where stores and hook.log lie (~/.local/state)
  NO_COLOR, PAGER          as usual

Exit codes: 0 ok, 1 failure, 2 usage, 3 conflict or stale plan, 4 no such turn, session, path
or store, 5 busy, 6 damage, 7 store newer, foreign or corrupt, 130 interrupted.`

// panicError is a bug of this program.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("internal error: %v", e.value))
}
