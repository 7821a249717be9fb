package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
)

// hostTimeoutMinusShieldTimeout is how much longer the host waits than shield's own deadline, so that shield always
// answers first.
const hostTimeoutMinusShieldTimeout = 10 * time.Second

// hookSettingsCommands are the commands that edit and test hosts' settings.
func hookSettingsCommands(w *Environment) []*cli.Command {
	all := &cli.BoolFlag{Name: "all", Usage: "every host that is found on this machine"}
	command := func(name, usage string, run func(*hostHookInstaller, *cli.Context) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "HOST…", Flags: append(flags, all),
			Action: func(c *cli.Context) error {
				chosen, err := hookInstallersOfSelectedHosts(c, w)
				if err != nil {
					return fmt.Errorf("hook %s: %w", name, err)
				}
				var failed []error
				for _, s := range chosen {
					if err := run(s, c); err != nil {
						failed = append(failed, fmt.Errorf("hook %s: %s: %w", name, s.host.Name, err))
					}
				}
				return errors.Join(failed...)
			},
		}
	}
	scope := &cli.StringFlag{Name: "scope", Value: "user", Usage: "edit the settings of the `user|project|managed`"}
	return []*cli.Command{
		command("install", "make hosts call shield", (*hostHookInstaller).install, scope,
			&cli.DurationFlag{Name: "timeout", Usage: "answer within `TIME`, waiting for a person included"},
			&cli.BoolFlag{Name: permissionRequestEventFlagName, Usage: "also answer the host's permission prompts for calls that the policy and the classifier allow (with hook.permission_request: \"on\")"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the changes without making them"}),
		command("uninstall", "undo install", (*hostHookInstaller).uninstall, scope),
		command("status", "verify that hosts enforce a denial", (*hostHookInstaller).verifyAndPrintHookStatus,
			&cli.BoolFlag{Name: acceptChangedProgramFlag, Usage: "after an update of shield: accept the current program for the installed hooks of HOST, or of every host; only a person at a terminal can"}),
		{
			Name: "list", Usage: "list the hosts, which of them are on this machine, and where shield is installed",
			Action: func(c *cli.Context) error { return listHosts(c, w) },
		},
	}
}

// acceptChangedProgramFlag makes 'hook status' record the current program of a hook.
const acceptChangedProgramFlag = "accept"

// hookInstallersOfSelectedHosts returns the hook installers of the hosts that a command line names, or of the
// hosts that are installed on this machine: with --all, or with --accept and no HOST.
func hookInstallersOfSelectedHosts(c *cli.Context, w *Environment) ([]*hostHookInstaller, error) {
	names := c.Args().Slice()
	switch {
	case c.Bool("all") && len(names) > 0:
		return nil, errors.New("--all and a HOST exclude each other; use one")
	case c.Bool("all"), c.Bool(acceptChangedProgramFlag) && len(names) == 0:
		for _, name := range host.Names() {
			h, err := host.Named(name)
			if err != nil {
				return nil, err
			}
			if w.hostInstalled(h) {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			return nil, errors.New("no agent host was found on this machine; name one of " + strings.Join(host.Names(), ", "))
		}
	case len(names) == 0:
		return nil, errors.New("HOST is missing; use --all or one of " + strings.Join(host.Names(), ", "))
	}
	var chosen []*hostHookInstaller
	for _, name := range names {
		s, err := newHostHookInstaller(c, w, name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

// hostInstalled reports whether a host is installed on this machine.
func (w *Environment) hostInstalled(h *host.Host) bool {
	programs, folders := h.InstallationIndicators()
	for _, dir := range filepath.SplitList(w.Getenv("PATH")) {
		for _, name := range programs {
			if st, err := os.Stat(filepath.Join(dir, name)); err == nil && filepath.IsAbs(dir) && st.Mode().IsRegular() {
				return true
			}
		}
	}
	return w.Home != "" && slices.ContainsFunc(folders, func(name string) bool {
		st, err := os.Stat(filepath.Join(w.Home, name))
		return err == nil && st.IsDir()
	})
}

// hasHook reports whether one of the host's settings files contains a hook of shield.
func hasHook(ctx context.Context, w *Environment, h *host.Host) bool {
	all, err := h.HookSettings(ctx, host.HookCommands{}, 0, w.WorkingDir, w.OS)
	if err != nil {
		return false
	}
	s := &hostHookInstaller{HookSettings: all, host: h, environment: w}
	return len(s.findHooks(ctx).hooks) > 0
}

// listHosts prints a line for each host.
func listHosts(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	t := newTableWriter(w.Out, "HOST", "NAME", "TESTED", "STATE")
	for _, name := range host.Names() {
		s, err := newHostHookInstaller(c, w, name)
		if err != nil {
			return fmt.Errorf("hook list: %w", err)
		}
		tested, there := "unverified", "not found"
		if v := s.host.VerifiedVersion(); v != "" {
			tested = "tested with " + v
		}
		if w.hostInstalled(s.host) {
			there = "found"
		}
		if seen := s.findHooks(c.Context); len(seen.hooks) > 0 {
			there = "installed in " + seen.hooks[0].settingsPath
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, s.host.Title(), tested, escapeLineForTerminal(there))
	}
	return t.Flush()
}

// A hostHookInstaller installs shield's hook in the settings files of an agent host.
type hostHookInstaller struct {
	*host.HookSettings
	host                      *host.Host
	environment               *Environment
	defaultHookTimeout        time.Duration         // deadline for new hooks, and for installed hooks whose command line names none
	answersPermissionRequests bool                  // the settings let shield answer in the user's place
	installCommand            string                // advice to the user that names the command to install the hook: run 'shield hook install …'
	questionRoute             approvalQuestionRoute // how shield's questions about the host's calls reach the user
}

func newHostHookInstaller(c *cli.Context, w *Environment, name string) (*hostHookInstaller, error) {
	h, err := host.Named(name)
	if err != nil {
		return nil, err
	}
	deadline, err := hookTimeout(c, w)
	if err != nil {
		return nil, err
	}
	if deadline < time.Second || deadline > config.MaxHookTimeout {
		return nil, fmt.Errorf("--timeout %s is not allowed; use 1s to %s", deadline, config.MaxHookTimeout)
	}
	lines, err := hookCommandLines(c.Context, w, h, deadline)
	if err != nil {
		return nil, err
	}
	if c.Bool(permissionRequestEventFlagName) {
		asking, err := h.ForPermissionPromptEvents()
		if err != nil {
			return nil, err
		}
		if lines.Permission, err = permissionHookCommandLine(c.Context, w, asking, deadline); err != nil {
			return nil, err
		}
	}
	s, err := h.HookSettings(c.Context, lines, int((deadline + hostTimeoutMinusShieldTimeout).Seconds()), w.WorkingDir, w.OS)
	if err != nil {
		return nil, err
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, err
	}
	return &hostHookInstaller{HookSettings: s, host: h, environment: w, defaultHookTimeout: deadline, answersPermissionRequests: set.Hook.AnswerPermissionPromptsOnOff == "on",
		installCommand: fmt.Sprintf("run 'shield hook install %s'", name), questionRoute: questionRouteOf(w, set, h)}, nil
}

// settingsFolder returns the folder that contains a host's settings file; "" if the folder is
// unknown.
func (s *hostHookInstaller) settingsFolder(p *host.HostSettingsFile) string {
	variable, below, _ := strings.Cut(p.FolderVariable, "/")
	if variable != "" {
		if dir := s.environment.Getenv(variable); dir != "" {
			return filepath.Join(absolutePaths([]string{dir}, s.environment.WorkingDir)[0], below)
		}
	}
	base := s.environment.WorkingDir
	switch {
	case p.Scope == "managed":
		return p.Folder
	case p.Scope == "user":
		base = s.environment.Home
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, p.Folder)
}

// settingsFilesAt returns the files on disk for one settings file of a host. If its file name is a
// glob, these are the existing files that match; otherwise it is the one named file, even if it
// does not exist.
func (s *hostHookInstaller) settingsFilesAt(p *host.HostSettingsFile) ([]hostSettingsFileOnDisk, error) {
	folder := s.settingsFolder(p)
	if folder == "" {
		return nil, nil
	}
	names := []string{filepath.Join(folder, p.File)}
	if strings.Contains(p.File, "*") {
		var err error
		if names, err = filepath.Glob(names[0]); err != nil {
			return nil, err
		}
	}
	var files []hostSettingsFileOnDisk
	for _, name := range names {
		file, err := newSettingsFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// A settingsEdit is a settings file of an agent host that shield will change. file reads and writes the file;
// fileDefinition describes what shield writes into it.
type settingsEdit struct {
	fileDefinition *host.HostSettingsFile
	file           hostSettingsFileOnDisk
}

// requestedEdits returns the settings files that a command line asks to edit.
func (s *hostHookInstaller) requestedEdits(c *cli.Context) ([]settingsEdit, error) {
	return s.settingsEditsInScope(c.String("scope"))
}

// settingsEditsInScope returns the settings files of a scope that are edited.
func (s *hostHookInstaller) settingsEditsInScope(scope string) (edits []settingsEdit, err error) {
	var scopes []string
	for i := range s.SettingsFiles {
		p := &s.SettingsFiles[i]
		if !p.CanHaveShieldHookInstalled() {
			continue
		}
		if p.Scope != scope {
			scopes = append(scopes, p.Scope)
			continue
		}
		files, err := s.settingsFilesAt(p)
		if err == nil && len(files) == 0 {
			err = errors.New("the folder of the settings is unknown; set HOME")
		}
		if err != nil {
			return nil, err
		}
		edits = append(edits, settingsEdit{p, files[0]})
	}
	if len(edits) == 0 {
		return nil, fmt.Errorf("--scope %q is not one of %s", shortenTo80Characters(scope), strings.Join(scopes, ", "))
	}
	return edits, nil
}
