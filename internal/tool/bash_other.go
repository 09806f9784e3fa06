//go:build !unix

package tool

import "os/exec"

func (r *running) shell() string {
	if r.o.Shell != "" {
		return r.o.Shell
	}
	return "cmd.exe"
}

func (r *running) flag() string {
	if r.o.Shell != "" {
		return "-c"
	}
	return "/C"
}

func group(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
