//go:build !linux

package workspace

import (
	"errors"
	"os"
)

// canSwap says that the system can exchange two names and refuse to replace one.
const canSwap = false

// canSyncAll says that one call makes a whole file system durable and reports its errors.
const canSyncAll = false

func exchangeAt(*os.File, string, *os.File, string) error  { return errors.ErrUnsupported }
func renameNewAt(*os.File, string, *os.File, string) error { return errors.ErrUnsupported }
func isUnsupported(err error) bool                         { return errors.Is(err, errors.ErrUnsupported) }
func syncAll(*os.File) error                               { return errors.ErrUnsupported }
