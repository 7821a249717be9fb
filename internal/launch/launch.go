// Package launch runs a command that was judged, and nothing else: the words that
// run are those of the text that was judged, the program is the file that was
// found and opened before, and the environment holds nothing that makes it run
// something other than its command line says.
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

// A Command is what is judged and then runs: the same words, the same file.
type Command struct {
	argv    []string
	program *program
	text    string // parses into argv
	env     []string
}

// Streams are those of a command that cannot take shield's place.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// New looks a program up in the PATH of the environment that it will run with,
// and opens it. argv holds at least its name.
func New(argv, env []string) (*Command, error) {
	path, err := LookPath(argv[0], env)
	if err != nil {
		return nil, err
	}
	judged := slices.Clone(argv)
	if !StandardFolder(filepath.Dir(path)) {
		judged[0] = path // a program from elsewhere is not taken for the one its name suggests
	}
	text, err := quote(judged)
	if err != nil {
		return nil, err
	}
	return open(path, &Command{argv: argv, env: env, text: text})
}

// NewShell is [New] for a text that sh -c runs.
func NewShell(text string, env []string) (*Command, error) {
	const shell = "/bin/sh"
	// The -- keeps a text that starts with a dash from being an option.
	return open(shell, &Command{argv: []string{shell, "-c", "--", text}, env: env, text: text})
}

func open(path string, cmd *Command) (_ *Command, err error) {
	if cmd.program, err = openProgram(path); err != nil {
		return nil, err
	}
	return cmd, nil
}

// Text returns the command line to judge.
func (cmd *Command) Text() string { return cmd.text }

// Path returns where the program is.
func (cmd *Command) Path() string { return cmd.program.file.Name() }

// Child returns the command as one that another process than shield becomes, if its path
// still leads to the file that was opened.
func (cmd *Command) Child() (*exec.Cmd, error) {
	if err := cmd.program.unmoved(); err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: cmd.Path(), Args: cmd.argv, Env: cmd.env}, nil
}

// Close closes the program's file, if the command did not run.
func (cmd *Command) Close() error { return cmd.program.file.Close() }

// quote returns a command line that parses into exactly these words.
func quote(words []string) (string, error) {
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
