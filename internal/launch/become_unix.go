//go:build unix

package launch

import (
	"io/fs"
	"syscall"
)

// replaceByPath replaces shield with the program at the path that was opened, if
// it is still the same file.
func (cmd *Command) replaceByPath() error {
	if err := cmd.program.checkPathUnchanged(); err != nil {
		return err
	}
	return syscall.Exec(cmd.program.file.Name(), cmd.argv, cmd.env)
}

// IsExecutable reports whether a file of this mode may be run by anyone.
func IsExecutable(mode fs.FileMode) bool { return mode&0o111 != 0 }
