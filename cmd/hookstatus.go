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

// denialTestTimeout bounds how long one installed command line may take; its test action is decided by rules.
const denialTestTimeout = 20 * time.Second

// maxDenialBytes bounds the output of a denying hook, in bytes.
const maxDenialBytes = 64 << 10

// An installedHook is a hook of shield in a settings file that the host reads.
type installedHook struct {
	host.Hook
	installedHookCommand
	settingsPath string
}

// verifyAndPrintHookStatus reads the settings as the host does, and runs the installed command line as the host would,
// with an event that must be denied. Any doubt is an error: the user relies on the answer "enforced".
func (s *hostHookInstaller) verifyAndPrintHookStatus(c *cli.Context) error {
	seen := s.findHooks(c.Context)
	if c.Bool(acceptChangedProgramFlag) {
		if err := s.recordInstalledHookPrograms(c.Context, seen); err != nil {
			return err
		}
		seen = s.findHooks(c.Context)
	}
	hooks, problems := seen.hooks, seen.problems
	if len(hooks) == 0 && len(problems) == 0 {
		return fmt.Errorf("%w%s; run 'shield hook install %s'", host.ErrNotInstalled, s.describeMissingHookFiles(), s.host.Name)
	}
	if len(problems) == 0 {
		for _, h := range hooks {
			for _, todo := range h.PendingUserSteps {
				problems = append(problems, h.settingsPath+": "+todo)
			}
			if err := s.testDenial(c.Context, h); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %q %v", h.settingsPath, shortenTo80Characters(h.Command), err))
			}
		}
	}
	if len(problems) > 0 {
		return denialNotEnforcedError(problems)
	}
	if err := s.warnAboutResultAndPermissionHooks(c.Context, seen); err != nil {
		return err
	}
	for _, limit := range s.host.HookLimitationTexts() {
		fmt.Fprintf(s.environment.Err, "shield: gap in the protection of %s: %s\n", s.host.Title(), limit)
	}
	var files []string
	for _, h := range hooks {
		if !slices.Contains(files, h.settingsPath) { // a file can hold several hooks, one for each event
			files = append(files, h.settingsPath)
		}
	}
	files = slices.Compact(files)
	state := "active in " + strings.Join(files, ", ") + " (test denial worked)."
	if unverified := s.untestedHostNotice(); unverified != "" {
		state = "installed in " + strings.Join(files, ", ") + ". " + unverified
	}
	_, err := fmt.Fprintf(s.environment.Out, "%s: %s %s\n", s.host.Title(), state, s.questionRoute)
	return errors.Join(err, s.questionRoute.checkReachable())
}

// untestedHostNotice says what was not tested for a host whose program was never run with shield; "" for other
// hosts.
func (s *hostHookInstaller) untestedHostNotice() string {
	if s.host.VerifiedVersion() != "" {
		return ""
	}
	return fmt.Sprintf("Unverified: the installed command denies a test action, but shield was never tested with %s. Let the agent try a command that a rule denies, and check that the command does not run. Source of the settings format: %s.", s.host.Title(), s.host.EventFormatCitationText())
}

// recordInstalledHookPrograms records the current programs of installed hooks.
func (s *hostHookInstaller) recordInstalledHookPrograms(ctx context.Context, seen foundHooks) error {
	if err := requirePerson(s.environment, "hook status --"+acceptChangedProgramFlag, personProofAtTerminal); err != nil {
		return err
	}
	return s.withLock(ctx, func() error {
		for _, h := range slices.Concat(seen.hooks, seen.toolResultHooks.hooks, seen.permissionHooks.hooks) {
			if h.programCheckShellCode == "" || checkProgramRunnableAndProtected(h.shieldPath) != nil {
				continue
			}
			if err := hookProgramRecordInStateDir(h.stateFolder, h.shieldPath).recordCurrent(); err != nil {
				return err
			}
		}
		return nil
	})
}

// denialNotEnforcedError returns an error with the reasons why a host does not enforce a denial.
func denialNotEnforcedError(problems []string) error {
	for i, p := range problems {
		problems[i] = term.EscapeControlAndInvisible(p) // a repository may have written the settings
	}
	return fmt.Errorf("the host does not enforce denials by shield:\n  %s", strings.Join(problems, "\n  "))
}

// describeMissingHookFiles lists the files from which the host would read a hook and that do not exist.
func (s *hostHookInstaller) describeMissingHookFiles() string {
	var names []string
	for i := range s.SettingsFiles {
		p := &s.SettingsFiles[i]
		if !p.CanHaveShieldHookInstalled() || !p.HasToolHook() || p.Scope == "managed" {
			continue
		}
		files, err := s.settingsFilesAt(p)
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

// A foundHooks is the shield hooks found in a host's settings.
type foundHooks struct {
	eventHooks                 // hooks called before a tool runs
	toolResultHooks eventHooks // hooks called with the result of a tool
	permissionHooks eventHooks // hooks called before the host asks its user
}

// An eventHooks lists the shield hooks for an event, and why they are not run, or not waited for.
type eventHooks struct {
	hooks    []installedHook
	problems []string
}

// findHooks finds shield's hooks in all settings that the host reads, and the problems that keep the host from
// running them.
func (s *hostHookInstaller) findHooks(ctx context.Context) (all foundHooks) {
	for _, name := range s.HookDisablingEnvVariables {
		if s.environment.Getenv(name) != "" {
			all.problems = append(all.problems, name+" is set in the environment and disables hooks; unset it")
		}
	}
	seen, user := map[string]bool{}, s.readUserSettingsFiles()
	for i := range s.SettingsFiles {
		p := &s.SettingsFiles[i]
		files, err := s.settingsFilesAt(p)
		if err != nil {
			all.problems = append(all.problems, err.Error())
		}
		for _, file := range files {
			if seen[file.path] {
				continue
			}
			seen[file.path] = true
			if err := s.collectHooksInSettingsFile(ctx, p, file, user, &all); err != nil {
				all.problems = append(all.problems, err.Error())
			}
		}
	}
	if len(all.hooks) > 0 {
		all.problems = append(all.problems, s.problemsOfAdditionalHookFiles()...)
	}
	return all
}

// warnAboutResultAndPermissionHooks warns if shield does not scan all tool results, although the host supports
// that, and if shield does not answer all permission prompts of the host, although the hook for them is
// installed or hook.permission_request is on. Denials are enforced in both cases.
func (s *hostHookInstaller) warnAboutResultAndPermissionHooks(ctx context.Context, seen foundHooks) error {
	say := func(what string, f eventHooks, more ...string) {
		for _, h := range f.hooks {
			for _, todo := range h.PendingUserSteps {
				more = append(more, h.settingsPath+": "+todo)
			}
		}
		for _, why := range append(f.problems, more...) {
			fmt.Fprintf(s.environment.Err, "shield: %s: %s\n", what, term.EscapeControlAndInvisible(why)) // a repository may have written the settings
		}
	}
	var missing []string
	examines := slices.ContainsFunc(s.SettingsFiles, func(p host.HostSettingsFile) bool { return p.HasResultHook() })
	if examines && len(seen.toolResultHooks.hooks) == 0 {
		missing = []string{"no hook of shield is installed for tool results; " + s.installCommand + " again"}
	}
	say("not all tool results are scanned", seen.toolResultHooks, missing...)

	asking, err := s.newPermissionHookInstaller(ctx)
	if errors.Is(err, host.ErrNoPermissionPromptHook) {
		return nil
	}
	if err != nil {
		return err
	}
	var wrong []string
	if s.answersPermissionRequests && len(seen.permissionHooks.hooks) == 0 {
		wrong = []string{"hook.permission_request is on, but the hook for permission prompts is not installed; " + asking.installCommand}
	}
	if len(seen.permissionHooks.problems) == 0 {
		for _, h := range seen.permissionHooks.hooks {
			if err := asking.testDenial(ctx, h); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %q %v", h.settingsPath, shortenTo80Characters(h.Command), err))
			}
		}
	}
	say("shield does not answer all permission prompts of the host", seen.permissionHooks, wrong...)
	return nil
}

// newPermissionHookInstaller returns the installer for the hook that the host calls before it asks
// its user for permission.
func (s *hostHookInstaller) newPermissionHookInstaller(ctx context.Context) (*hostHookInstaller, error) {
	h, err := s.host.ForPermissionPromptEvents()
	if err != nil {
		return nil, err
	}
	all, err := h.HookSettings(ctx, host.HookCommands{}, 0, s.environment.WorkingDir, s.environment.OS)
	if err != nil {
		return nil, err
	}
	asking := *s
	asking.HookSettings, asking.host, asking.installCommand = all, h, fmt.Sprintf("run 'shield hook install --%s %s'", permissionRequestEventFlagName, h.Name)
	return &asking, nil
}

// problemsOfAdditionalHookFiles returns the problems of further files that the host needs beside the one with
// the hook.
func (s *hostHookInstaller) problemsOfAdditionalHookFiles() (problems []string) {
	for i := range s.SettingsFiles {
		p := &s.SettingsFiles[i]
		if !p.IsFileWithoutHookCommand() {
			continue
		}
		files, err := s.settingsFilesAt(p)
		for _, file := range files {
			if doc, _, readErr := file.read(); err != nil || readErr != nil || !p.MatchesTemplate(doc) {
				problems = append(problems, fmt.Sprintf("%s is missing or was changed; %s again", file.path, s.installCommand))
			}
		}
	}
	return problems
}

// readUserSettingsFiles returns the readable settings files of the user.
func (s *hostHookInstaller) readUserSettingsFiles() host.UserSettingsByFileName {
	user := host.UserSettingsByFileName{}
	for i := range s.SettingsFiles {
		p := &s.SettingsFiles[i]
		files, err := s.settingsFilesAt(p)
		for _, file := range files {
			if doc, exists, readErr := file.read(); err == nil && readErr == nil && exists {
				user.Add(p, doc)
			}
		}
	}
	return user
}

// collectHooksInSettingsFile adds the hooks in one settings file, and the file's problems.
func (s *hostHookInstaller) collectHooksInSettingsFile(ctx context.Context, p *host.HostSettingsFile, file hostSettingsFileOnDisk, user host.UserSettingsByFileName, collected *foundHooks) error {
	doc, exists, err := file.read()
	if err != nil || !exists {
		return err
	}
	before, err := newFailClosedWrapper(ctx, s.host)
	if err != nil {
		return err
	}
	after, err := newToolResultWrapperShellScript(ctx, s.host)
	if err != nil {
		return err
	}
	asking, permits := s, before
	if a, err := s.newPermissionHookInstaller(ctx); err == nil {
		asking = a
		if permits, err = newFailClosedWrapper(ctx, a.host); err != nil {
			return err
		}
	}
	about := func(list *[]string, what string, args ...any) {
		*list = append(*list, file.path+": "+fmt.Sprintf(what, args...))
	}
	seen := p.Inspect(ctx, file.path, doc, user)
	if len(seen.HostIgnoresFileReasons) > 0 {
		// The host ignores this settings file, but still runs the hooks in its other settings
		// files.
		if bytes.Contains(doc, []byte("hook "+s.host.Name)) {
			about(&collected.problems, "%s", seen.HostIgnoresFileReasons[0])
		}
		return nil
	}
	for _, stop := range seen.HookDisablingSettings {
		about(&collected.problems, "%s", stop)
	}
	add := func(s *hostHookInstaller, hooks []host.Hook, shell wrapperShellScript, to *eventHooks) {
		for _, h := range hooks {
			for _, problem := range h.Problems {
				about(&to.problems, "%s", problem)
			}
			var line installedHookCommand
			if h.Command != "" { // Command is "" if the file is not the one that shield installs
				var err error
				if line, err = s.parseAndCheckHookCommand(h, shell); err != nil {
					about(&to.problems, "%v", err)
				}
			}
			to.hooks = append(to.hooks, installedHook{h, line, file.path})
		}
	}
	add(s, seen.BeforeToolHooks, before, &collected.eventHooks)
	add(s, seen.ResultHooks, after, &collected.toolResultHooks)
	add(asking, seen.PermissionHooks, permits, &collected.permissionHooks)
	if st, err := os.Stat(file.path); len(seen.BeforeToolHooks)+len(seen.ResultHooks)+len(seen.PermissionHooks) > 0 && err == nil {
		if err := owner.CheckOwnerAndDeniedModeBits(st, 0o002); err != nil {
			about(&collected.problems, "other users can write to the file and remove the hook; correct the owner or mode of the file: %v", err)
		}
	}
	return nil
}

// parseAndCheckHookCommand parses an installed hook command line. The error says what is wrong with the command
// line, and how to fix it.
func (s *hostHookInstaller) parseAndCheckHookCommand(h host.Hook, shell wrapperShellScript) (installedHookCommand, error) {
	line, err := parseHookLine(h.Command, shell, s.host)
	if err != nil {
		return line, fmt.Errorf("%w; %s again", err, s.installCommand)
	}
	deadline := line.timeoutFlagValue
	if deadline == 0 {
		deadline = s.defaultHookTimeout
	}
	if least := max(deadline+wrapperDenialDelay, line.wrapperShellScriptTimeout); h.TimeoutSeconds != 0 && h.TimeoutSeconds <= least.Seconds() {
		return line, fmt.Errorf("the host waits %v s, and shield needs %v; %s again", h.TimeoutSeconds, least, s.installCommand)
	}
	if err := checkProgramRunnableAndProtected(line.shieldPath); err != nil {
		return line, fmt.Errorf("%w; %s again with the right program", err, s.installCommand)
	}
	return line, s.checkHookNoticesReplacedProgram(line)
}

// checkHookNoticesReplacedProgram returns what is wrong with the shell code by which an installed hook command checks that
// shield's program file was not replaced. A replaced file is an error too.
func (s *hostHookInstaller) checkHookNoticesReplacedProgram(line installedHookCommand) error {
	r := hookProgramRecordInStateDir(line.stateFolder, line.shieldPath)
	want := ""
	if line.programCheckShellCode != "" || canCurrentUserReplaceProgram(line.shieldPath) {
		var err error
		if want, err = r.programCheckShellCode(); err != nil {
			return err
		}
	}
	if line.programCheckShellCode != want {
		return fmt.Errorf("the hook command does not notice that %s was replaced; %s again", line.shieldPath, s.installCommand)
	}
	if want == "" {
		return nil
	}
	return r.verifyUnchanged()
}

// checkProgramRunnableAndProtected returns an error for a program that cannot be run, or that other users can replace.
func checkProgramRunnableAndProtected(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("the program of the hook is missing: %w; install shield again", err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || !launch.IsExecutable(info.Mode()):
		return fmt.Errorf("%s is not executable; install shield again", path)
	}
	if err := owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherWriteBits); err != nil {
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
			if err := owner.CheckOwnerAndDeniedModeBits(info, denied); err != nil {
				return fmt.Errorf("folder %s: %w", dir, err)
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return nil
}

// testDenial runs a command line as the host would, and returns an error unless it denies as the result
// of judging.
func (s *hostHookInstaller) testDenial(ctx context.Context, h installedHook) error {
	ctx, cancel := context.WithTimeout(ctx, denialTestTimeout)
	defer cancel()
	cmd := s.shellCommand(ctx, h.Command)
	cmd.Stdin = bytes.NewReader(s.SampleDeniedEvent)
	out, errs := subprocess.LimitedOutput{MaxBytes: maxDenialBytes + 1}, subprocess.LimitedOutput{MaxBytes: maxDenialBytes}
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
		return fmt.Errorf("the hook did not deny a test command: shield gave no answer within %s; run 'shield doctor'", denialTestTimeout)
	case err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != s.host.DenialExitStatus():
		return fmt.Errorf("the hook did not deny a test command: it ended with %v (%q); run 'shield doctor'", cmd.ProcessState, shortenTo80Characters(errs.String()))
	case len(out.Bytes()) > maxDenialBytes:
		return fmt.Errorf("the hook did not deny a test command: it printed more than %d KiB; run 'shield doctor'", maxDenialBytes>>10)
	}
	reason := strings.TrimSpace(errs.String())
	if !s.host.RequiresEmptyHookStdout() {
		reason, err = s.DenialReason(ctx, out.Bytes())
	} else if err = nil; len(out.Bytes()) > 0 || reason == "" {
		err = errors.New("the hook must print the reason on standard error, and nothing on standard output")
	}
	switch {
	case strings.Contains(reason, noVerdictText):
		return fmt.Errorf("the hook gives no verdict on a test command (%q); run 'shield doctor'", shortenTo80Characters(errs.String()))
	case err != nil:
		return fmt.Errorf("the hook did not deny a test command: %w (it printed %q, %q); run 'shield doctor'", err, shortenTo80Characters(out.String()), shortenTo80Characters(errs.String()))
	case !strings.Contains(errs.String(), reason):
		return fmt.Errorf("the hook did not deny a test command: the reason is missing on standard error (%q); run 'shield doctor'", shortenTo80Characters(errs.String()))
	}
	if err := s.checkHookCommandCanJudge(ctx, h.command); err != nil {
		return fmt.Errorf("the hook denies everything: %w", err)
	}
	return nil
}

// checkHookCommandCanJudge starts the judge process of a hook's command line directly, and returns why it cannot
// judge. A successful test denial does not show that it can, since a hook that fails denies too.
func (s *hostHookInstaller) checkHookCommandCanJudge(ctx context.Context, command string) error {
	// The appended exit keeps the shell from replacing itself by the judge with exec. The judge may
	// kill its parent process, which is then only the shell.
	cmd := s.shellCommand(ctx, command+" --"+watch.JudgeFlagName+"; exit")
	judge, err := startJudgeCommand(cmd)
	if err != nil {
		return err
	}
	said, err := judge.Ask(s.SampleDeniedEvent, os.Getpid())
	_ = judge.Stdin.Close()
	_ = cmd.Cancel()
	_ = cmd.Wait()
	if err != nil {
		return err
	}
	answer, err := parseJudgeProcessAnswer(said)
	if err == nil && answer.JudgingFailed {
		err = errors.New(answer.ReasonForAgent)
	}
	return err
}

// shellCommand returns the command that runs a command line as the host would, in its own process group,
// which ends with ctx.
func (s *hostHookInstaller) shellCommand(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = s.environment.WorkingDir, s.environment.Environ()
	subprocess.SetOwnProcessGroup(cmd)
	return cmd
}
