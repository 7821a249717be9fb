package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/shell/dialect"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

func execCommand(w *World) *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "judge a command, then become it if it is allowed",
		ArgsUsage: "-- CMD ARG…",
		Description: "Judges CMD with its arguments as an execute_command action in the current folder. If it is allowed, shield replaces itself with it, and the status is the command's own; otherwise nothing runs and the status is 2. " +
			"Variables that make programs load or run something else are dropped from the environment, and named on standard error.",
		Flags: append(placeFlags(),
			&cli.BoolFlag{Name: "shell", Usage: "take the one operand as text for sh -c"},
			&cli.BoolFlag{Name: "check", Usage: "judge only: end with 0 if the command is allowed, and run nothing"},
			&cli.StringFlag{Name: "dialect", Usage: "with --check: take the one operand as a line that an interactive `SHELL` has read: bash, zsh or fish"},
			&cli.StringSliceFlag{Name: "keep-env", Usage: "keep the variable `NAME`, which would be dropped; may be repeated"},
		),
		Action: func(c *cli.Context) error {
			var own *statusError // the command's
			err := runAllowed(c, w)
			if err == nil || errors.As(err, &own) {
				return err
			}
			return &statusError{statusBlock, err}
		},
	}
}

// A command is what exec judges and then runs: the same words, the same file.
type command struct {
	argv    []string
	program *program
	text    string // the command line that is judged; parses into argv
	env     []string

	unread bool // the text may mean something else to its shell
}

// runAllowed returns only if the command does not run, or was only checked.
func runAllowed(c *cli.Context, w *World) error {
	argv := c.Args().Slice()
	env, gone := cleanEnv(w.Environ(), c.StringSlice("keep-env"))
	var cmd *command
	var err error
	if c.IsSet("dialect") {
		if !c.Bool("check") {
			return errors.New("exec --dialect: only with --check")
		}
		cmd, err = newLine(argv, c.String("dialect"))
	} else {
		cmd, err = newCommand(argv, c.Bool("shell"), env)
	}
	if err != nil {
		return err
	}
	if cmd.program != nil { // a line that is only checked has none
		defer cmd.program.file.Close()
	}
	_, p, err := pipeline(c, w)
	if err != nil {
		return err
	}
	v, err := cmd.judge(c.Context, p, w.Dir)
	if err != nil {
		return err
	}
	if v.Decision != verdict.Allow {
		return fmt.Errorf("blocked: %s", v.Reasoning)
	}
	if c.Bool("check") {
		return nil
	}
	if c.Context.Err() != nil { // the signal was meant for the command, too
		return errors.New("exec: interrupted; nothing was run")
	}
	if len(gone) > 0 {
		fmt.Fprintf(w.Err, "shield: the command does not get %s from the environment; to keep one, use --keep-env NAME\n", term.Escape(strings.Join(gone, ", ")))
	}
	return cmd.become(w)
}

// newCommand looks the program up in the PATH that it will run with, and opens
// it.
func newCommand(argv []string, shell bool, env []string) (*command, error) {
	if len(argv) == 0 {
		return nil, errors.New("exec: CMD is missing")
	}
	cmd := &command{argv: argv, env: env}
	if shell {
		if len(argv) != 1 {
			return nil, fmt.Errorf("exec --shell: one operand expected, found %d", len(argv))
		}
		// The leading -- keeps a text that starts with a dash from being an option.
		cmd.text = argv[0]
		cmd.argv = []string{"/bin/sh", "-c", "--", argv[0]}
	}
	path, err := lookPath(cmd.argv[0], env)
	if err != nil {
		return nil, err
	}
	if !shell {
		judged := slices.Clone(argv)
		if !standardFolder(filepath.Dir(path)) {
			judged[0] = path // a program from elsewhere is not taken for the one its name suggests
		}
		if cmd.text, err = quote(judged); err != nil {
			return nil, err
		}
	}
	cmd.program, err = openProgram(path)
	return cmd, err
}

// newLine returns a line of an interactive shell, to be judged only.
func newLine(argv []string, shell string) (*command, error) {
	if len(argv) != 1 {
		return nil, fmt.Errorf("exec --dialect: one operand expected, found %d", len(argv))
	}
	text, same := argv[0], true
	switch shell {
	case "bash":
	case "zsh":
		text, same = dialect.FromZsh(text)
	case "fish":
		text, same = dialect.FromFish(text)
	default:
		return nil, fmt.Errorf("exec --dialect: %q is not one of bash, zsh, fish", cut(shell))
	}
	if !same {
		text = argv[0]
	}
	return &command{text: text, unread: !same}, nil
}

func (cmd *command) failed(err error) error {
	return fmt.Errorf("exec %s: %w", cmd.program.file.Name(), err)
}

// quote returns a command line that parses into exactly these words.
func quote(words []string) (string, error) {
	quoted := make([]string, len(words))
	for i, word := range words {
		q, err := syntax.Quote(word, syntax.LangBash)
		if err != nil {
			return "", fmt.Errorf("exec: argument %d: %w", i, err)
		}
		quoted[i] = q
	}
	return strings.Join(quoted, " "), nil
}

// judge judges the command line. Text that JSON cannot hold byte for byte is
// refused: what is judged has to be what runs.
func (cmd *command) judge(ctx context.Context, p *shield.Pipeline, dir string) (verdict.Verdict, error) {
	if !utf8.ValidString(cmd.text) {
		return verdict.Verdict{}, errors.New("exec --shell: the text is not valid UTF-8")
	}
	if !utf8.ValidString(dir) {
		return verdict.Verdict{}, errors.New("exec: the name of the current folder is not valid UTF-8")
	}
	fields := map[string]any{
		"type": "execute_command", "payload": map[string]string{"command": cmd.text}, "cwd": dir,
	}
	if cmd.unread {
		fields["min_tier"] = 2
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return verdict.Verdict{}, err
	}
	a, err := action.Parse(raw)
	if err != nil {
		return verdict.Verdict{}, fmt.Errorf("exec: %w", err)
	}
	return p.Evaluate(ctx, a), nil
}
