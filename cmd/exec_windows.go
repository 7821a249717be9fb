package cmd

import (
	"errors"
	"os/exec"
)

// become runs the command and ends with its status: a process cannot be
// replaced here. The open file keeps the program from being replaced.
func (cmd *command) become(w *World) error {
	child := exec.Cmd{Path: cmd.file.Name(), Args: cmd.argv, Env: cmd.env, Stdin: w.In, Stdout: w.Out, Stderr: w.Err}
	var exit *exec.ExitError
	switch err := child.Run(); {
	case errors.As(err, &exit):
		return &statusError{exit.ExitCode(), nil}
	default:
		return err
	}
}
