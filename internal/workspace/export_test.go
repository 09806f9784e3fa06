package workspace

import (
	"bytes"
	"context"
	"fmt"

	"reasonix/store"
)

// NoSwap makes r behave as on a system that cannot exchange names.
func NoSwap(r *Root) { r.noSwap = true }

// StageName is the name of p's staged file in the operation id.
var StageName = stageName

// ComparePaths is the order in which steps are made.
var ComparePaths = comparePaths

// CanSwap says whether the system can exchange names at all.
const CanSwap = canSwap

// Dump returns the paths of an index with what it says of each, for messages of tests.
func Dump(x *Index) map[string]string {
	all := map[string]string{}
	dump(all, ".", x.root)
	return all
}

func dump(all map[string]string, p store.Path, n *node) {
	all[string(p)+"/"] = fmt.Sprintf("%+v complete=%v left=%v gap=%v rules=%+v marked=%v", n.sig, n.complete, n.left, n.gap, n.rules, n.marked)
	for _, e := range n.entries {
		all[string(join(p, e.name))] = fmt.Sprintf("%v %+v gap=%v", e.state, e.sig, e.gap)
		if e.node != nil {
			dump(all, join(p, e.name), e.node)
		}
	}
}

// WithBatch is o with batches of n entries.
func (o ScanOptions) WithBatch(n int) ScanOptions {
	o.batch = n
	return o
}

// StopWith is o for a scan that stops when soft ends.
func (o ScanOptions) StopWith(soft context.Context) ScanOptions {
	o.soft = soft
	return o
}

// Seal is part with the checksum that it should have.
func Seal(part []byte) []byte {
	sum := checksum(part)
	return append(bytes.Clone(part), sum[:]...)
}
