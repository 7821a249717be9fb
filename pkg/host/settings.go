package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/host/internal/form"
)

// HookSettings describe the configuration that makes a host call shield.
type HookSettings struct {
	SettingsFiles             []HostSettingsFile
	HookDisablingEnvVariables []string // environment variables that disable the host's hooks
	NextUserStep              string   // what the user must do before the host runs the hook
	SampleDeniedEvent         []byte   // an event that must be denied
	host                      *Host
}

// A HostSettingsFile is one settings file of a host, or a pattern of files that are only read.
type HostSettingsFile struct {
	form.SettingsFile
	host                       *Host
	listElements               []settingsListElement
	fileTemplate               installedTextTemplate // template of the content, from ShieldOwnedFileTemplate or AppendedLines
	obsoleteInstalledTemplates []installedTextTemplate
	filledTemplateText         string // the text including the command line
}

// A settingsListElement is an element of the list at a key path.
type settingsListElement struct {
	path             []string
	value            any
	isOnlyForRemoval bool // not to be installed, only removed
}

// HookCommands are the command lines that a host runs as hooks.
type HookCommands struct {
	BeforeTool string // command line to run before a tool runs
	AfterTool  string // after a tool has returned a result
	Permission string // command line to run before the host's permission prompt, see [Host.ForPermissionPromptEvents]; "" for none
	UserPrompt string // command line to run when the host reports a prompt of the user; "" for none
}

// HookSettings returns how to configure the host to run command lines as its hooks. timeout is in
// seconds; goos is the operating system, as in GOOS.
func (h *Host) HookSettings(ctx context.Context, hookCommands HookCommands, timeout int, cwd, goos string) (*HookSettings, error) {
	sample, err := h.runJQForOneResult(ctx, h.description.SampleDeniedEventJQ, map[string]any{"cwd": cwd, "event": h.description.BeforeToolEvents[0]})
	if err != nil {
		return nil, fmt.Errorf("%s settings: %w", h.Name, err)
	}
	s := &HookSettings{HookDisablingEnvVariables: h.description.HookDisablingEnvVariables, NextUserStep: h.description.NextUserStep, host: h}
	if s.SampleDeniedEvent, err = encodeCompactJSON(sample); err != nil {
		return nil, err
	}
	timeout *= h.timeoutUnitsPerSecond()
	for _, f := range h.description.SettingsFiles {
		if f.OnlyOnGOOS != "" && f.OnlyOnGOOS != goos {
			continue
		}
		p := HostSettingsFile{SettingsFile: f, host: h, fileTemplate: newTemplate(f.ShieldOwnedFileTemplate + f.AppendedLines)}
		for _, text := range f.ObsoleteLines {
			p.obsoleteInstalledTemplates = append(p.obsoleteInstalledTemplates, newTemplate(text))
		}
		for _, e := range f.ListEntries {
			line := hookCommands.BeforeTool
			if e.IsForPermissionEvent {
				line = hookCommands.Permission
			}
			if e.IsForPromptEvent {
				line = hookCommands.UserPrompt
			}
			value, err := h.runJQForOneResult(ctx, e.Value, map[string]any{"command": line, "after": hookCommands.AfterTool, "timeout": timeout})
			if err != nil {
				return nil, fmt.Errorf("%s settings: %w", h.Name, err)
			}
			p.listElements = append(p.listElements, settingsListElement{e.ListKeyPath, value, line == "" || e.IsObsolete})
		}
		if p.filledTemplateText, err = p.fileTemplate.fillPlaceholders(hookCommands.BeforeTool, hookCommands.AfterTool, timeout); err != nil {
			return nil, fmt.Errorf("%s settings: %w", h.Name, err)
		}
		s.SettingsFiles = append(s.SettingsFiles, p)
	}
	return s, nil
}

// timeoutUnitsPerSecond returns how many of the host's timeout units make one second.
func (h *Host) timeoutUnitsPerSecond() int {
	if h.description.TimeoutUnit == "ms" {
		return 1000
	}
	return 1
}

// Install returns a settings file's text with the hook added once. It replaces an earlier
// installation.
func (p *HostSettingsFile) Install(ctx context.Context, doc []byte) ([]byte, error) {
	switch {
	case p.ShieldOwnedFileTemplate != "" && len(bytes.TrimSpace(doc)) > 0 && !p.MatchesTemplate(doc) && !p.host.mentionsShieldHookCommand(doc):
		return nil, ErrFileOfOtherProgram
	case p.ShieldOwnedFileTemplate != "":
		return []byte(p.filledTemplateText), nil
	case p.AppendedLines != "":
		rest, _, err := p.cutShieldBlocks(doc)
		if err != nil {
			return nil, err
		}
		return p.appendBlock(rest, p.filledTemplateText), nil
	case len(bytes.TrimSpace(doc)) == 0 && p.InitialJSON != "":
		doc = []byte(p.InitialJSON)
	default:
		rest, gone, err := p.removeShieldListElements(ctx, doc)
		switch {
		case err != nil:
			return nil, err
		case sameElements(gone, p.elementsToInstall()):
			return doc, nil
		}
		doc = rest
	}
	if err := ctx.Err(); err != nil { // the context ended, so shield's entries were not found
		return nil, err
	}
	return appendElements(doc, p.elementsToInstall())
}

// elementsToInstall returns the list elements that Install adds to the settings file: all of p.listElements
// except those that are only removed.
func (p *HostSettingsFile) elementsToInstall() []settingsListElement {
	return slices.DeleteFunc(slices.Clone(p.listElements), func(e settingsListElement) bool { return e.isOnlyForRemoval })
}

// sameElements reports whether two lists have the same elements in the same order.
func sameElements(a, b []settingsListElement) bool {
	return slices.EqualFunc(a, b, func(x, y settingsListElement) bool {
		one, err := encodeCompactJSON(x.value)
		other, otherErr := encodeCompactJSON(y.value)
		return err == nil && otherErr == nil && slices.Equal(x.path, y.path) && bytes.Equal(one, other)
	})
}

// appendBlock returns a text with a block added at its end.
func (p *HostSettingsFile) appendBlock(doc []byte, block string) []byte {
	if len(doc) > 0 && !bytes.HasSuffix(doc, []byte("\n")) {
		doc = append(bytes.Clone(doc), '\n')
	}
	return append(bytes.Clone(doc), block...)
}

// A shieldTextBlock is shield's lines in a file, with the template that parses them.
type shieldTextBlock struct {
	text     string
	template installedTextTemplate
}

// cutShieldBlocks returns a file without shield's blocks, and the blocks: at most one of this version, and one of
// each older version.
func (p *HostSettingsFile) cutShieldBlocks(doc []byte) (rest []byte, blocks []shieldTextBlock, err error) {
	rest = doc
	for _, form := range append([]installedTextTemplate{p.fileTemplate}, p.obsoleteInstalledTemplates...) {
		var text string
		if rest, text, err = form.cutText(rest); err != nil {
			return nil, nil, err
		}
		if text != "" {
			blocks = append(blocks, shieldTextBlock{text, form})
		}
	}
	return rest, blocks, nil
}

func appendElements(doc []byte, entries []settingsListElement) (out []byte, err error) {
	out = doc
	for _, e := range entries {
		if out, err = appendAt(out, e.path, e.value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// removeShieldListElements returns a JSON file without shield's entries, and the entries.
func (p *HostSettingsFile) removeShieldListElements(ctx context.Context, doc []byte) (rest []byte, gone []settingsListElement, err error) {
	if rest = doc; len(bytes.TrimSpace(doc)) == 0 {
		return rest, nil, nil
	}
	for _, e := range p.listElements {
		var raw [][]byte
		if rest, raw, err = removeAt(rest, e.path, p.host.ownHookMatcher(ctx)); err != nil {
			return nil, nil, err
		}
		for _, r := range raw {
			value, err := decodeStrictJSON(r)
			if err != nil {
				return nil, nil, err
			}
			gone = append(gone, settingsListElement{path: e.path, value: value})
		}
	}
	return rest, gone, nil
}

// Uninstall returns a settings file's text without shield's hook. If doc is exactly what Install
// made of the original text before, it returns this original text.
func (p *HostSettingsFile) Uninstall(ctx context.Context, doc, originalDoc []byte) ([]byte, error) {
	switch {
	case p.ShieldOwnedFileTemplate != "" && !p.MatchesTemplate(doc) && !p.host.mentionsShieldHookCommand(doc):
		return nil, ErrNotInstalled
	case p.ShieldOwnedFileTemplate != "":
		if _, err := p.fileTemplate.parseFile(doc); err != nil {
			return nil, errors.New("the file was changed after shield installed it; remove the hook by hand")
		}
		return originalDoc, nil
	case p.AppendedLines != "":
		rest, blocks, err := p.cutShieldBlocks(doc)
		switch {
		case err != nil:
			return nil, err
		case len(blocks) == 0:
			return nil, ErrNotInstalled
		case len(blocks) == 1 && bytes.Equal(p.appendBlock(originalDoc, blocks[0].text), doc):
			return originalDoc, nil
		}
		return rest, nil
	}
	rest, gone, err := p.removeShieldListElements(ctx, doc)
	if err != nil {
		return nil, err
	}
	if len(gone) == 0 {
		return nil, ErrNotInstalled
	}
	start := originalDoc
	if len(bytes.TrimSpace(originalDoc)) == 0 && p.InitialJSON != "" {
		start = []byte(p.InitialJSON)
	}
	if made, err := appendElements(start, gone[:min(len(gone), len(p.listElements))]); err == nil && bytes.Equal(made, doc) {
		return originalDoc, nil
	}
	for _, e := range gone {
		rest = removeEmptyAddedContainers(rest, e.path, originalDoc)
	}
	return rest, nil
}

// ContainsShieldHook reports whether a settings file contains shield's hook.
func (p *HostSettingsFile) ContainsShieldHook(ctx context.Context, doc []byte) bool {
	if len(p.listElements) == 0 {
		return p.MatchesTemplate(doc) || p.host.mentionsShieldHookCommand(doc)
	}
	_, gone, err := p.removeShieldListElements(ctx, doc)
	return err == nil && len(gone) > 0
}

// MatchesTemplate reports whether a text is a whole file that Install creates.
func (p *HostSettingsFile) MatchesTemplate(doc []byte) bool {
	_, err := p.fileTemplate.parseFile(doc)
	return p.ShieldOwnedFileTemplate != "" && err == nil
}

// DenialReason returns the reason in a hook's output, which must be the host's exact denial format. Other
// output, or output without a reason, is an error: some hosts treat it as permission.
func (s *HookSettings) DenialReason(ctx context.Context, out []byte) (reason string, err error) {
	got, err := decodeStrictJSON(out)
	if err != nil {
		return "", err
	}
	const marked, shown = "the reason", "the user's text"
	for _, user := range []string{"", shown} {
		want, err := s.host.runJQForOneResult(ctx, s.host.description.DenyResponseJQ, map[string]any{"reason": marked, "user": user})
		if err != nil {
			return "", err
		}
		if reason = textReplacingPlaceholder(want, got, marked, shown); reason != "" {
			return reason, nil
		}
	}
	return "", errors.New("the hook's output is not a denial with a reason")
}

// textReplacingPlaceholder returns the text in actual at the position where expected contains
// placeholder. Where expected contains ignoredPlaceholder, actual can contain any text; elsewhere
// both must be equal. Otherwise the result is "".
func textReplacingPlaceholder(expected, actual any, placeholder, ignoredPlaceholder string) string {
	reason := ""
	var fill func(want, got any) bool
	fill = func(want, got any) bool {
		switch want := want.(type) {
		case string:
			text, ok := got.(string)
			if ok && want == ignoredPlaceholder {
				return true
			}
			if ok && want == placeholder && (reason == "" || reason == text) {
				reason = text
				return true
			}
		case map[string]any:
			other, ok := got.(map[string]any)
			for key, v := range want {
				ok = ok && fill(v, other[key])
			}
			return ok && len(other) == len(want)
		}
		return reflect.DeepEqual(want, got)
	}
	if !fill(expected, actual) {
		return ""
	}
	return reason
}

// ErrFileOfOtherProgram is the error for a file that belongs to another program.
var ErrFileOfOtherProgram = errors.New("the file belongs to another program, and the host reads only one such file; rename it, then install again")

// ErrNotInstalled is the error for a settings file without shield's hook.
var ErrNotInstalled = errors.New("no hook of shield is installed")

// ownHookMatcher returns a function that reports whether a list element is a hook of shield.
func (h *Host) ownHookMatcher(ctx context.Context) func([]byte) bool {
	return func(raw []byte) bool {
		element, err := decodeStrictJSON(raw)
		if err != nil {
			return false
		}
		out, err := h.runJQForOneResult(ctx, `[.. | objects | shields(`+strconv.Quote(h.Name)+`)] | length > 0`, element)
		return err == nil && out == true
	}
}

// mentionsShieldHookCommand reports whether a text contains a command line that runs shield as this host's hook.
func (h *Host) mentionsShieldHookCommand(doc []byte) bool {
	return slices.ContainsFunc(strings.Split(string(doc), "\n"), func(line string) bool {
		_, rest, found := strings.Cut(line, "hook "+h.Name)
		return found && (rest == "" || !isAgentHostNameByte(rest[0])) && (strings.Contains(line, "shield") || strings.Contains(line, "SHIELD_CONFIG="))
	})
}

func isAgentHostNameByte(c byte) bool { return c == '-' || c >= 'a' && c <= 'z' }
