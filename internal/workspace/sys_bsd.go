//go:build darwin || freebsd || netbsd

package workspace

import (
	"io/fs"
	"strings"
	"syscall"
)

func fillSig(s *Sig, fi fs.FileInfo) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.CTime = st.Ctimespec.Nano()
		s.Device, s.Inode = uint64(st.Dev), uint64(st.Ino)
	}
}

// foldName drops the characters that HFS+ ignores in names: ".g\u200cit" opens .git there
// (CVE-2014-9390).
func foldName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 0x200c && c <= 0x200f, c >= 0x202a && c <= 0x202e, c >= 0x206a && c <= 0x206f, c == 0xfeff:
			return -1
		}
		return c
	}, name)
}
