package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/host"
)

// hookMargin is what the host waits beyond shield's own deadline, so that the
// answer is always shield's.
const hookMargin = 10 * time.Second

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
		command("install", "make a host call shield", func(c *cli.Context, s *hookSettings) error { return s.install(c) },
			&cli.DurationFlag{Name: "timeout", Value: hookDeadline, Usage: "answer within `TIME`, persons included"}),
		command("uninstall", "undo install", func(c *cli.Context, s *hookSettings) error { return s.uninstall(c) }),
		command("status", "prove that a denial bites", func(c *cli.Context, s *hookSettings) error { return s.status(c) }),
	}
}

// hookSettings is a host's settings file.
type hookSettings struct {
	*host.Settings
	host   string
	world  *World
	file   string
	backup string
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
	file := filepath.Join(base, name)
	return &hookSettings{Settings: s, host: h.Name, world: w, file: file, backup: file + ".before-shield"}, nil
}

// shellWord quotes a path for sh where it needs to be.
func shellWord(path string) string {
	quoted, err := quote([]string{path})
	if err != nil {
		return path
	}
	return quoted
}

// install edits the settings file. A second time changes nothing.
func (s *hookSettings) install(c *cli.Context) error {
	before, err := readOptional(s.file)
	if err != nil {
		return err
	}
	after, err := s.Install(c.Context, before)
	if err != nil {
		return fmt.Errorf("hook install: %s: %w", s.file, err)
	}
	if bytes.Equal(before, after) {
		fmt.Fprintf(s.world.Err, "shield: %s: already installed\n", s.file)
		return nil
	}
	s.showChange(before, after)
	if _, err := s.Commands(c.Context, before); err != nil { // what was there before shield
		if err := replaceFile(s.backup, before); err != nil {
			return err
		}
	}
	return replaceFile(s.file, after)
}

// uninstall takes the hook out of the settings file.
func (s *hookSettings) uninstall(c *cli.Context) error {
	doc, err := readOptional(s.file)
	if err != nil {
		return err
	}
	before, err := readOptional(s.backup)
	if err != nil {
		return err
	}
	after, err := s.Uninstall(c.Context, doc, before)
	if err != nil {
		return fmt.Errorf("hook uninstall: %s: %w", s.file, err)
	}
	s.showChange(doc, after)
	if len(after) == 0 {
		err = os.Remove(s.file)
	} else {
		err = replaceFile(s.file, after)
	}
	if err != nil {
		return err
	}
	if err := os.Remove(s.backup); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// status runs the installed command line as the host would, with an event that
// must be denied.
func (s *hookSettings) status(c *cli.Context) error {
	doc, err := readOptional(s.file)
	if err != nil {
		return err
	}
	lines, err := s.Commands(c.Context, doc)
	if err != nil {
		return fmt.Errorf("hook status: %s: %w; run 'shield hook install %s'", s.file, err, s.host)
	}
	for _, line := range lines {
		cmd := exec.CommandContext(c.Context, "/bin/sh", "-c", line)
		cmd.Stdin = bytes.NewReader(s.Sample)
		cmd.Dir, cmd.Env = s.world.Dir, s.world.Environ()
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		denied := cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == statusBlock ||
			err == nil && strings.Contains(out.String(), `"deny"`)
		if !denied {
			return fmt.Errorf("hook status: %q did not deny: %v %s%s", line, err, cut(out.String()), cut(errs.String()))
		}
		if _, err := fmt.Fprintf(s.world.Out, "%s: %s: a denial bites\n", s.file, line); err != nil {
			return err
		}
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
	fmt.Fprintf(s.world.Err, "--- %s\n+++ %s\n", s.file, s.file)
	for _, line := range old[head : len(old)-tail] {
		fmt.Fprintf(s.world.Err, "-%s\n", line)
	}
	for _, line := range now[head : len(now)-tail] {
		fmt.Fprintf(s.world.Err, "+%s\n", line)
	}
}

// readOptional returns a file's content, or nothing if it does not exist.
func readOptional(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// replaceFile puts a file in place of another in one step, with the other's
// mode.
func replaceFile(name string, data []byte) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	mode := fs.FileMode(0o600)
	if st, err := os.Stat(name); err == nil {
		mode = st.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".shield-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(mode); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
