//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// surviveFullFiles makes a write beyond the limit for files (ulimit -f) an error like that of a full disk,
// instead of the end of the process. Programs that are started have the signal as it was.
func surviveFullFiles() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
}
