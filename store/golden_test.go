package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/blob"
	"reasonix/store"
)

// released are the migrations that stores in the field have run: they never change.
var released = map[string]string{
	"0001_history.sql":   "4ec31200853289a97be522d89d90b1d2f155c368ecedd01868dece965f98260a",
	"0002_scan.sql":      "62772a1b41170d2b5ccedc3b25492fb2899594085d51605340bb3b429ee1b4f0",
	"0003_retention.sql": "eaeaee67130b78af6870f2bddeef9c59dcbe858ae96a7d968c06d0de0cb5fd8a",
}

func TestReleasedMigrationsNeverChange(t *testing.T) {
	for name, want := range released {
		b, err := os.ReadFile(filepath.Join("../db/migrations", name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s changed: its hash is %x. Add another migration instead", name, sum)
		}
	}
}

// golden is what the stores of testdata/stores hold, each written by the version that released
// its schema.
func golden(ctx context.Context, s *store.Store) error {
	text := []byte("package main\n")
	content, err := s.Blobs().PrepareBytes(ctx, text)
	if err != nil {
		return err
	}
	large, err := s.Blobs().Prepare(ctx, bytes.NewReader(bytes.Repeat([]byte("0123456789abcdef\n"), 100_000)))
	if err != nil {
		return err
	}
	msgs, err := s.PrepareMessages(ctx, "", []json.RawMessage{
		json.RawMessage(`{"role":"system","content":"preamble"}`), json.RawMessage(`{"role":"user",  "content":"caf\u00e9"}`),
	})
	if err != nil {
		return err
	}
	file := store.State{Kind: store.File, Mode: 0o644, Blob: content.Hash(), Size: content.Size()}
	big := store.State{Kind: store.File, Mode: 0o600, Blob: large.Hash(), Size: large.Size()}
	return s.Update(ctx, func(tx *store.WriteTx) error {
		if err := tx.Bind(content); err != nil {
			return err
		}
		if err := tx.Bind(large); err != nil {
			return err
		}
		ses, err := tx.CreateSession(store.NewSession{Source: "golden", SourceID: "one"})
		if err != nil {
			return err
		}
		if err := tx.SetCurrent(ses.ID); err != nil {
			return err
		}
		root, err := tx.Node(ses.Root)
		if err != nil {
			return err
		}
		if err := tx.AppendMessages(root, msgs[:1]); err != nil {
			return err
		}
		turn, err := tx.BeginTurn(ses.ID, "key", "a prompt")
		if err != nil {
			return err
		}
		if err := tx.AppendMessages(turn.Node, msgs[1:]); err != nil {
			return err
		}
		for _, c := range []store.Change{
			{Path: "main.go", Source: store.SourceTool, Origin: store.Agent, Before: store.AbsentState, After: file},
			{Path: "caf\xe9", Source: store.SourceExternal, Origin: store.External, Before: file, After: big},
			{Path: "d", Source: store.SourceTool, Origin: store.Agent, Before: store.State{Kind: store.Dir, Mode: 0o755}, After: store.AbsentState},
		} {
			if err := tx.AppendChange(turn.Node, c); err != nil {
				return err
			}
		}
		if err := tx.AddGap(turn.Node, store.Gap{Reason: store.GapSpecial, Path: "run/sock", Tool: "bash"}); err != nil {
			return err
		}
		if err := tx.EndTurn(ses.ID, store.TurnDone); err != nil {
			return err
		}
		if err := tx.AddScanPart([]byte("a part"), true, 1); err != nil { // since schema 2
			return err
		}
		fork, err := tx.CreateSession(store.NewSession{Name: "fork", Head: turn.Node.Parent, Parent: ses.ID, ForkTurn: 0, ForkMsg: 1})
		if err != nil {
			return err
		}
		_, err = tx.AddOperation(store.Operation{
			Session: ses.ID, Kind: store.OpFork, Turn: 0, State: store.Applied, HeadFrom: turn.Node.ID, HeadTo: fork.Head,
		}, []store.OpPath{{Path: "main.go", From: file, To: file, Left: true}})
		return err
	})
}

// goldenKept adds what came with schema 3: differences, chunks, large messages, a pin, a purged content.
func goldenKept(ctx context.Context, s *store.Store) error {
	var states []store.State
	put := func(b []byte) error {
		var base blob.Hash
		if n := len(states); n > 0 {
			base = states[n-1].Blob
		}
		p, err := s.Blobs().PrepareAgainst(ctx, bytes.NewReader(b), base)
		if err != nil {
			return err
		}
		states = append(states, store.State{Kind: store.File, Mode: 0o644, Blob: p.Hash(), Size: p.Size()})
		return s.Update(ctx, func(tx *store.WriteTx) error { return tx.Bind(p) })
	}
	for _, b := range goldenVersions() {
		if err := put(b); err != nil {
			return err
		}
	}
	msgs, err := s.PrepareMessages(ctx, "", []json.RawMessage{goldenMessage()})
	if err != nil {
		return err
	}
	err = s.Update(ctx, func(tx *store.WriteTx) error {
		ses, err := tx.CreateSession(store.NewSession{Source: "golden", SourceID: "kept"})
		if err != nil {
			return err
		}
		turn, err := tx.BeginTurn(ses.ID, "", "kept")
		if err != nil {
			return err
		}
		if err := tx.AppendMessages(turn.Node, msgs); err != nil {
			return err
		}
		for i, name := range []store.Path{"secret", "edited", "log"} {
			c := store.Change{Path: name, Source: store.SourceTool, Origin: store.Agent, Before: states[2*i], After: states[2*i+1]}
			if err := tx.AppendChange(turn.Node, c); err != nil {
				return err
			}
		}
		if err := tx.EndTurn(ses.ID, store.TurnDone); err != nil {
			return err
		}
		if err := tx.AddPin("release", ses.ID, 0); err != nil {
			return err
		}
		return tx.SetDue(s.Now().Add(time.Hour))
	})
	if err != nil {
		return err
	}
	if _, err = s.Purge(ctx, []store.Path{"secret"}); err != nil {
		return err
	}
	return s.Update(ctx, func(tx *store.WriteTx) error { return tx.AddScanPart([]byte("a part"), true, 2) }) // a purge drops the index
}

// goldenVersions are the states of three paths, before and after.
func goldenVersions() [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	lines := func(n int) []byte {
		var b bytes.Buffer
		for range n {
			fmt.Fprintf(&b, "%x\n", r.Uint64())
		}
		return b.Bytes()
	}
	source, log := lines(1000), lines(70_000)
	edited := bytes.Replace(source, []byte("a"), []byte("another"), 1)
	return [][]byte{[]byte("password"), []byte("another password"), source, edited, log, append(bytes.Clone(log), "one line more\n"...)}
}

// goldenMessage is longer than what stands in a row.
func goldenMessage() json.RawMessage {
	return json.RawMessage(`{"role":"tool","content":"` + strings.Repeat("output ", 20_000) + `"}`)
}

// readGoldenKept checks all that.
func readGoldenKept(t *testing.T, s *store.Store) {
	t.Helper()
	ses := session(t, s, "golden03")
	if got := conversation(t, s, ses.Head, 0, -1); len(got) != 1 || got[0] != string(goldenMessage()) {
		t.Errorf("the large message has changed")
	}
	view(t, s, func(tx *store.Tx) error {
		pin, err := tx.Pin("release")
		if err != nil || pin.Session != ses.ID || pin.Turn != 0 {
			t.Errorf("pin %+v, %v", pin, err)
		}
		placed, err := tx.TurnChanges(ses.Head, 0)
		if err != nil || len(placed) != 3 {
			t.Fatalf("%d changes, %v", len(placed), err)
		}
		want := goldenVersions()
		for i, p := range placed {
			for j, state := range []store.State{p.Before, p.After} {
				b, err := s.Blobs().Read(t.Context(), state.Blob, state.Size)
				switch {
				case p.Path == "secret":
					if !errors.Is(err, blob.ErrExpired) {
						t.Errorf("a purged content: %v", err)
					}
				case err != nil || !bytes.Equal(b, want[2*i+j]):
					t.Errorf("%s: %d bytes, %v", p.Path, len(b), err)
				}
			}
		}
		return nil
	})
}

// TestGoldenStores opens a copy of each store that a released version wrote: everything in it is
// still understood. A new schema adds a store; none is ever edited.
func TestGoldenStores(t *testing.T) {
	const dir = "../testdata/stores"
	if os.Getenv("REASONIX_NEW_GOLDEN") != "" {
		at, n := time.Unix(1_800_000_000, 0), 0
		s, err := store.Open(t.Context(), filepath.Join(dir, fmt.Sprintf("v%d.db", len(released))), store.Options{
			Create: &store.Workspace{Root: "/workspace", Device: 1, Inode: 2},
			Now:    func() time.Time { return at },
			NewID:  func() store.SessionID { n++; return store.SessionID(fmt.Sprintf("golden%02d", n)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(golden(t.Context(), s), goldenKept(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(dir + "/*.db")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden store: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "store.db")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), name, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		problems, err := s.Verify(t.Context(), true, nil)
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %+v, %v", f, problems, err)
		}
		ses := session(t, s, "golden01")
		want := []string{`{"role":"system","content":"preamble"}`, `{"role":"user",  "content":"caf\u00e9"}`}
		if d := cmp.Diff(want, conversation(t, s, ses.Head, 0, -1)); d != "" {
			t.Errorf("%s: %s", f, d)
		}
		var rows []string
		view(t, s, func(tx *store.Tx) error {
			placed, err := tx.TurnChanges(ses.Head, 0)
			for _, p := range placed {
				rows = append(rows, fmt.Sprintf("%q %v %v %v→%v", p.Path, p.Source, p.Origin, p.Before, p.After))
			}
			fork, ferr := tx.Session("golden02")
			if ferr != nil || fork.Parent != "golden01" || fork.Messages != 1 || fork.Turns != 0 {
				t.Errorf("%s: fork %+v, %v", f, fork, ferr)
			}
			index, ierr := tx.ScanIndex()
			if before2 := strings.HasSuffix(f, "v1.db"); ierr != nil || (len(index.Parts) == 0) != before2 {
				t.Errorf("%s: index %q, %v", f, index.Parts, ierr)
			}
			return err
		})
		if d := cmp.Diff([]string{
			`"main.go" tool agent absent→file 0644 13 bytes 4e64166d`,
			`"caf\xe9" external external file 0644 13 bytes 4e64166d→file 0600 1700000 bytes aac9022b`,
			`"d" tool agent dir 0755→absent`,
		}, rows); d != "" {
			t.Errorf("%s: %s", f, d)
		}
		if filepath.Base(f) >= "v3.db" {
			readGoldenKept(t, s)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
