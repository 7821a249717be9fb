//go:build unix

package cmd

import (
	"io/fs"
	"syscall"
)

// becomePath replaces shield with the program at the path that was opened, if
// it is still the same file.
func (cmd *command) becomePath() error {
	if err := cmd.program.unmoved(); err != nil {
		return cmd.failed(err)
	}
	return cmd.failed(syscall.Exec(cmd.program.file.Name(), cmd.argv, cmd.env))
}

func executable(mode fs.FileMode) bool { return mode&0o111 != 0 }
