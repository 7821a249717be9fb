package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
)

// hookMargin is what the host waits beyond shield's own deadline, so that the
// answer is always shield's.
const hookMargin = 10 * time.Second

// hookSettingsCommands are the commands that edit and try a host's settings.
func hookSettingsCommands(w *World) []*cli.Command {
	command := func(name, usage string, run func(*hookSettings, *cli.Context) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "HOST", Flags: flags,
			Action: func(c *cli.Context) error {
				s, err := newHookSettings(c, w)
				if err == nil {
					err = run(s, c)
				}
				if err != nil {
					return fmt.Errorf("hook %s: %w", name, err)
				}
				return nil
			},
		}
	}
	scope := &cli.StringFlag{Name: "scope", Value: "user", Usage: "edit the settings of the `user|project`"}
	return []*cli.Command{
		command("install", "make a host call shield", (*hookSettings).install, scope,
			&cli.DurationFlag{Name: "timeout", Usage: "answer within `TIME`, waiting for a person included"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would change, and change nothing"}),
		command("uninstall", "undo install", (*hookSettings).uninstall, scope),
		command("status", "verify that the host enforces a denial", (*hookSettings).status),
	}
}

// hookSettings are a host's settings files.
type hookSettings struct {
	*host.Settings
	host     string
	world    *World
	deadline time.Duration // of a hook that is installed, or that names none
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
	deadline, err := hookDeadline(c, w)
	if err != nil {
		return nil, err
	}
	if deadline < time.Second || deadline > config.MaxHookTimeout {
		return nil, fmt.Errorf("--timeout %s is outside 1s to %s", deadline, config.MaxHookTimeout)
	}
	line, err := hookLine(w, h.Name, deadline)
	if err != nil {
		return nil, err
	}
	s, err := h.Settings(c.Context, line, int((deadline + hookMargin).Seconds()), w.Dir, w.OS)
	if err != nil {
		return nil, err
	}
	return &hookSettings{Settings: s, host: h.Name, world: w, deadline: deadline}, nil
}

// file returns the settings file of a scope; its path is "" if the folder is
// unknown.
func (s *hookSettings) file(scope host.Scope) (settingsFile, error) {
	base := s.world.Dir
	if scope.Name == "user" {
		base = s.world.Home
	}
	folder := filepath.Join(base, scope.Folder)
	if scope.Variable != "" {
		if dir := s.world.Getenv(scope.Variable); dir != "" {
			base, folder = dir, absolute([]string{dir}, s.world.Dir)[0]
		}
	}
	if base == "" {
		return settingsFile{}, nil
	}
	return newSettingsFile(filepath.Join(folder, scope.File))
}

// edited returns the settings file that a command line asks to edit.
func (s *hookSettings) edited(c *cli.Context) (settingsFile, error) {
	for _, scope := range s.Scopes {
		if !scope.Install || scope.Name != c.String("scope") {
			continue
		}
		file, err := s.file(scope)
		if err == nil && file.path == "" {
			err = errors.New("the folder of the settings is unknown; set HOME")
		}
		return file, err
	}
	return settingsFile{}, fmt.Errorf("--scope %q is neither user nor project", cut(c.String("scope")))
}

// maxEditWait is how long an edit of settings waits for another.
const maxEditWait = 10 * time.Second

// alone runs an edit while no other shield edits settings: of two that install
// at once, the second has to see what the first did.
func (s *hookSettings) alone(ctx context.Context, edit func() error) error {
	dir := config.StateDir(s.world.Home, s.world.Getenv)
	if dir == "" {
		return errors.New("no state folder; set HOME")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := flock.New(filepath.Join(dir, "hook.lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Lock(ctx, maxEditWait); err != nil {
		return err
	}
	return edit()
}

// install edits the settings file. A second time changes nothing.
func (s *hookSettings) install(c *cli.Context) error {
	file, err := s.edited(c)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		if _, _, _, err := s.added(c, file); err != nil {
			return err
		}
		fmt.Fprintln(s.world.Err, "shield: nothing was changed")
		return nil
	}
	if err := s.alone(c.Context, func() error { return s.put(c, file) }); err != nil {
		return err
	}
	_, problems := s.survey(c.Context)
	if len(problems) > 0 {
		return unenforced(problems)
	}
	fmt.Fprintf(s.world.Err, "shield: %s, then run: shield hook status %s\n", s.Next, s.host)
	return nil
}

// added returns a settings file without and with the hook, and shows the
// difference.
func (s *hookSettings) added(c *cli.Context, file settingsFile) (before, after []byte, existed bool, err error) {
	before, existed, err = file.read()
	if err != nil {
		return nil, nil, false, err
	}
	after, err = s.Install(c.Context, before)
	if err != nil {
		return nil, nil, false, fmt.Errorf("%s: %w", file.path, err)
	}
	s.showChange(file, before, after)
	return before, after, existed, nil
}

// put puts the hook into a settings file.
func (s *hookSettings) put(c *cli.Context, file settingsFile) error {
	before, after, existed, err := s.added(c, file)
	if err != nil {
		return err
	}
	if bytes.Equal(before, after) {
		return nil
	}
	if _, err := s.Commands(c.Context, before); err != nil { // what was there before shield
		if err := file.keep(before, existed); err != nil {
			return err
		}
	}
	return file.replace(after)
}

// uninstall takes the hook out of the settings file.
func (s *hookSettings) uninstall(c *cli.Context) error {
	file, err := s.edited(c)
	if err != nil {
		return err
	}
	return s.alone(c.Context, func() error { return s.remove(c, file) })
}

func (s *hookSettings) remove(c *cli.Context, file settingsFile) error {
	doc, exists, err := file.read()
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("%s is missing: %w", file.path, host.ErrNotInstalled)
	}
	before, existed, err := file.readBackup()
	if err != nil {
		return err
	}
	after, err := s.Uninstall(c.Context, doc, before)
	if err != nil {
		return fmt.Errorf("%s: %w", file.path, err)
	}
	s.showChange(file, doc, after)
	if len(after) == 0 && !existed {
		err = os.Remove(file.path)
	} else {
		err = file.replace(after)
	}
	if err != nil {
		return err
	}
	return file.forget()
}

// showChange prints the lines that go and come.
func (s *hookSettings) showChange(file settingsFile, before, after []byte) {
	if bytes.Equal(before, after) {
		fmt.Fprintf(s.world.Err, "shield: %s: already installed\n", file.path)
		return
	}
	old, now := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	fmt.Fprintf(s.world.Err, "--- %s\n+++ %s\n", file.path, file.path)
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
	return term.Escape(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
}
