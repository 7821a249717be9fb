package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// A SettingsFileInspection describes how a host reads one of its settings files.
type SettingsFileInspection struct {
	HostIgnoresFileReasons []string `json:"ignored"` // why the host does not read the file, each with the fix
	HookDisablingSettings  []string `json:"stops"`   // settings in the file that disable the hooks of every file
	BeforeToolHooks        []Hook   `json:"hooks"`   // shield's hooks that run before a tool
	ResultHooks            []Hook   `json:"results"` // shield's hooks that get the result of a tool
	PermissionHooks        []Hook   `json:"permits"` // shield's hooks that run before the host shows its permission prompt
}

// A Hook is one hook of shield in a settings file.
type Hook struct {
	Command          string   `json:"command"`
	TimeoutSeconds   float64  `json:"timeout"`  // how long the host waits, in seconds; 0: without limit
	Problems         []string `json:"problems"` // why the host does not run the hook for every tool call, each with the fix
	PendingUserSteps []string `json:"todo"`     // what the user must still do before the host runs the hook
}

// UserSettingsByFileName maps file names in the host's description to the user's parsed settings
// files. [HostSettingsFile.Inspect] can need them in addition to the inspected file.
type UserSettingsByFileName map[string]any

// Add adds a settings file of the user, if it can be parsed.
func (d UserSettingsByFileName) Add(p *HostSettingsFile, doc []byte) {
	if v, err := p.parseJSONOrTOML(doc); err == nil && p.Scope == "user" {
		d[p.File] = v
	}
}

// Inspect returns how the host reads a settings file, which is at a path.
func (p *HostSettingsFile) Inspect(ctx context.Context, path string, doc []byte, user UserSettingsByFileName) SettingsFileInspection {
	if p.ShieldOwnedFileTemplate != "" {
		return p.inspectTemplateFile(doc, p.fileTemplate)
	}
	in, err := p.inspectDocument(ctx, path, doc, user)
	if err != nil && p.host.description.AllowsJSON5SettingsFiles {
		return SettingsFileInspection{HookDisablingSettings: []string{err.Error()}}
	}
	if err != nil {
		return SettingsFileInspection{HostIgnoresFileReasons: []string{err.Error()}}
	}
	return in
}

func (p *HostSettingsFile) inspectDocument(ctx context.Context, path string, doc []byte, user UserSettingsByFileName) (in SettingsFileInspection, err error) {
	v, err := p.parseJSONOrTOML(doc)
	if err != nil {
		return in, err
	}
	out, err := p.host.runJQForOneResult(ctx, p.host.description.InspectSettingsFileJQ, map[string]any{"scope": p.Scope, "file": p.File, "path": path, "doc": v, "user": map[string]any(user)})
	if err != nil {
		return in, fmt.Errorf("cannot be read (%w), so the host may ignore it; correct the file", err)
	}
	raw, err := encodeCompactJSON(out)
	if err != nil {
		return in, err
	}
	if err := json.Unmarshal(raw, &in); err != nil || p.AppendedLines == "" {
		return in, err
	}
	_, blocks, err := p.cutShieldBlocks(doc)
	for _, b := range blocks {
		own := p.inspectTemplateFile([]byte(b.text), b.template)
		in.BeforeToolHooks, in.ResultHooks = append(in.BeforeToolHooks, own.BeforeToolHooks...), append(in.ResultHooks, own.ResultHooks...)
	}
	return in, err
}

// inspectTemplateFile returns how the host reads a file whose whole text shield installed from a template.
func (p *HostSettingsFile) inspectTemplateFile(doc []byte, form installedTextTemplate) SettingsFileInspection {
	f, err := form.parseFile(doc)
	switch {
	case p.IsFileWithoutHookCommand():
	case err == nil:
		var in SettingsFileInspection
		timeout := f.timeout / float64(p.host.timeoutUnitsPerSecond())
		if f.beforeToolHookCommand != "" {
			in.BeforeToolHooks = []Hook{{Command: f.beforeToolHookCommand, TimeoutSeconds: timeout}}
		}
		if f.afterToolHookCommand != "" {
			in.ResultHooks = []Hook{{Command: f.afterToolHookCommand, TimeoutSeconds: timeout}}
		}
		return in
	case p.host.mentionsShieldHookCommand(doc) && p.HasOnlyResultHook():
		return SettingsFileInspection{ResultHooks: []Hook{{Problems: []string{err.Error() + "; run 'shield hook install' again"}}}}
	case p.host.mentionsShieldHookCommand(doc):
		return SettingsFileInspection{HostIgnoresFileReasons: []string{err.Error() + ", so the host may not call shield; run 'shield hook install' again"}}
	}
	return SettingsFileInspection{}
}

// parseJSONOrTOML parses a settings file as strictly as the host does.
func (p *HostSettingsFile) parseJSONOrTOML(doc []byte) (any, error) {
	if strings.HasSuffix(p.File, ".toml") {
		var v map[string]any
		if err := toml.Unmarshal(doc, &v); err != nil {
			return nil, errors.New("is not valid TOML, so the host ignores it; correct the file")
		}
		raw, err := json.Marshal(v) // convert TOML dates and integers to types that jq accepts
		if err != nil {
			return nil, err
		}
		return decodeStrictJSON(raw)
	}
	v, err := decodeStrictJSON(bytes.TrimPrefix(doc, byteOrderMark))
	if err == nil {
		return v, nil
	}
	text, commas := toStrictJSON(doc)
	loose, looseErr := decodeStrictJSON(text)
	switch {
	case p.host.description.AllowsJSON5SettingsFiles && looseErr != nil:
		return nil, errors.New("is not JSON with comments, so shield cannot check whether it disables hooks; write it as JSON")
	case p.host.description.AllowsJSON5SettingsFiles:
		return loose, nil
	case looseErr != nil:
		return nil, errors.New("is not valid JSON, so the host ignores it; correct the file")
	case p.host.description.AllowsJSONComments && !commas:
		return loose, nil
	case p.host.description.AllowsJSONComments:
		return nil, errors.New("has a comma before a closing bracket, so the host ignores it; remove the comma")
	}
	return nil, errors.New("contains comments or trailing commas, so the host ignores it; remove them")
}
