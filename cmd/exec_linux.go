package cmd

import (
	"bytes"
	"fmt"
	"syscall"
)

// become replaces shield with the command. The file that was opened before
// judging is the one that runs: by its descriptor, or, if it is a script, whose
// interpreter needs a path, by its path if that is still the same file.
func (cmd *command) become(*World) error {
	var start [2]byte
	if _, err := cmd.file.ReadAt(start[:], 0); err == nil && !bytes.Equal(start[:], []byte("#!")) {
		err := syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", cmd.file.Fd()), cmd.argv, cmd.env)
		return fmt.Errorf("exec %s: %w", cmd.file.Name(), err)
	}
	return cmd.becomePath()
}
