package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
)

func completionCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		ArgsUsage: "bash|zsh|fish",
		Category:  "other",
		Description: "bash: source <(reasonix completion bash)\n" +
			"zsh:  source <(reasonix completion zsh)\n" +
			"fish: reasonix completion fish | source",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return badUsage("completion takes one shell: bash, zsh or fish")
			}
			script, err := completionScript(c.App, c.Args().First())
			if err != nil {
				return err
			}
			return a.emit(completionJSON{c.Args().First(), script}, func(w io.Writer) error {
				_, err := fmt.Fprint(w, script)
				return err
			})
		},
	}
}

type completionJSON struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

func completionScript(c *cli.App, shell string) (string, error) {
	switch shell {
	case "bash":
		return bashCompletion, nil
	case "zsh":
		return zshCompletion, nil
	case "fish":
		return c.ToFishCompletion()
	}
	return "", badUsage("unknown shell %s: it is bash, zsh or fish", quote(shell))
}

// The scripts ask the program, which prints what can come next when it is called with
// --generate-bash-completion as its last argument.

const bashCompletion = `_reasonix() {
  local word="${COMP_WORDS[COMP_CWORD]}" ask=("${COMP_WORDS[@]:0:COMP_CWORD}")
  [[ "$word" == -* ]] && ask+=("$word")
  COMPREPLY=($(compgen -W "$("${ask[@]}" --generate-bash-completion 2>/dev/null)" -- "$word"))
}
complete -o default -F _reasonix reasonix
`

const zshCompletion = `#compdef reasonix
_reasonix() {
  local -a found
  local word="${words[CURRENT]}"
  if [[ "$word" == -* ]]; then
    found=("${(@f)$(${words[@]:0:CURRENT} --generate-bash-completion 2>/dev/null)}")
  else
    found=("${(@f)$(${words[@]:0:$((CURRENT-1))} --generate-bash-completion 2>/dev/null)}")
  fi
  if [[ -n "${found[1]}" ]]; then _describe 'values' found; else _files; fi
}
compdef _reasonix reasonix
`
