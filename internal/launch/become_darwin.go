package launch

import (
	"io/fs"
	"syscall"
)

// ReplaceProcess replaces shield with the command. Programs cannot be run by
// descriptor here.
func (cmd *Command) ReplaceProcess(Streams) error { return cmd.execProgramByPath() }

// sameChangeTime reports whether two files have the same ctime, the time of the last change of
// content or metadata. Unlike mtime, a program cannot set ctime to an earlier time.
func sameChangeTime(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Ctimespec == y.Ctimespec
}
