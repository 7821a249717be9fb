// Package launch executes exactly the command that was judged: the same words, the program file that
// was opened before judging, and an environment without variables that make the program run something
// else.
package launch

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Command is a judged command: its words and its program file do not change before it runs.
type Command struct {
	argv             []string
	program          *programFile
	shellCommandLine string // the command line to judge, in shell syntax; it does the same as argv
	env              []string
}

// Streams are the standard streams of a command that runs as a child process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// New looks up a program in the PATH of env and opens it. argv contains at least the program name.
func New(argv, env []string) (*Command, error) {
	path, err := LookPath(argv[0], env)
	if err != nil {
		return nil, err
	}
	judged := slices.Clone(argv)
	if !IsSystemProgramFolder(filepath.Dir(path)) {
		judged[0] = path // judge the full path, so that the name alone does not identify the program
	}
	text, err := quoteWords(judged)
	if err != nil {
		return nil, err
	}
	return openProgramOfCommand(path, &Command{argv: argv, env: env, shellCommandLine: text})
}

// NewShell is [New] for a command line that sh -c runs.
func NewShell(text string, env []string) (*Command, error) {
	const shell = "/bin/sh"
	// The -- ends options, for a text that starts with a dash.
	return openProgramOfCommand(shell, &Command{argv: []string{shell, "-c", "--", text}, env: env, shellCommandLine: text})
}

func openProgramOfCommand(programPath string, cmd *Command) (_ *Command, err error) {
	if cmd.program, err = openProgram(programPath); err != nil {
		return nil, err
	}
	return cmd, nil
}

// ShellCommandLine returns the command line to judge.
func (cmd *Command) ShellCommandLine() string { return cmd.shellCommandLine }

// Path returns the path of the program.
func (cmd *Command) Path() string { return cmd.program.file.Name() }

// NewChildCommand returns the command for a child process, if its path still leads to the opened file.
func (cmd *Command) NewChildCommand() (*exec.Cmd, error) {
	if err := cmd.program.checkFileAtPathUnchanged(); err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: cmd.Path(), Args: cmd.argv, Env: cmd.env}, nil
}

// Close closes the program's file, if the command is not run.
func (cmd *Command) Close() error { return cmd.program.file.Close() }

// quoteWords returns a command line that parses into exactly these words.
func quoteWords(words []string) (string, error) {
	quoted := make([]string, len(words))
	for i, word := range words {
		q, err := syntax.Quote(word, syntax.LangBash)
		if err != nil {
			return "", fmt.Errorf("argument %d: %w", i, err)
		}
		quoted[i] = q
	}
	return strings.Join(quoted, " "), nil
}
