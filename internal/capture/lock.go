package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"reasonix/store"
)

// The workspace lock: recorders hold it shared for each capture, an operation that may write
// files holds it exclusively. The system releases it when its process dies, so no lock is
// ever stale. It lies beside the store.

// LockShared waits for operations to end; ErrLocked when ctx ends first.
func (c *Capturer) LockShared(ctx context.Context) (unlock func(), err error) {
	return lock(ctx, c.lockFile(), (*flock.Flock).TryRLock, (*flock.Flock).RLock)
}

// LockExclusive waits for captures and other operations to end; ErrLocked when ctx ends first.
func (c *Capturer) LockExclusive(ctx context.Context) (unlock func(), err error) {
	return lock(ctx, c.lockFile(), (*flock.Flock).TryLock, (*flock.Flock).Lock)
}

// TryExclusive takes the lock if it is free at once.
func (c *Capturer) TryExclusive() (unlock func(), ok bool, err error) {
	l := flock.New(c.lockFile(), flock.SetPermissions(0o600))
	ok, err = l.TryLock()
	if err != nil || !ok {
		return nil, false, errors.Join(err, l.Close())
	}
	return func() { _ = l.Close() }, true, nil
}

// lockScan waits for the scan of another process to end: one index has one writer. Whoever takes
// the workspace lock too takes that first.
func (c *Capturer) lockScan(ctx context.Context) (unlock func(), err error) {
	return lock(ctx, c.Store.Path()+".scan", (*flock.Flock).TryLock, (*flock.Flock).Lock)
}

func (c *Capturer) lockFile() string { return c.Store.Path() + ".workspace" }

func lock(ctx context.Context, file string, try func(*flock.Flock) (bool, error), wait func(*flock.Flock) error) (func(), error) {
	l := flock.New(file, flock.SetPermissions(0o600))
	unlock := func() { _ = l.Close() } // closing the descriptor is what releases
	switch ok, err := try(l); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock workspace: %w", err), l.Close())
	case ok:
		return unlock, nil
	}
	// Polling would starve behind a stream of other processes; the system's own queue does not.
	// It cannot be left, so the one who waits there hands the lock over or gives it back.
	got := make(chan error, 1)
	go func() { got <- wait(l) }()
	select {
	case err := <-got:
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock workspace: %w", err), l.Close())
		}
		return unlock, nil
	case <-ctx.Done():
		go func() {
			if <-got == nil {
				unlock()
				return
			}
			_ = l.Close() // it was never held
		}()
		return nil, fmt.Errorf("%w: %w", ErrLocked, ctx.Err())
	}
}

// LockTurn marks a session as driven by this live process until unlock or its death. ErrLocked
// when another one drives it.
func (c *Capturer) LockTurn(ctx context.Context, id store.SessionID) (unlock func(), err error) {
	// TurnAlive may hold the lock for the moment that it needs to ask.
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	unlock, err = lock(ctx, c.turnFile(id), (*flock.Flock).TryLock, (*flock.Flock).Lock)
	if err != nil {
		return nil, fmt.Errorf("session %s has a turn in another live process: %w", id, err)
	}
	return unlock, nil
}

// TurnAlive reports whether a live process holds the session's turn.
func (c *Capturer) TurnAlive(id store.SessionID) (bool, error) {
	if _, err := os.Stat(c.turnFile(id)); err != nil {
		return false, nil // no process ever marked it
	}
	l := flock.New(c.turnFile(id), flock.SetPermissions(0o600))
	ok, err := l.TryRLock()
	return err == nil && !ok, errors.Join(err, l.Close())
}

func (c *Capturer) turnFile(id store.SessionID) string {
	return filepath.Join(filepath.Dir(c.Store.Path()), "turn-"+string(id)+".lock")
}
