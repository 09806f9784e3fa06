//go:build unix

package bench

import (
	"os/exec"
	"runtime"
	"syscall"
)

// peak is the most memory that a process has had, in MiB.
func peak(cmd *exec.Cmd) (float64, error) {
	use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errMissing("this system does not say what a process has used")
	}
	unit := 1024.0 // bytes
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	return float64(use.Maxrss) * unit / (1 << 20), nil
}
