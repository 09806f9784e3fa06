package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"reasonix/rewind"
	"reasonix/store"
)

func conversationLines() []line {
	return []line{
		{
			name: "append", what: "append one message of 1 KB to 100,000", unit: "ms",
			targets: []Target{{Of: "value", AtMost: 0.6}, flat}, measure: measureAppend,
		},
		{name: "head", what: "move a head: rewind the conversation, 100,000 messages", unit: "ms", targets: []Target{flat}, measure: measureHead},
		{
			name: "fork", what: "fork at 100,000 messages", unit: "ms",
			targets: []Target{{Of: "a copied file of lines", AtLeast: 100}, flat}, measure: measureFork,
		},
		{
			name: "fork-bytes", what: "what such a fork adds to the store", unit: "bytes",
			targets: []Target{{Of: "value", AtMost: 4096}}, measure: measureForkBytes,
		},
		{
			name: "tail", what: "read the last 100 of 100,000 messages, 50 forks deep", unit: "ms",
			targets: []Target{flat}, measure: measureTail,
		},
		{
			name: "open-list", what: "open a store with 10,000 turns and list the last 50", unit: "ms",
			targets: []Target{{Of: "JSON", AtLeast: 500}}, measure: measureOpenList,
		},
	}
}

// small is the side that does the same where there is little; flat is the target beside it.
const small = "with 1,000"

var flat = Target{Of: small, AtLeast: 0.5}

// talk is a conversation of n messages of 1 KB, a thousand in each turn, made the first time.
func (r *rig) talk(n int) (*world, error) {
	return once(r, fmt.Sprint("talk", n), func() (*world, error) {
		w, err := r.world("")
		if err != nil {
			return nil, err
		}
		const each = 1000
		for done := 0; done < n; done += each {
			var raw []json.RawMessage
			for i := range min(each, n-done) {
				raw = append(raw, message(done+i))
			}
			if _, err := w.recorder.BeginTurn(r.ctx, w.id, "", "say something", raw); err != nil {
				return nil, err
			}
		}
		return w, w.end()
	})
}

// message is one of 1 KB.
func message(i int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":"user","content":"message %d %0960d"}`, i, i))
}

// both compares the same work in a long and in a short conversation, and others.
func (r *rig) both(times int, work func(w *world) (func() error, error), others ...side) (figures, error) {
	var sides []side
	for _, n := range []int{r.size(100_000, 500), r.size(1000, 50)} {
		w, err := r.talk(n)
		if err != nil {
			return figures{}, err
		}
		do, err := work(w)
		if err != nil {
			return figures{}, err
		}
		sides = append(sides, side{name: small, times: r.size(times, 2), do: do})
	}
	return r.compare(sides[0], append(sides[1:], others...)...)
}

func measureAppend(r *rig) (figures, error) {
	n := 0
	return r.both(100, func(w *world) (func() error, error) {
		return func() error {
			n++
			return w.recorder.Append(r.ctx, w.id, []json.RawMessage{message(n)})
		}, nil
	})
}

func measureHead(r *rig) (figures, error) {
	return r.both(40, func(w *world) (func() error, error) { return w.there(store.Conversation), nil })
}

func measureFork(r *rig) (figures, error) {
	at, err := r.folder("lines")
	if err != nil {
		return figures{}, err
	}
	var lines []byte
	for i := range r.size(100_000, 500) {
		lines = append(append(lines, message(i)...), '\n')
	}
	from := filepath.Join(at, "conversation.jsonl")
	if err := os.WriteFile(from, lines, 0o600); err != nil {
		return figures{}, err
	}
	return r.both(20, func(w *world) (func() error, error) {
		return func() error { _, err := w.forkAt(w.id); return err }, nil
	}, side{
		name: "a copied file of lines", do: func() error {
			b, err := os.ReadFile(from)
			if err != nil {
				return err
			}
			return replaceSynced(filepath.Join(at, "fork.jsonl"), b)
		},
	})
}

// forkAt forks a session at its end, where all messages are the parent's.
func (w *world) forkAt(id store.SessionID) (store.SessionID, error) {
	s, err := w.session(id)
	if err != nil {
		return "", err
	}
	res, err := w.move(rewind.Request{Kind: store.OpFork, Turn: s.Turns, Session: id})
	return res.Branch, err
}

func (w *world) session(id store.SessionID) (s store.Session, err error) {
	err = w.store.View(w.r.ctx, func(tx *store.Tx) error {
		s, err = tx.Session(id)
		return err
	})
	return s, err
}

// measureForkBytes makes many forks: a database grows by whole pages.
func measureForkBytes(r *rig) (figures, error) {
	w, err := r.talk(r.size(100_000, 500))
	if err != nil {
		return figures{}, err
	}
	size := func() (int64, error) {
		if err := w.store.Checkpoint(r.ctx); err != nil {
			return 0, err
		}
		info, err := os.Stat(w.file)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	before, err := size()
	if err != nil {
		return figures{}, err
	}
	n := r.size(200, 5)
	for range n {
		if _, err := w.forkAt(w.id); err != nil {
			return figures{}, err
		}
	}
	after, err := size()
	return figures{value: float64(after-before) / float64(n), note: fmt.Sprintf("the mean of %d forks", n)}, err
}

// measureTail reads the end of a conversation of which each fork has a part of its own.
func measureTail(r *rig) (figures, error) {
	return r.both(50, func(w *world) (func() error, error) {
		id := w.id
		for i := range r.size(50, 3) {
			res, err := w.forkAt(id)
			if err != nil {
				return nil, err
			}
			id = res
			if _, err := w.recorder.BeginTurn(r.ctx, id, "", "in a fork", []json.RawMessage{message(i)}); err != nil {
				return nil, err
			}
			if err := w.recorder.EndTurn(r.ctx, id, store.TurnDone); err != nil {
				return nil, err
			}
		}
		return func() error {
			return w.store.View(r.ctx, func(tx *store.Tx) error {
				s, err := tx.Session(id)
				if err != nil {
					return err
				}
				n := min(s.Messages, 100)
				for m, err := range tx.Messages(s.Head, s.Messages-n, s.Messages) {
					if err != nil {
						return err
					}
					if len(m.JSON) > 0 {
						n--
					}
				}
				if n != 0 {
					return errors.New("messages are missing")
				}
				return nil
			})
		}, nil
	})
}

// measureOpenList opens the store anew each time; the other way is to read a file for each turn.
func measureOpenList(r *rig) (figures, error) {
	w, err := r.world("")
	if err != nil {
		return figures{}, err
	}
	rnd, turns := random(), r.size(10_000, 100)
	var paths []store.Path
	for _, name := range fileNames(100) {
		if err := put(w.dir, name, code(rnd, 4<<10)); err != nil {
			return figures{}, err
		}
		paths = append(paths, store.Path(name))
	}
	read, err := w.capture.Read(r.ctx, paths)
	if err != nil {
		return figures{}, err
	}
	if err := w.history(turns, read); err != nil {
		return figures{}, err
	}
	at, err := r.folder("json")
	if err != nil {
		return figures{}, err
	}
	files := &jsonTurn{dir: at}
	for i := range turns {
		files.begin("change what has to be changed")
		for k := range 3 {
			files.add(fileName((3*i+k)%100), code(rnd, 4<<10))
		}
		if _, err := files.save(); err != nil {
			return figures{}, err
		}
	}
	return r.compare(
		side{times: r.size(20, 2), do: func() error { return w.list(50) }},
		side{name: "JSON", do: func() error { return files.load(turns) }},
	)
}

// list opens the store a second time and lists the newest turns.
func (w *world) list(n int) error {
	s, err := store.Open(w.r.ctx, w.file, store.Options{Now: w.r.o.Now})
	if err != nil {
		return err
	}
	err = s.View(w.r.ctx, func(tx *store.Tx) error {
		ses, err := tx.Session(w.id)
		if err != nil {
			return err
		}
		turns, err := tx.Turns(ses.Head, -1, n)
		if err == nil && len(turns) != n {
			err = fmt.Errorf("%d turns are listed", len(turns))
		}
		return err
	})
	return errors.Join(err, s.Close())
}
