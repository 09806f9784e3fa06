package db_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"reasonix/db"
)

// Children of the tests are the test program itself, told by this variable what to do.
const roleVar = "REASONIX_DB_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := child(role, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(role, path, name string) error {
	d, err := db.Open(ctx, path, db.Options{Migrations: migrations(schema1)})
	if err != nil {
		return err
	}
	switch role {
	case "write":
		for i := range 20 {
			if err := add(d, fmt.Sprintf("%s-%d", name, i)); err != nil {
				return err
			}
		}
		return d.Close()
	case "hold": // is killed inside its transaction
		return d.Update(ctx, func(tx *db.WriteTx) error {
			if _, err := tx.Exec("INSERT INTO item (name) VALUES (?)", name); err != nil {
				return err
			}
			fmt.Println("holding")
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		})
	}
	return errors.New("no such role")
}

func command(role, path, name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], path, name)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestProcessesCreateAndWriteAtOnce(t *testing.T) {
	for round := range 3 {
		path := filepath.Join(t.TempDir(), "s.db")
		var cmds []*exec.Cmd
		for i := range 4 {
			cmd := command("write", path, fmt.Sprint(i))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			cmds = append(cmds, cmd)
		}
		for _, cmd := range cmds {
			if err := cmd.Wait(); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		if n := len(names(t, open(t, path, db.Options{}))); n != 80 {
			t.Errorf("round %d: %d rows", round, n)
		}
	}
}

func TestAKilledWriterLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	d := open(t, path, db.Options{})
	cmd := command("hold", path, "lost")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "holding\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}

	// While it holds the lock: readers go on, a writer waits no longer than its deadline.
	wantNames(t, d)
	short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	err = d.Update(short, func(*db.WriteTx) error { t.Error("two writers"); return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}

	done := make(chan error, 1)
	go func() { done <- add(d, "kept") }()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantNames(t, d, "kept")
}

func TestGoroutinesOfTwoHandles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	handles := []*db.DB{open(t, path, db.Options{}), open(t, path, db.Options{})}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d := handles[i%2]
			for j := range 20 {
				if err := add(d, fmt.Sprintf("%d-%d", i, j)); err != nil {
					t.Error(err)
				}
				if err := d.View(ctx, func(tx *db.ReadTx) error { return tx.Get(new(int), "SELECT count(*) FROM item") }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(names(t, handles[0])); n != 160 {
		t.Errorf("%d rows", n)
	}
}

func TestWaitingForTheWriterHonoursCtx(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	d, other := open(t, path, db.Options{}), open(t, path, db.Options{})
	err := d.Update(ctx, func(tx *db.WriteTx) error {
		for name, h := range map[string]*db.DB{"same handle": d, "another handle": other} {
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			err := h.Update(short, func(*db.WriteTx) error { t.Error("two writers"); return nil })
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Those who gave up do not keep the lock.
	if err := errors.Join(add(other, "a"), add(d, "b")); err != nil {
		t.Fatal(err)
	}
}
