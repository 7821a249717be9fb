package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/subprocess"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
)

// hookMargin is what the host waits beyond shield's own deadline, so that the
// answer is always shield's.
const hookMargin = 10 * time.Second

// maxHookTime is the longest that a host lets a hook take, less the margin.
const maxHookTime = 10*time.Minute - hookMargin

// hookSettingsCommands are the commands that edit and try a host's settings.
func hookSettingsCommands(w *World) []*cli.Command {
	command := func(name, usage string, run func(*cli.Context, *hookSettings) error, more ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "HOST",
			Flags: append([]cli.Flag{&cli.StringFlag{Name: "scope", Value: "user", Usage: "edit the settings of the `user|project`"}}, more...),
			Action: func(c *cli.Context) error {
				s, err := newHookSettings(c, w)
				if err != nil {
					return err
				}
				return run(c, s)
			},
		}
	}
	return []*cli.Command{
		command("install", "make a host call shield", func(c *cli.Context, s *hookSettings) error { return s.alone(c, "install", s.install) },
			&cli.DurationFlag{Name: "timeout", Value: hookDeadline, Usage: "answer within `TIME`, persons included"}),
		command("uninstall", "undo install", func(c *cli.Context, s *hookSettings) error { return s.alone(c, "uninstall", s.uninstall) }),
		command("status", "prove that a denial bites", func(c *cli.Context, s *hookSettings) error { return s.status(c) }),
	}
}

// hookSettings is a host's settings file.
type hookSettings struct {
	*host.Settings
	host  string
	world *World
	file  settingsFile
}

func newHookSettings(c *cli.Context, w *World) (*hookSettings, error) {
	args, err := operands(c, "HOST")
	if err != nil {
		return nil, err
	}
	h, err := host.Named(args[0])
	if err != nil {
		return nil, err
	}
	if w.Executable == "" {
		return nil, errors.New("hook: the path of shield itself is unknown")
	}
	deadline := c.Duration("timeout")
	if c.IsSet("timeout") && (deadline < time.Second || deadline > maxHookTime) {
		return nil, fmt.Errorf("hook: --timeout %s is outside 1s to %s", deadline, maxHookTime)
	}
	line := fmt.Sprintf("%s hook %s --timeout %s", shellWord(w.Executable), h.Name, deadline)
	s, err := h.Settings(c.Context, line, int((deadline + hookMargin).Seconds()), w.Dir)
	if err != nil {
		return nil, err
	}
	name, ok := s.Files[c.String("scope")]
	if !ok {
		return nil, fmt.Errorf("hook: --scope %q is neither user nor project", cut(c.String("scope")))
	}
	base := w.Home
	if c.String("scope") == "project" {
		base = w.Dir
	}
	if base == "" {
		return nil, errors.New("hook: the folder of the settings is unknown")
	}
	file, err := newSettingsFile(filepath.Join(base, name))
	if err != nil {
		return nil, fmt.Errorf("hook: %w", err)
	}
	return &hookSettings{Settings: s, host: h.Name, world: w, file: file}, nil
}

// shellWord quotes a path for sh where it needs to be.
func shellWord(path string) string {
	quoted, err := quote([]string{path})
	if err != nil {
		return path
	}
	return quoted
}

// maxEditWait is how long an edit of settings waits for another.
const maxEditWait = 10 * time.Second

// alone runs an edit while no other shield edits settings: of two that install
// at once, the second has to see what the first did.
func (s *hookSettings) alone(c *cli.Context, name string, edit func(*cli.Context) error) error {
	dir := config.StateDir(s.world.Home, s.world.Getenv)
	if dir == "" {
		return fmt.Errorf("hook %s: no state folder; set HOME", name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("hook %s: %w", name, err)
	}
	lock, err := flock.New(filepath.Join(dir, "hook.lock"))
	if err != nil {
		return fmt.Errorf("hook %s: %w", name, err)
	}
	defer lock.Close()
	if err := lock.Lock(c.Context, maxEditWait); err != nil {
		return fmt.Errorf("hook %s: %w", name, err)
	}
	if err := edit(c); err != nil {
		return fmt.Errorf("hook %s: %w", name, err)
	}
	return nil
}

// install edits the settings file. A second time changes nothing.
func (s *hookSettings) install(c *cli.Context) error {
	before, existed, err := s.file.read()
	if err != nil {
		return err
	}
	after, err := s.Install(c.Context, before)
	if err != nil {
		return fmt.Errorf("%s: %w", s.file.path, err)
	}
	if bytes.Equal(before, after) {
		fmt.Fprintf(s.world.Err, "shield: %s: already installed\n", s.file.path)
		return nil
	}
	s.showChange(before, after)
	if _, err := s.Commands(c.Context, before); err != nil { // what was there before shield
		if err := s.file.keep(before, existed); err != nil {
			return err
		}
	}
	return s.file.replace(after)
}

// uninstall takes the hook out of the settings file.
func (s *hookSettings) uninstall(c *cli.Context) error {
	doc, _, err := s.file.read()
	if err != nil {
		return err
	}
	before, existed, err := s.file.readBackup()
	if err != nil {
		return err
	}
	after, err := s.Uninstall(c.Context, doc, before)
	if err != nil {
		return fmt.Errorf("%s: %w", s.file.path, err)
	}
	s.showChange(doc, after)
	if len(after) == 0 && !existed {
		err = os.Remove(s.file.path)
	} else {
		err = s.file.replace(after)
	}
	if err != nil {
		return err
	}
	return s.file.forget()
}

// statusTime bounds how long one installed command line may take. What it is
// asked is decided by rules.
const statusTime = 20 * time.Second

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// status runs the installed command line as the host would, with an event that
// must be denied. Only the host's own form of a denial counts: a program that
// always fails stops everything, and proves nothing.
func (s *hookSettings) status(c *cli.Context) error {
	doc, _, err := s.file.read()
	if err != nil {
		return err
	}
	lines, err := s.Commands(c.Context, doc)
	if err != nil {
		return fmt.Errorf("hook status: %s: %w; run 'shield hook install %s'", s.file.path, err, s.host)
	}
	for _, line := range lines {
		if err := s.try(c.Context, line); err != nil {
			return fmt.Errorf("hook status: %s: %q %w", s.file.path, cut(line), err)
		}
		if _, err := fmt.Fprintf(s.world.Out, "%s: %s: a denial bites\n", s.file.path, line); err != nil {
			return err
		}
	}
	return nil
}

func (s *hookSettings) try(ctx context.Context, line string) error {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Stdin = bytes.NewReader(s.Sample)
	cmd.Dir, cmd.Env = s.world.Dir, s.world.Environ()
	out, errs := subprocess.Output{Max: maxAnswer + 1}, subprocess.Output{Max: 1024}
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second // for what it has left behind on its streams
	subprocess.OwnGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot be started: %w", err)
	}
	err := cmd.Wait()
	subprocess.KillGroup(cmd)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("did not deny: no answer within %s", statusTime)
	case err != nil && cmd.ProcessState.ExitCode() == statusBlock:
		return fmt.Errorf("denies, but only because it fails: %q", cut(errs.String()))
	case err != nil:
		return fmt.Errorf("did not deny: %w %q", err, cut(errs.String()))
	case len(out.Bytes()) > maxAnswer:
		return fmt.Errorf("did not deny: more than %d KiB of output", maxAnswer>>10)
	}
	if err := s.Denied(ctx, out.Bytes()); err != nil {
		return fmt.Errorf("did not deny: %w: %q", err, cut(out.String()))
	}
	return nil
}

// showChange prints the lines that go and come.
func (s *hookSettings) showChange(before, after []byte) {
	old, now := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	fmt.Fprintf(s.world.Err, "--- %s\n+++ %s\n", s.file.path, s.file.path)
	for _, line := range old[head : len(old)-tail] {
		fmt.Fprintf(s.world.Err, "-%s\n", shown(line))
	}
	for _, line := range now[head : len(now)-tail] {
		fmt.Fprintf(s.world.Err, "+%s\n", shown(line))
	}
}

// shown returns a line of a settings file, which may be a repository's, as a
// terminal may have it.
func shown(line string) string {
	return term.Escape(strings.ReplaceAll(strings.TrimSuffix(line, ""), "	", "    "))
}
