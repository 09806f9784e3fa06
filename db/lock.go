package db

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/gofrs/flock"
)

// lock makes the caller the only writer of the store, among the goroutines of this process
// (slot) and among all processes (the file beside the store). Both queues are served in turn:
// SQLite's own busy handler polls, and with many writers it starves some of them.
//
// The system drops the file lock with the process, so that a kill leaves nothing behind; the
// empty file stays, since removing it would let two holders lock two different files.
func (d *DB) lock(ctx context.Context) (unlock func(), err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("wait for the writer lock: %w", err)
	}
	select {
	case d.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the writer lock: %w", ctx.Err())
	}
	unlockFile, err := lockFile(ctx, d.path+".lock")
	if err != nil {
		<-d.slot
		return nil, fmt.Errorf("wait for the writer lock: %w", err)
	}
	return func() { unlockFile(); <-d.slot }, nil
}

// lockFile takes the exclusive lock of the file at path, which is made when missing.
func lockFile(ctx context.Context, path string) (func(), error) {
	l := flock.New(path, flock.SetPermissions(0o600))
	// Closing the descriptor releases the lock, whatever Unlock has to complain about.
	unlock := func() { _ = l.Unlock() }
	ok, err := l.TryLock()
	if err != nil {
		return nil, err
	}
	if ok {
		return unlock, nil
	}

	// The lock cannot be waited for with a deadline: a goroutine waits, and lets go again of
	// what it gets when nobody is there to take it any more.
	got := make(chan error)
	go func() {
		err := l.Lock()
		for errors.Is(err, syscall.EINTR) {
			err = l.Lock()
		}
		select {
		case got <- err:
		case <-ctx.Done():
			if err == nil {
				unlock()
			}
		}
	}()
	select {
	case err := <-got:
		if err != nil {
			return nil, err
		}
		return unlock, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
