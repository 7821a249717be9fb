//go:build unix

package launch

import (
	"io/fs"
	"syscall"
)

// execProgramByPath replaces shield with the program at the path that was opened, if
// it is still the same file.
func (cmd *Command) execProgramByPath() error {
	if err := cmd.program.checkFileAtPathUnchanged(); err != nil {
		return err
	}
	return syscall.Exec(cmd.program.file.Name(), cmd.argv, cmd.env)
}

// IsExecutable reports whether a file mode has the execute bit of the owner, the group or all other
// users.
func IsExecutable(mode fs.FileMode) bool { return mode&0o111 != 0 }
