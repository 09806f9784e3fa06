package retain

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"reasonix/blob"
	"reasonix/store"
)

// PurgeOptions say how far a purge goes.
type PurgeOptions struct {
	Messages bool // also redact what conversations repeat of the contents
	Dry      bool // change nothing
}

// Purge is what a purge did, or would do.
type Purge struct {
	store.Purged
	Texts   []store.Text // of conversations that repeat a part of the contents
	Backups []string     // copies of the store, which a purge does not touch
	// Clean says that no file of the store holds the bytes any more. It is false when another
	// process still reads an older state.
	Clean bool
}

// Purge removes every content that paths ever had from the store, for a secret that slipped in:
// from rows, from what was stored against them, and from the free parts of the store's files.
// It needs room for the store once more meanwhile. What lies in the workspace is not touched. A kill
// leaves the store whole, and Purge can be called again: Clean tells when it is done.
func (c *Collector) Purge(ctx context.Context, paths []store.Path, o PurgeOptions) (Purge, error) {
	// Whatever runs may hold the contents, or want them.
	unlock, err := c.Capture.LockExclusive(ctx)
	if err != nil {
		return Purge{}, err
	}
	defer unlock()
	s := c.Capture.Store
	var p Purge
	if p.Purged, err = s.PlanPurge(ctx, paths); err != nil {
		return p, err
	}
	if p.Backups, err = filepath.Glob(globEscape(s.Path()) + ".backup-*"); err != nil {
		return p, err
	}
	// The contents are read before they go.
	n, err := c.needles(ctx, p.Hashes())
	if err != nil {
		return p, err
	}
	if p.Texts, err = s.Redact(ctx, o.Dry || !o.Messages, n.replace); err != nil || o.Dry {
		return p, err
	}
	if p.Purged, err = s.Purge(ctx, paths); err != nil {
		return p, err
	}
	p.Clean, err = s.Erase(ctx)
	return p, err
}

func (n *needles) replace(text []byte, prompt bool) ([]byte, bool) {
	if prompt {
		now := n.text(string(text))
		return []byte(now), now != string(text)
	}
	return n.json(text)
}

// globEscape makes a name stand for itself in a pattern.
func globEscape(name string) string {
	var out []byte
	for i := range len(name) {
		switch name[i] {
		case '*', '?', '[', '\\':
			if filepath.Separator == '/' {
				out = append(out, '\\')
			}
		}
		out = append(out, name[i])
	}
	return string(out)
}

// needles are the lines of contents, less those that other contents have too: what is common in the
// workspace is no secret, and redacting it would only spoil the conversation.
func (c *Collector) needles(ctx context.Context, purged []blob.Hash) (*needles, error) {
	blobs := c.Capture.Store.Blobs()
	lines := map[string]bool{}
	for _, h := range purged {
		b, err := blobs.Read(ctx, h, blob.ChunkSize)
		if errors.Is(err, blob.ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read what is to be purged: %w", err)
		}
		for _, l := range linesOf(b) {
			lines[l] = true
		}
	}
	if len(lines) == 0 {
		return newNeedles(nil), nil
	}
	messages, err := c.messageBlobs(ctx)
	if err != nil {
		return nil, err
	}
	for in, err := range blobs.All(ctx) {
		if err != nil {
			return nil, err
		}
		if in.Expired || in.Size > blob.ChunkSize || slices.Contains(purged, in.Hash) || messages[in.Hash] {
			continue
		}
		b, err := blobs.Read(ctx, in.Hash, blob.ChunkSize)
		if err != nil {
			continue // damage is verify's business
		}
		for _, l := range linesOf(b) {
			delete(lines, l)
		}
	}
	return newNeedles(lines), nil
}

// messageBlobs are the contents of large messages, which may repeat anything.
func (c *Collector) messageBlobs(ctx context.Context) (all map[blob.Hash]bool, err error) {
	err = c.Capture.Store.View(ctx, func(tx *store.Tx) error {
		all, err = tx.MessageBlobs()
		return err
	})
	return all, err
}
