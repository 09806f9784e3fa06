package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// version is the release; the build may set it with -ldflags "-X main.version=…".
var version = "0.1.0"

func versionCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "print the version",
		Category:    "other",
		Description: "With --json also the revision it was built from, where the build knows it.",
		Action: func(*cli.Context) error {
			v := versionJSON{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Commit: commit()}
			return a.emit(v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "reasonix %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
				return err
			})
		},
	}
}

type versionJSON struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// commit is the revision that the program was built from; "" when the build does not say.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
