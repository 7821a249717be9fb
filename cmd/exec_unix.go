//go:build unix

package cmd

import (
	"fmt"
	"os"
	"syscall"
)

// becomePath replaces shield with the program at the path that was opened, if
// it is still the same file.
func (cmd *command) becomePath() error {
	opened, err := cmd.file.Stat()
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	now, err := os.Stat(cmd.file.Name())
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	if !os.SameFile(opened, now) || opened.Size() != now.Size() || !opened.ModTime().Equal(now.ModTime()) {
		return fmt.Errorf("exec %s: the file changed while it was judged", cmd.file.Name())
	}
	return fmt.Errorf("exec %s: %w", cmd.file.Name(), syscall.Exec(cmd.file.Name(), cmd.argv, cmd.env))
}
