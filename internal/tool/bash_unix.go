//go:build unix

package tool

import (
	"os/exec"
	"syscall"
)

func (r *running) shell() string {
	if r.o.Shell != "" {
		return r.o.Shell
	}
	return "/bin/sh"
}

func (r *running) flag() string { return "-c" }

// group puts the command into a process group of its own, which is killed as a whole.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killGroup ends what the command left behind.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there may be nobody
	}
}
