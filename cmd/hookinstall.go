package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
)

// maxSettingsEditLockWait is how long an edit of settings waits for a concurrent one.
const maxSettingsEditLockWait = 10 * time.Second

// withLock runs an edit under a lock: of two concurrent installations, the second must see the changes
// of the first.
func (s *hostHookInstaller) withLock(ctx context.Context, edit func() error) error {
	dir := config.StateDir(s.environment.Home, s.environment.Getenv)
	if dir == "" {
		return errors.New("the state folder is unknown; set HOME")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := flock.New(filepath.Join(dir, "hook.lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Lock(ctx, maxSettingsEditLockWait); err != nil {
		return err
	}
	return edit()
}

// install edits the settings. Repeating it changes nothing.
func (s *hostHookInstaller) install(c *cli.Context) error {
	edits, err := s.requestedEdits(c)
	if err != nil {
		return err
	}
	if edits, err = s.dropForeignFileEdits(c.Context, edits); err != nil {
		return err
	}
	if c.Bool(permissionRequestEventFlagName) && !slices.ContainsFunc(edits, func(e settingsEdit) bool { return e.fileDefinition.HasPermissionHook() }) {
		return fmt.Errorf("--%s cannot be set in --scope %s; use another scope", permissionRequestEventFlagName, c.String("scope"))
	}
	if c.Bool("dry-run") {
		for _, e := range edits {
			before, _, err := e.file.read()
			if err != nil {
				return err
			}
			after, err := e.fileDefinition.Install(c.Context, before)
			if err != nil {
				return fmt.Errorf("%s: %w", e.file.path, err)
			}
			s.showChange(e.file, before, after)
		}
		fmt.Fprintln(s.environment.Err, "shield: nothing was changed")
		return nil
	}
	if r, err := newHookProgramRecord(s.environment, s.environment.ShieldExecutablePath); err == nil && r.hasRecordFile() && r.verifyUnchanged() != nil {
		// Installing would accept a program that differs from the recorded one.
		if err := requirePerson(s.environment, "hook install of a changed program", personProofNoAgentAncestor); err != nil {
			return err
		}
	}
	err = s.withLock(c.Context, func() error {
		if err := s.checkEditable(c.Context, edits); err != nil {
			return err
		}
		return s.writeHooks(c.Context, edits)
	})
	if err != nil {
		return err
	}
	if seen := s.findHooks(c.Context); len(seen.problems) > 0 {
		return denialNotEnforcedError(seen.problems)
	}
	if c.Bool(permissionRequestEventFlagName) && !s.answersPermissionRequests {
		fmt.Fprintln(s.environment.Err, `shield: hook.permission_request is off, so the host asks as before; set it to "on" in shield's settings to have shield answer for what it allows`)
	}
	fmt.Fprintf(s.environment.Err, "shield: %s: installed. %s\n", s.host.Title(), s.questionRoute)
	if unverified := s.untestedHostNotice(); unverified != "" {
		fmt.Fprintf(s.environment.Err, "shield: %s: %s\n", s.host.Title(), unverified)
	}
	fmt.Fprintf(s.environment.Err, "shield: %s, then run: shield hook status %s\n", s.NextUserStep, s.host.Name)
	return s.questionRoute.checkReachable()
}

// checkEditable returns why one of the files cannot be edited; then none is edited.
func (s *hostHookInstaller) checkEditable(ctx context.Context, edits []settingsEdit) error {
	for _, e := range edits {
		before, _, err := e.file.read()
		if err != nil {
			return err
		}
		after, err := e.fileDefinition.Install(ctx, before)
		if err != nil {
			return fmt.Errorf("%s: %w", e.file.path, err)
		}
		if !bytes.Equal(before, after) {
			if err := e.file.checkWritable(); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeHooks installs the hook in all files.
func (s *hostHookInstaller) writeHooks(ctx context.Context, edits []settingsEdit) error {
	if err := recordHookProgram(s.environment); err != nil {
		return err
	}
	for _, e := range edits {
		if err := s.writeHook(ctx, e.fileDefinition, e.file); err != nil {
			return err
		}
	}
	return nil
}

// dropForeignFileEdits drops each edit of a file that belongs to another program, if shield needs
// that file only to handle tool results. Denials work without that file.
func (s *hostHookInstaller) dropForeignFileEdits(ctx context.Context, edits []settingsEdit) (remaining []settingsEdit, err error) {
	for _, e := range edits {
		if e.fileDefinition.HasOnlyResultHook() {
			doc, _, err := e.file.read()
			if err != nil {
				return nil, err
			}
			if _, err := e.fileDefinition.Install(ctx, doc); errors.Is(err, host.ErrFileOfOtherProgram) {
				fmt.Fprintf(s.environment.Err, "shield: tool results are not scanned, because %s belongs to another program; rename that file, then %s again\n", e.file.path, s.installCommand)
				continue
			}
		}
		remaining = append(remaining, e)
	}
	return remaining, nil
}

// writeHook installs the hook in one settings file.
func (s *hostHookInstaller) writeHook(ctx context.Context, place *host.HostSettingsFile, file hostSettingsFileOnDisk) error {
	before, existed, err := file.read()
	if err != nil {
		return err
	}
	after, err := place.Install(ctx, before)
	if err != nil {
		return fmt.Errorf("%s: %w", file.path, err)
	}
	s.showChange(file, before, after)
	if bytes.Equal(before, after) {
		return nil
	}
	if !place.ContainsShieldHook(ctx, before) { // back up only a file that does not contain shield's hook yet
		if err := file.saveBackup(before, existed); err != nil {
			return err
		}
	}
	return file.replaceContent(after, place.IsExecutable)
}

// uninstall removes the hook from the settings.
func (s *hostHookInstaller) uninstall(c *cli.Context) error {
	if err := requirePerson(s.environment, "hook uninstall", personProofNoAgentAncestor); err != nil {
		return err
	}
	edits, err := s.requestedEdits(c)
	if err != nil {
		return err
	}
	return s.withLock(c.Context, func() error {
		for _, e := range edits {
			_, err := s.removeHook(c.Context, e.fileDefinition, e.file, false)
			if err != nil && !(errors.Is(err, host.ErrNotInstalled) && e.fileDefinition.HasOnlyResultHook()) { // an older version did not install this file, or it belongs to another program
				return err
			}
		}
		return nil
	})
}

// removeHook removes the hook from one file, and reports whether the file is as before the installation.
// With trial it changes nothing.
func (s *hostHookInstaller) removeHook(ctx context.Context, place *host.HostSettingsFile, file hostSettingsFileOnDisk, trial bool) (restored bool, err error) {
	doc, exists, err := file.read()
	if err != nil {
		return false, err
	}
	if !exists {
		return false, fmt.Errorf("%s is missing: %w", file.path, host.ErrNotInstalled)
	}
	before, existed, err := file.readBackup()
	if err != nil {
		return false, err
	}
	after, err := place.Uninstall(ctx, doc, before)
	if err != nil {
		return false, fmt.Errorf("%s: %w", file.path, err)
	}
	s.showChange(file, doc, after)
	restored = bytes.Equal(after, before)
	switch {
	case trial:
		return restored, nil
	case len(after) == 0 && !existed:
		err = os.Remove(file.path)
	default:
		err = file.replaceContent(after, false)
	}
	if err != nil {
		return false, err
	}
	return restored, file.removeBackup()
}

// showChange prints the changed lines.
func (s *hostHookInstaller) showChange(file hostSettingsFileOnDisk, before, after []byte) {
	if bytes.Equal(before, after) {
		fmt.Fprintf(s.environment.Err, "shield: %s: already installed\n", file.path)
		return
	}
	fmt.Fprint(s.environment.Err, unifiedDiff(file.path, before, file.path, after))
}

// unifiedDiff returns the difference between two texts, without control characters and credentials.
func unifiedDiff(oldName string, before []byte, newName string, after []byte) string {
	_, text, _ := strings.Cut(string(diff.Diff(oldName, before, newName, after)), "\n") // the first line contains both names
	var b strings.Builder
	for line := range strings.Lines((*redact.Redactor)(nil).RedactText(text)) {
		b.WriteString(escapeLineForTerminal(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// escapeLineForTerminal returns a line of a settings file without control characters, since a repository may have
// written it.
func escapeLineForTerminal(line string) string {
	return term.EscapeControlAndInvisible(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
}
