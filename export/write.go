package export

import (
	"context"
	"encoding/json"

	"reasonix/store"
)

// batchMessages is how many bytes of messages, and batchTurns how many turns, go into a transaction.
const (
	batchMessages = 4 << 20
	batchTurns    = 64
)

// write makes the turns with their messages and rows.
func (i *importer) write(ctx context.Context) error {
	if err := i.say(ctx, 0, i.firstOf(0)); err != nil {
		return err
	}
	known := map[store.Path]store.State{}
	at := 0 // in records
	for k := 0; k < len(i.turns); {
		// A transaction for turns whose messages are few; more of those come in more of them.
		from, bytes := k, int64(0)
		for k < len(i.turns) && k-from < batchTurns && bytes < batchMessages {
			bytes += i.bytesOf(i.firstOf(k), i.firstOf(k+1))
			k++
		}
		if bytes > batchMessages {
			k = from + 1
		}
		until := at
		for until < len(i.records) && i.records[until].turn < k {
			until++
		}
		if err := i.writeTurns(ctx, from, k, i.records[at:until], known); err != nil {
			return err
		}
		at = until
		if i.o.Progress != nil {
			i.o.Progress(len(i.turns)+k, 2*len(i.turns))
		}
	}
	return nil
}

// firstOf is the first message of a turn; the number of messages behind the last.
func (i *importer) firstOf(k int) int {
	if k >= len(i.turns) {
		return i.talk.len()
	}
	return i.turns[k].from
}

func (i *importer) bytesOf(from, to int) int64 {
	if to <= from {
		return 0
	}
	n := i.talk.ends[to-1]
	if from > 0 {
		n -= i.talk.ends[from-1]
	}
	return n
}

// prepare reads messages and gets them ready.
func (i *importer) prepare(ctx context.Context, from, to int) ([]store.NewMessage, error) {
	var raw []json.RawMessage
	for n := from; n < to; n++ {
		m, err := i.talk.at(n)
		if err != nil {
			return nil, err
		}
		raw = append(raw, m)
	}
	return i.store.PrepareMessages(ctx, i.making.ID, raw)
}

// say appends messages at the head, in transactions of bounded size.
func (i *importer) say(ctx context.Context, from, to int) error {
	for from < to {
		n := from + 1
		for n < to && i.bytesOf(from, n+1) <= batchMessages {
			n++
		}
		ready, err := i.prepare(ctx, from, n)
		if err != nil {
			return err
		}
		err = i.store.Update(ctx, func(tx *store.WriteTx) error { return tx.AppendImported(i.making, ready) })
		if err != nil {
			return err
		}
		from = n
	}
	return nil
}

// writeTurns makes turns lo up to hi with records, and their messages where they are few.
func (i *importer) writeTurns(ctx context.Context, lo, hi int, records []record, known map[store.Path]store.State) error {
	single := hi == lo+1 && i.bytesOf(i.firstOf(lo), i.firstOf(hi)) > batchMessages
	ready := make([][]store.NewMessage, hi-lo)
	for k := lo; k < hi && !single; k++ {
		var err error
		if ready[k-lo], err = i.prepare(ctx, i.firstOf(k), i.firstOf(k+1)); err != nil {
			return err
		}
	}
	err := i.store.Update(ctx, func(tx *store.WriteTx) error {
		at := 0
		for k := lo; k < hi; k++ {
			until := at
			for until < len(records) && records[until].turn == k {
				until++
			}
			if err := i.writeTurn(tx, k, records[at:until], known); err != nil {
				return err
			}
			at = until
			if err := tx.AppendImported(i.making, ready[k-lo]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !single {
		return err
	}
	return i.say(ctx, i.firstOf(lo), i.firstOf(hi))
}

func (i *importer) writeTurn(tx *store.WriteTx, k int, records []record, known map[store.Path]store.State) error {
	t := i.turns[k]
	// What is not as the turn before left it was changed by somebody else in between.
	var between []store.Change
	for _, r := range records {
		if was, ok := known[r.path]; ok && was != r.before {
			between = append(between, store.Change{Path: r.path, Source: store.SourceExternal, Origin: store.External, Before: was, After: r.before})
		}
	}
	if len(between) > 0 {
		n, err := tx.AddImportAppend(i.making)
		if err != nil {
			return err
		}
		for _, c := range between {
			if err := tx.AppendChange(n, c); err != nil {
				return err
			}
		}
	}
	end := t.time
	if k+1 < len(i.turns) {
		end = i.turns[k+1].time
	}
	n, err := tx.AddImportTurn(i.making, store.ImportTurn{Prompt: t.prompt, Status: store.TurnDone, Started: t.time, Ended: end})
	if err != nil {
		return err
	}
	for _, r := range records {
		known[r.path] = r.after
		if r.before == r.after {
			continue
		}
		c := store.Change{Path: r.path, Source: store.SourceImport, Origin: store.Agent, Before: r.before, After: r.after}
		if err := tx.AppendChange(n, c); err != nil {
			return err
		}
	}
	for _, g := range t.gaps {
		if err := tx.AddGap(n, gapIn(g)); err != nil {
			return err
		}
	}
	return nil
}

// gapIn is a gap of the files as ours.
func gapIn(g gap) store.Gap {
	out := store.Gap{Reason: store.GapFailed, Detail: g.Detail, Tool: g.Tool}
	switch g.Reason {
	case "bash_side_effect":
		out.Reason = store.GapShellNotScanned
	case "outside_workspace":
		out.Reason = store.GapOutside
	case "unreadable":
		out.Reason = store.GapUnreadable
	case "symlink":
		out.Reason = store.GapSymlinkedParent
	case "oversized":
		out.Reason = store.GapTooLarge
	case "background_writer_cross_turn":
		out.Reason = store.GapLateWrite
	case "capture_failed":
	default:
		out.Detail = g.Reason
		if g.Detail != "" {
			out.Detail += ": " + g.Detail
		}
	}
	if len(g.Path) <= 4096 {
		out.Path = store.Path(g.Path) // as it was named
	}
	return out
}
