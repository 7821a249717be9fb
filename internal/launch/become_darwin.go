package launch

import (
	"io/fs"
	"syscall"
)

// ReplaceProcess replaces shield with the command. Programs cannot be run by
// descriptor here.
func (cmd *Command) ReplaceProcess(Streams) error { return cmd.replaceByPath() }

// sameChangeTime compares the times at which files were last changed in any way,
// which, other than the times of writing, cannot be set back.
func sameChangeTime(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Ctimespec == y.Ctimespec
}
