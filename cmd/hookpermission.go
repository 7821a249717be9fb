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

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// permissionRequestEventFlagName marks a hook for the event that a host sends before it asks its user for permission.
const permissionRequestEventFlagName = "permission-request"

// hostForHookCommand returns the host for which a hook command line is installed.
func hostForHookCommand(name string, isPermissionHook bool) (*host.Host, error) {
	h, err := host.Named(name)
	if err == nil && isPermissionHook {
		return h.ForPermissionPromptEvents()
	}
	return h, err
}

// judgePermissionRequest answers the question that a host is about to ask its user, if mayAnswerForUser is set,
// policy and classifier allow all actions, not merely because a failure is ignored, and no rule of the user
// requires the question. If policy or classifier block an action, it returns the refusal. In all other cases it
// returns no answer, and the host asks its user.
func judgePermissionRequest(ctx context.Context, w *Environment, h *host.Host, p *shield.Pipeline, mayAnswerForUser bool, event host.Event, in []byte) (hookAnswer, error) {
	for _, raw := range event.Actions {
		a, err := action.Parse(raw)
		if err != nil {
			return hookAnswer{}, fmt.Errorf("hook: %w", err)
		}
		v := p.EvaluateThroughTier(ctx, a, shield.TierClassify).Verdict
		if v.Decision == verdict.Block {
			return refusalAnswer(&v), nil
		}
		mayAnswerForUser = mayAnswerForUser && v.Decision == verdict.Allow && !v.IsAllowedDespiteFailure
	}
	speaks := mayAnswerForUser && checkNoHostAskRule(ctx, w, h, possibleProjectFolders(w, h, event), in) == nil && ctx.Err() == nil
	answer, err := h.ResponseToAllowedEvent(ctx, event, !speaks, "")
	return hookAnswer{Allow: true, HostResponseJSON: answer}, err
}

// possibleProjectFolders returns the folders from which to search for the root of an event's project: the root
// is one of these folders or one of their parent folders.
func possibleProjectFolders(w *Environment, h *host.Host, event host.Event) []string {
	dirs := []string{w.WorkingDir}
	if _, project, _ := h.PermissionRuleSources(); project != "" {
		dirs = append(dirs, w.Getenv(project))
	}
	for _, raw := range event.Actions {
		if a, err := action.Parse(raw); err == nil { // otherwise there is nothing to judge
			dirs = append(dirs, a.CWD)
		}
	}
	return dirs
}

// Bounds of the search for a user's own permission rules.
const (
	maxAncestorFolders         = 64     // ancestors of a folder
	maxScannedFolderEntries    = 10_000 // folder entries that are searched
	maxHostPermissionRuleFiles = 256
)

// checkNoHostAskRule returns why a host must ask its user about a call: one of the user's rules mentions it,
// or the rules cannot be read; else nil. It looks for rules in each of dirs and their ancestors, since
// the root of the host's project is unknown.
func checkNoHostAskRule(ctx context.Context, w *Environment, h *host.Host, dirs []string, in []byte) error {
	options, _, places := h.PermissionRuleSources()
	if err := checkNotStartedWithOptions(w.verdictRequesterPID, options); err != nil {
		return err
	}
	return forEachHostSettingsFile(w, places, dirs, func(p *host.HostSettingsFile, name string, doc []byte) error {
		asked, err := p.HasAskRuleForCall(ctx, in, doc)
		if err != nil || asked {
			return errors.Join(err, fmt.Errorf("%s has a permission rule for this call; remove the rule to let shield answer", name))
		}
		return nil
	})
}

// checkHostWillAskUser returns nil if the host is certain to ask its user when a hook answers
// "ask". Otherwise it returns why not: the host did not wait for its user in tests, a settings file
// may have forged the host's version, or another hook could answer for the user. hostVersion is the
// host's version, "" if it does not matter.
func checkHostWillAskUser(ctx context.Context, w *Environment, h *host.Host, dirs []string, in []byte) (hostVersion string, err error) {
	if err := h.CheckHostAwaitsUserAnswer(); err != nil {
		return "", err
	}
	running, err := w.callingHostProcess(h)
	if err != nil {
		return "", err
	}
	if hostVersion, err = h.CheckSessionAwaitsUserAnswer(ctx, in, w.Getenv, running); err != nil {
		return "", err
	}
	variables, places := h.VersionAndPermissionModeSources()
	return hostVersion, forEachHostSettingsFile(w, places, dirs, func(p *host.HostSettingsFile, name string, doc []byte) error {
		for _, v := range variables {
			if bytes.Contains(doc, []byte(v)) {
				return fmt.Errorf("%s sets %s, so the version of the host is unknown; remove that line", name, v)
			}
		}
		answers, err := p.HasHookAnsweringForUser(ctx, doc)
		if err != nil || answers {
			return errors.Join(err, fmt.Errorf("%s has another hook, which can answer for the user; remove that hook", name))
		}
		return nil
	})
}

// forEachHostSettingsFile calls f for each existing settings file of the given places. The files of a
// project are looked up in each of dirs and in all their parent folders. It returns the first
// error, which can be a read error.
func forEachHostSettingsFile(w *Environment, places []host.HostSettingsFile, dirs []string, f func(p *host.HostSettingsFile, name string, doc []byte) error) error {
	read := 0
	for i := range places {
		p := &places[i]
		if p.OnlyOnGOOS != "" && p.OnlyOnGOOS != w.OS {
			continue
		}
		for _, dir := range hostSettingsFolders(w, p, dirs) {
			files, err := matchFiles(filepath.Join(dir, p.File), p.SearchesSubfolders)
			if err != nil {
				return err
			}
			for _, name := range files {
				doc, exists, err := readSettingsFile(name)
				if err != nil || !exists {
					return errors.Join(err, fmt.Errorf("%s cannot be read; correct its permissions", name))
				}
				if read++; read > maxHostPermissionRuleFiles {
					return fmt.Errorf("shield reads at most %d settings files of a host, and this host has more; remove some of them", maxHostPermissionRuleFiles)
				}
				if err := f(p, name, doc); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hostSettingsFolders returns the folders that can contain the settings files that p describes: a fixed
// folder, a folder of the user, or, for settings of a project, folders in dirs and in their parent
// folders.
func hostSettingsFolders(w *Environment, p *host.HostSettingsFile, dirs []string) (folders []string) {
	switch p.Scope {
	case "managed":
		return []string{p.Folder}
	case "user":
		if dir := w.Getenv(p.FolderVariable); p.FolderVariable != "" && dir != "" {
			folders = append(folders, absolutePaths([]string{dir}, w.WorkingDir)...)
		}
		return append(folders, filepath.Join(w.Home, p.Folder))
	}
	for _, dir := range dirs {
		for i := 0; i < maxAncestorFolders && filepath.IsAbs(dir); i++ {
			if folder := filepath.Join(dir, p.Folder); !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
			if dir == filepath.Dir(dir) {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
	return folders
}

// matchFiles returns the files that match a pattern in the last path element; folder names are
// literal, since an agent can choose them and they may look like patterns. If includeSubfolders is
// set, files in subfolders count as well.
func matchFiles(pattern string, includeSubfolders bool) (files []string, err error) {
	dir, name := filepath.Split(pattern)
	if includeSubfolders {
		return matchFilesBelow(dir, name)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if _, statErr := os.Lstat(dir); errors.Is(statErr, os.ErrNotExist) || errors.Is(statErr, os.ErrInvalid) {
			return nil, nil
		}
		return nil, err
	}
	for _, e := range entries {
		if ok, err := filepath.Match(name, e.Name()); err != nil || ok {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// checkNotStartedWithOptions returns an error if a process or one of its ancestors was started with one of
// the given options, or if its command line cannot be read.
func checkNotStartedWithOptions(pid int, forbiddenOptions []string) error {
	if len(forbiddenOptions) == 0 {
		return nil
	}
	all, err := ancestry.ProcessAndAncestors(pid)
	for _, p := range all {
		for _, word := range p.Args {
			name, _, _ := strings.Cut(word, "=")
			if slices.Contains(forbiddenOptions, name) {
				return fmt.Errorf("the host was started with %s, which can contain permission rules; start it without that option", name)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("the command line of the host is unknown: %w", err)
	}
	return nil
}

// matchFilesBelow returns the files in a folder and its subfolders whose name matches a pattern.
func matchFilesBelow(dir, name string) (files []string, err error) {
	seen := 0
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if seen++; seen > maxScannedFolderEntries {
			return fmt.Errorf("%s has more than %d files, so shield cannot find all permission rules in it; move files that are not settings out of this folder", dir, maxScannedFolderEntries)
		}
		if err != nil {
			return err
		}
		if ok, err := filepath.Match(name, e.Name()); (err != nil || ok) && !e.IsDir() {
			files = append(files, path)
		}
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return files, err
}
