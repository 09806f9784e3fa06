package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows on a terminal how far a long work is, from its first second on; nil elsewhere.
// The total of a work of unknown length is -1; done comes to it when the work is over.
func (a *app) progress(what string) func(done, total int64) {
	if a.quiet || !onTerminal(a.stderr) {
		return nil
	}
	began := a.now()
	var bar *progressbar.ProgressBar
	return func(done, total int64) {
		if bar == nil {
			if a.now().Sub(began) < time.Second || done == total {
				return
			}
			bar = progressbar.NewOptions64(
				total,
				progressbar.OptionSetWriter(a.stderr),
				progressbar.OptionSetDescription(what),
				progressbar.OptionSetWidth(24),
				progressbar.OptionShowCount(),
				progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionClearOnFinish(),
				progressbar.OptionUseANSICodes(true),
			)
		}
		// A bar that cannot be drawn is no reason to stop.
		if done == total {
			_ = bar.Finish()
			return
		}
		_ = bar.Set64(done)
	}
}
