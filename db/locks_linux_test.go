package db_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"reasonix/db"
)

// posixLocks counts the locks that this process holds on the file, as the kernel knows them.
func posixLocks(t *testing.T, path string) (n int) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	// number: POSIX ADVISORY READ pid major:minor:inode start end. Other processes may lock a
	// file of the same number on another file system.
	pid, inode := strconv.Itoa(os.Getpid()), fmt.Sprintf(":%d", info.Sys().(*syscall.Stat_t).Ino)
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) > 5 && f[1] == "POSIX" && f[4] == pid && strings.HasSuffix(f[5], inode) {
			n++
		}
	}
	return n
}

// An open connection holds a shared lock on the file, which keeps other processes from taking
// its WAL away. Reading the header through a descriptor of our own would drop it.
func TestASecondHandleKeepsTheLocksOfTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	d := open(t, path, db.Options{})
	if err := add(d, "a"); err != nil {
		t.Fatal(err)
	}
	want := posixLocks(t, path)
	if want == 0 {
		t.Fatal("an open store holds no lock")
	}
	for _, readOnly := range []bool{false, true} {
		if err := open(t, path, db.Options{ReadOnly: readOnly}).Close(); err != nil {
			t.Fatal(err)
		}
		if got := posixLocks(t, path); got != want {
			t.Errorf("%d locks after a second handle (read-only %v), %d before", got, readOnly, want)
		}
	}
}
