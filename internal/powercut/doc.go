// Package powercut is for tests of what a power cut leaves. A Disk watches a folder from
// outside and knows, of every name, mode and content in it, whether it was made durable; an
// Image is one of the many trees that may be found after a cut.
//
// The disk is as unkind as POSIX allows. Syncing a file keeps its bytes and its mode, not its
// name. Syncing a folder keeps its names and its mode, not what the names lead to. A rename is
// one change while nothing of it is synced; one that crosses folders is torn in two by a sync of
// one of them. A symlink cannot be synced and has its target from the beginning.
package powercut
