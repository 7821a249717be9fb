package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/subprocess"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/internal/watch"
	"github.com/shieldcli/shield/pkg/host"
)

// statusTime bounds how long one installed command line may take; its test action is decided by rules.
const statusTime = 20 * time.Second

// maxDenial bounds the output of a denying hook, in bytes.
const maxDenial = 64 << 10

// An installedHook is a hook of shield in a settings file that the host reads.
type installedHook struct {
	host.Hook
	installedLine
	file string
}

// status reads the settings as the host does, and runs the installed command line as the host would,
// with an event that must be denied. Any doubt is an error: the user relies on the answer "enforced".
func (s *hookSettings) status(c *cli.Context) error {
	seen := s.survey(c.Context)
	if c.Bool(acceptFlag) {
		if err := s.accept(c.Context, seen); err != nil {
			return err
		}
		seen = s.survey(c.Context)
	}
	hooks, problems := seen.hooks, seen.problems
	if len(hooks) == 0 && len(problems) == 0 {
		return fmt.Errorf("%w%s; run 'shield hook install %s'", host.ErrNotInstalled, s.missing(), s.host.Name)
	}
	if len(problems) == 0 {
		for _, h := range hooks {
			for _, todo := range h.Todo {
				problems = append(problems, h.file+": "+todo)
			}
			if err := s.tryDenial(c.Context, h); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %q %v", h.file, shortenText(h.Command), err))
			}
		}
	}
	if len(problems) > 0 {
		return unenforced(problems)
	}
	if err := s.warnAboutResults(c.Context, seen); err != nil {
		return err
	}
	for _, limit := range s.host.Limits() {
		fmt.Fprintf(s.world.Err, "shield: limit of %s: %s\n", s.host.Title(), limit)
	}
	var files []string
	for _, h := range hooks {
		if !slices.Contains(files, h.file) { // a file can hold several hooks, one for each event
			files = append(files, h.file)
		}
	}
	files = slices.Compact(files)
	state := "active in " + strings.Join(files, ", ") + " (test denial worked)."
	if unverified := s.unverified(); unverified != "" {
		state = "installed in " + strings.Join(files, ", ") + ". " + unverified
	}
	_, err := fmt.Fprintf(s.world.Out, "%s: %s %s\n", s.host.Title(), state, s.arrival)
	return errors.Join(err, s.arrival.checkReachable())
}

// unverified says what was not tested for a host whose program was never run with shield; "" for other
// hosts.
func (s *hookSettings) unverified() string {
	if s.host.Verified() != "" {
		return ""
	}
	return fmt.Sprintf("Unverified: the installed command denies, but %s was never run with it, so it is not tested that it calls the hook and obeys. Source of the settings format: %s.", s.host.Title(), s.host.Source())
}

// accept records the current programs of installed hooks.
func (s *hookSettings) accept(ctx context.Context, seen survey) error {
	if err := requirePerson(s.world, "hook status --"+acceptFlag, atTerminal); err != nil {
		return err
	}
	return s.withLock(ctx, func() error {
		for _, h := range slices.Concat(seen.hooks, seen.results.hooks, seen.permits.hooks) {
			if h.check == "" || checkProgram(h.program) != nil {
				continue
			}
			if err := recordIn(h.state, h.program).write(); err != nil {
				return err
			}
		}
		return nil
	})
}

// unenforced returns an error with the reasons why a host does not enforce a denial.
func unenforced(problems []string) error {
	for i, p := range problems {
		problems[i] = term.Escape(p) // a repository may have written the settings
	}
	return fmt.Errorf("the host does not enforce denials by shield:\n  %s", strings.Join(problems, "\n  "))
}

// missing lists the files from which the host would read a hook and that do not exist.
func (s *hookSettings) missing() string {
	var names []string
	for i := range s.Places {
		p := &s.Places[i]
		if !p.Edited() || !p.Asks() || p.Scope == "managed" {
			continue
		}
		files, err := s.files(p)
		if err != nil || len(files) == 0 {
			continue
		}
		if _, err := os.Lstat(files[0].path); err != nil {
			names = append(names, files[0].path+" is missing")
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// A survey is the shield hooks found in a host's settings.
type survey struct {
	found         // hooks called before a tool runs
	results found // hooks called with the result of a tool
	permits found // hooks called before the host asks its user
}

// A found lists the shield hooks for an event, and why they are not run, or not waited for.
type found struct {
	hooks    []installedHook
	problems []string
}

// survey reads all settings that the host reads.
func (s *hookSettings) survey(ctx context.Context) (all survey) {
	for _, name := range s.Off {
		if s.world.Getenv(name) != "" {
			all.problems = append(all.problems, name+" is set in the environment and disables hooks; unset it")
		}
	}
	seen, user := map[string]bool{}, s.userFiles()
	for i := range s.Places {
		p := &s.Places[i]
		files, err := s.files(p)
		if err != nil {
			all.problems = append(all.problems, err.Error())
		}
		for _, file := range files {
			if seen[file.path] {
				continue
			}
			seen[file.path] = true
			if err := s.inspect(ctx, p, file, user, &all); err != nil {
				all.problems = append(all.problems, err.Error())
			}
		}
	}
	if len(all.hooks) > 0 {
		all.problems = append(all.problems, s.companionFileProblems()...)
	}
	return all
}

// warnAboutResults warns if shield does not examine tool results although the host supports it, and if
// it does not answer before the host asks its user although that is installed or wanted. Denials are
// enforced in both cases.
func (s *hookSettings) warnAboutResults(ctx context.Context, seen survey) error {
	say := func(what string, f found, more ...string) {
		for _, h := range f.hooks {
			for _, todo := range h.Todo {
				more = append(more, h.file+": "+todo)
			}
		}
		for _, why := range append(f.problems, more...) {
			fmt.Fprintf(s.world.Err, "shield: %s: %s\n", what, term.Escape(why)) // a repository may have written the settings
		}
	}
	var missing []string
	examines := slices.ContainsFunc(s.Places, func(p host.Place) bool { return p.Examines() })
	if examines && len(seen.results.hooks) == 0 {
		missing = []string{"no hook of shield is installed for tool results; " + s.how + " again"}
	}
	say("not all tool results are scanned", seen.results, missing...)

	asking, err := s.permissionSettings(ctx)
	if errors.Is(err, host.ErrNoPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	var wrong []string
	if s.permits && len(seen.permits.hooks) == 0 {
		wrong = []string{"hook.permission_request is on, but its hook is not installed; " + asking.how}
	}
	if len(seen.permits.problems) == 0 {
		for _, h := range seen.permits.hooks {
			if err := asking.tryDenial(ctx, h); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %q %v", h.file, shortenText(h.Command), err))
			}
		}
	}
	say("shield does not answer all permission prompts of the host", seen.permits, wrong...)
	return nil
}

// permissionSettings returns the settings for the event that the host sends before it asks its user.
func (s *hookSettings) permissionSettings(ctx context.Context) (*hookSettings, error) {
	h, err := s.host.Permission()
	if err != nil {
		return nil, err
	}
	all, err := h.Settings(ctx, host.Lines{}, 0, s.world.Dir, s.world.OS)
	if err != nil {
		return nil, err
	}
	asking := *s
	asking.Settings, asking.host, asking.how = all, h, fmt.Sprintf("run 'shield hook install --%s %s'", permissionFlag, h.Name)
	return &asking, nil
}

// companionFileProblems returns the problems of further files that the host needs beside the one with
// the hook.
func (s *hookSettings) companionFileProblems() (problems []string) {
	for i := range s.Places {
		p := &s.Places[i]
		if !p.Beside() {
			continue
		}
		files, err := s.files(p)
		for _, file := range files {
			if doc, _, readErr := file.read(); err != nil || readErr != nil || !p.Whole(doc) {
				problems = append(problems, fmt.Sprintf("%s is missing or was changed; %s again", file.path, s.how))
			}
		}
	}
	return problems
}

// userFiles returns the readable settings files of the user.
func (s *hookSettings) userFiles() host.Documents {
	user := host.Documents{}
	for i := range s.Places {
		p := &s.Places[i]
		files, err := s.files(p)
		for _, file := range files {
			if doc, exists, readErr := file.read(); err == nil && readErr == nil && exists {
				user.Add(p, doc)
			}
		}
	}
	return user
}

// inspect adds the hooks in one settings file, and the file's problems.
func (s *hookSettings) inspect(ctx context.Context, p *host.Place, file settingsFile, user host.Documents, all *survey) error {
	doc, exists, err := file.read()
	if err != nil || !exists {
		return err
	}
	before, err := newHookShell(ctx, s.host)
	if err != nil {
		return err
	}
	after, err := newResultShell(ctx, s.host)
	if err != nil {
		return err
	}
	asking, permits := s, before
	if a, err := s.permissionSettings(ctx); err == nil {
		asking = a
		if permits, err = newHookShell(ctx, a.host); err != nil {
			return err
		}
	}
	about := func(list *[]string, what string, args ...any) {
		*list = append(*list, file.path+": "+fmt.Sprintf(what, args...))
	}
	seen := p.Inspect(ctx, file.path, doc, user)
	if len(seen.Ignored) > 0 {
		// The host still runs the hooks of its other files.
		if bytes.Contains(doc, []byte("hook "+s.host.Name)) {
			about(&all.problems, "%s", seen.Ignored[0])
		}
		return nil
	}
	for _, stop := range seen.Stops {
		about(&all.problems, "%s", stop)
	}
	add := func(s *hookSettings, hooks []host.Hook, shell hookShell, to *found) {
		for _, h := range hooks {
			for _, problem := range h.Problems {
				about(&to.problems, "%s", problem)
			}
			var line installedLine
			if h.Command != "" { // the file is not what shield installs
				var err error
				if line, err = s.examine(h, shell); err != nil {
					about(&to.problems, "%v", err)
				}
			}
			to.hooks = append(to.hooks, installedHook{h, line, file.path})
		}
	}
	add(s, seen.Hooks, before, &all.found)
	add(s, seen.Results, after, &all.results)
	add(asking, seen.Permits, permits, &all.permits)
	if st, err := os.Stat(file.path); len(seen.Hooks)+len(seen.Results)+len(seen.Permits) > 0 && err == nil {
		if err := owner.Check(st, 0o002); err != nil {
			about(&all.problems, "%v; anyone who can write to the file can remove the hook", err)
		}
	}
	return nil
}

// examine returns what is wrong with an installed command line, and how to fix
// it.
func (s *hookSettings) examine(h host.Hook, shell hookShell) (installedLine, error) {
	line, err := readHookLine(h.Command, shell, s.host)
	if err != nil {
		return line, fmt.Errorf("%w; %s again", err, s.how)
	}
	deadline := line.deadline
	if deadline == 0 {
		deadline = s.deadline
	}
	if least := max(deadline+killGrace, line.ends); h.Timeout != 0 && h.Timeout <= least.Seconds() {
		return line, fmt.Errorf("the host waits %v s, and shield needs %v; %s again", h.Timeout, least, s.how)
	}
	if err := checkProgram(line.program); err != nil {
		return line, fmt.Errorf("%w; %s again with the right program", err, s.how)
	}
	return line, s.examineCheck(line)
}

// examineCheck returns what is wrong with the check of the program that a line runs.
func (s *hookSettings) examineCheck(line installedLine) error {
	r := recordIn(line.state, line.program)
	want := ""
	if line.check != "" || userCanReplace(line.program) {
		var err error
		if want, err = r.check(); err != nil {
			return err
		}
	}
	if line.check != want {
		return fmt.Errorf("the hook command does not notice that %s was replaced; %s again", line.program, s.how)
	}
	if want == "" {
		return nil
	}
	return r.changed()
}

// checkProgram returns an error for a program that cannot be run, or that other users can replace.
func checkProgram(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("the program of the hook is missing: %w; install shield again", err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || !launch.Executable(info.Mode()):
		return fmt.Errorf("%s is not executable; install shield again", path)
	}
	if err := owner.Check(info, owner.Write); err != nil {
		return fmt.Errorf("%s: %w", real, err)
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(real)} {
		for ; ; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				return err
			}
			denied := os.FileMode(0o002)
			if info.Mode()&os.ModeSticky != 0 {
				denied = 0
			}
			if err := owner.Check(info, denied); err != nil {
				return fmt.Errorf("folder %s: %w", dir, err)
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return nil
}

// tryDenial runs a command line as the host would, and returns an error unless it denies as the result
// of judging.
func (s *hookSettings) tryDenial(ctx context.Context, h installedHook) error {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	cmd := s.shell(ctx, h.Command)
	cmd.Stdin = bytes.NewReader(s.Sample)
	out, errs := subprocess.Output{Max: maxDenial + 1}, subprocess.Output{Max: maxDenial}
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second // for child processes that keep its streams open
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the hook cannot be started: %w; install shield again", err)
	}
	err := cmd.Wait()
	subprocess.KillGroup(cmd)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the hook did not deny a test command: shield gave no answer within %s; run 'shield doctor'", statusTime)
	case err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != s.host.DenialStatus():
		return fmt.Errorf("the hook did not deny a test command: it ended with %v (%q); run 'shield doctor'", cmd.ProcessState, shortenText(errs.String()))
	case len(out.Bytes()) > maxDenial:
		return fmt.Errorf("the hook did not deny a test command: it printed more than %d KiB; run 'shield doctor'", maxDenial>>10)
	}
	reason := strings.TrimSpace(errs.String())
	if !s.host.Silent() {
		reason, err = s.Denied(ctx, out.Bytes())
	} else if err = nil; len(out.Bytes()) > 0 || reason == "" {
		err = errors.New("it must print the reason on standard error, and nothing on standard output")
	}
	switch {
	case strings.Contains(reason, noVerdict):
		return fmt.Errorf("the hook gives no verdict on a test command (%q); run 'shield doctor'", shortenText(errs.String()))
	case err != nil:
		return fmt.Errorf("the hook did not deny a test command: %w (it printed %q, %q); run 'shield doctor'", err, shortenText(out.String()), shortenText(errs.String()))
	case !strings.Contains(errs.String(), reason):
		return fmt.Errorf("the hook did not deny a test command: the reason is missing on standard error (%q); run 'shield doctor'", shortenText(errs.String()))
	}
	if err := s.tryJudge(ctx, h.command); err != nil {
		return fmt.Errorf("the hook denies everything: %w", err)
	}
	return nil
}

// tryJudge calls the judge of a command line directly, and returns why it cannot judge. The denial
// alone does not show that: a failed hook denies as well.
func (s *hookSettings) tryJudge(ctx context.Context, command string) error {
	// With the exit, the shell does not exec the judge, which may end its parent.
	cmd := s.shell(ctx, command+" --"+watch.Flag+"; exit")
	judge, err := judgeOf(cmd)
	if err != nil {
		return err
	}
	said, err := judge.Ask(s.Sample, os.Getpid())
	_ = judge.In.Close()
	_ = cmd.Cancel()
	_ = cmd.Wait()
	if err != nil {
		return err
	}
	answer, err := readAnswer(said)
	if err == nil && answer.Failed {
		err = errors.New(answer.Reason)
	}
	return err
}

// shell returns the command that runs a command line as the host would, in its own process group,
// which ends with ctx.
func (s *hookSettings) shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = s.world.Dir, s.world.Environ()
	subprocess.OwnGroup(cmd)
	return cmd
}
