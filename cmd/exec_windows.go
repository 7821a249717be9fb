package cmd

import (
	"errors"
	"io/fs"
	"os/exec"
)

// become runs the command and ends with its status: a process cannot be
// replaced here.
func (cmd *command) become(w *World) error {
	if err := cmd.program.unmoved(); err != nil {
		return cmd.failed(err)
	}
	child := exec.Cmd{Path: cmd.program.file.Name(), Args: cmd.argv, Env: cmd.env, Stdin: w.In, Stdout: w.Out, Stderr: w.Err}
	var exit *exec.ExitError
	switch err := child.Run(); {
	case errors.As(err, &exit):
		return &statusError{exit.ExitCode(), nil}
	case err != nil:
		return cmd.failed(err)
	default:
		return nil
	}
}

// executable is decided by a file's name here, when it is looked up.
func executable(fs.FileMode) bool { return true }

// sameChange cannot tell more than the time of writing does.
func sameChange(fs.FileInfo, fs.FileInfo) bool { return true }
