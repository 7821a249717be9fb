package launch

import (
	"io/fs"
	"os/exec"
)

// ReplaceProcess runs the command on the streams, since a process cannot be replaced
// here, and returns an [*exec.ExitError] for another status than 0.
func (cmd *Command) ReplaceProcess(s Streams) error {
	if err := cmd.program.checkFileAtPathUnchanged(); err != nil {
		return err
	}
	child := exec.Cmd{Path: cmd.program.file.Name(), Args: cmd.argv, Env: cmd.env, Stdin: s.In, Stdout: s.Out, Stderr: s.Err}
	return child.Run()
}

// IsExecutable always returns true: on Windows the file's name decides whether it is executable,
// and the lookup of a program checks the name.
func IsExecutable(fs.FileMode) bool { return true }

// sameChangeTime always returns true: Go's file information has no change time (ctime) here, so
// shield compares only the modification times.
func sameChangeTime(fs.FileInfo, fs.FileInfo) bool { return true }
