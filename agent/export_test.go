package agent

// SetMaxEntries lets a test name a folder with too many entries without making so many.
func SetMaxEntries(n int) (restore func()) {
	was := maxEntries
	maxEntries = n
	return func() { maxEntries = was }
}
