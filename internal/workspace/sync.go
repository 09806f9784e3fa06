package workspace

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"reasonix/store"
)

// maxOpen files wait open to be synced.
const maxOpen = 128

// dirty is what has to be made durable: few things one by one, many by one call for each file
// system that they lie on. No error is ever ignored: after one, nothing is known to be durable.
type dirty struct {
	r    *Root
	bulk bool

	mu      sync.Mutex            // guards devices and folders
	devices map[uint64]store.Path // a folder on each device (bulk)
	folders map[store.Path]struct{}
	files   []opened // open, since a later open might be refused by the file's own mode
}

// opened is a file whose mode changed, and the path that it is about.
type opened struct {
	*os.File
	path store.Path
}

func newDirty(r *Root, bulk bool) *dirty {
	return &dirty{r: r, bulk: bulk, devices: map[uint64]store.Path{}, folders: map[store.Path]struct{}{}}
}

// device notes a file system by a folder on it.
func (d *dirty) device(device uint64, folder store.Path) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.devices[device]; !ok {
		d.devices[device] = folder
	}
}

// folder notes that names in f, or its mode, changed.
func (d *dirty) folder(f *folder) {
	if d.bulk {
		d.device(sigOf(f.info, d.r.o.Now()).Device, f.path)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.folders[f.path] = struct{}{}
}

// file takes over an open file of f whose mode changed and that p is about. It is closed when it
// is synced.
func (d *dirty) file(ctx context.Context, f *folder, file *os.File, p store.Path) error {
	if d.bulk {
		d.folder(f)
		return file.Close()
	}
	d.files = append(d.files, opened{file, p})
	if len(d.files) < maxOpen {
		return nil
	}
	return d.syncFiles(ctx)
}

func (d *dirty) close() {
	for _, f := range d.files {
		_ = f.Close() // an error was returned already
	}
	d.files = nil
}

func (d *dirty) sync(ctx context.Context) error {
	if err := d.syncFiles(ctx); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := d.syncDevices(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	paths := slices.SortedFunc(maps.Keys(d.folders), comparePaths)
	workers := syncWorkers
	if len(paths) <= 2 {
		workers = 1
	}
	return d.r.eachBatch(ctx, len(paths), workers, func(_ context.Context, c *cursor, i int) error {
		f, err := c.enter(paths[i])
		if meansAbsent(err) {
			return nil // removed later on: its own parent is in the list
		}
		if err == nil {
			err = f.sync()
		}
		if err != nil {
			return fmt.Errorf("sync folder %q: %w", paths[i], err)
		}
		return nil
	})
}

func (f *folder) sync() error {
	if err := f.r.fault("fsync", f.path); err != nil {
		return err
	}
	h, err := f.handle()
	if err != nil {
		return err
	}
	return syncFolder(h)
}

func (d *dirty) syncFiles(ctx context.Context) error {
	defer d.close()
	var next atomic.Int64
	return d.r.parallel(ctx, min(syncWorkers, len(d.files)), func(ctx context.Context) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(d.files) {
				return nil
			}
			if err := d.r.fault("fsync", d.files[i].path); err != nil {
				return err
			}
			if err := syncFile(d.files[i].File); err != nil {
				return err
			}
		}
	})
}

func (d *dirty) syncDevices() error {
	c := d.r.cursor()
	defer c.close()
	for _, p := range slices.SortedFunc(maps.Values(d.devices), comparePaths) {
		f, err := c.nearest(p) // a folder that is gone was on its parent's device, or took its own with it
		if err != nil {
			return err
		}
		if err := d.r.fault("sync", f.path); err != nil {
			return err
		}
		h, err := f.handle()
		if err != nil {
			return err
		}
		if err := syncAll(h); err != nil {
			return err
		}
	}
	return nil
}
