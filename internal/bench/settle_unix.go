//go:build unix

package bench

import "golang.org/x/sys/unix"

// settleDisk writes out what others left unwritten.
func settleDisk() { unix.Sync() }
