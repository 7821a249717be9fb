package launch

import (
	"fmt"
	"io/fs"
	"syscall"
)

// ReplaceProcess replaces shield with the command. The file that was opened before
// judging is the one that runs: by its descriptor, or, for a script, whose
// interpreter needs a path, by its path if that still leads to it.
func (cmd *Command) ReplaceProcess(Streams) error {
	if cmd.program.isScript {
		return cmd.execProgramByPath()
	}
	if err := cmd.program.checkUnchanged(); err != nil {
		return err
	}
	return syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", cmd.program.file.Fd()), cmd.argv, cmd.env)
}

// sameChangeTime reports whether two files have the same ctime, the time of the last change of
// content or metadata. Unlike mtime, a program cannot set ctime to an earlier time.
func sameChangeTime(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Ctim == y.Ctim
}
