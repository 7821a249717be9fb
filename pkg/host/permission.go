package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/host/internal/form"
)

// ErrNoPermissionPromptHook is the error for a host that has no hook event before its permission prompt.
var ErrNoPermissionPromptHook = errors.New("this host has no hook before its permission prompt")

// ForPermissionPromptEvents returns a copy of the host whose only tool event is the hook event before the
// permission prompt. Its responses have the format for that event.
func (h *Host) ForPermissionPromptEvents() (*Host, error) {
	p := h.description.Permission
	if p.Event == "" {
		return nil, fmt.Errorf("%s: %w", h.Name, ErrNoPermissionPromptHook)
	}
	f := *h.description
	f.BeforeToolEvents, f.AfterToolEvents, f.DenyResponseJQ, f.AllowResponseJQ = []string{p.Event}, nil, p.DenyResponseJQ, p.AllowResponseJQ
	return &Host{Name: h.Name, description: &f, hasOnlyPermissionPromptEvent: true}, nil
}

// PermissionRuleSources returns where the user's permission rules of a host are: command-line options that
// add rules, the environment variable with the project folder, and the settings files.
func (h *Host) PermissionRuleSources() (ruleAddingOptions []string, projectDirVariable string, settingsFiles []HostSettingsFile) {
	for _, f := range h.description.Permission.PermissionRuleFiles {
		settingsFiles = append(settingsFiles, HostSettingsFile{SettingsFile: f, host: h})
	}
	return h.description.Permission.RuleAddingOptions, h.description.Permission.ProjectDirVariable, settingsFiles
}

// HasPermissionHook reports whether the hook for [Host.ForPermissionPromptEvents] is installed in a file.
func (p *HostSettingsFile) HasPermissionHook() bool {
	return slices.ContainsFunc(p.ListEntries, func(e form.SettingsListEntry) bool { return e.IsForPermissionEvent })
}

// HasAskRuleForCall reports whether a settings file has a rule by which the host must ask the user
// about a tool call, or deny the call. hookInput is the hook's input. An error means that the
// answer is unknown.
func (p *HostSettingsFile) HasAskRuleForCall(ctx context.Context, hookInput, settingsDoc []byte) (bool, error) {
	v, err := decodeEvent(hookInput)
	if err != nil {
		return false, err
	}
	read, err := p.host.runJQForOneResult(ctx, p.host.description.ReadEventJQ, v)
	if err != nil {
		return false, err
	}
	call, ok := read.(map[string]any)
	if !ok {
		return false, errors.New("the input is not an event of this host; check the HOST in the hook's command")
	}
	var rules any = string(settingsDoc)
	if strings.HasSuffix(p.File, ".json") || strings.HasSuffix(p.File, ".toml") {
		if rules, err = p.parseJSONOrTOML(settingsDoc); err != nil {
			return false, err
		}
	}
	out, err := p.host.runJQForOneResult(ctx, p.host.description.Permission.HasAskOrDenyRuleJQ, map[string]any{"tool": call["tool"], "input": call["input"], "doc": rules})
	if err != nil {
		return false, err
	}
	asked, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("the permission rules in the settings of %s cannot be read; correct the settings file", p.host.Title())
	}
	return asked, nil
}
