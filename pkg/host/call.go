package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// A TranscriptToolCall is a tool call in a host's transcript.
type TranscriptToolCall struct {
	Tool      string
	Input     jsontext.Value // arguments of the tool, an object
	ID        string
	CWD       string // folder of the session
	SessionID string
}

// Actions returns the actions that a tool call proposes, as [Host.Event] does for an event before a tool runs.
// isHostInternalTool is true for a tool that changes nothing outside the host, or whose own calls are judged one
// by one.
func (h *Host) Actions(ctx context.Context, c TranscriptToolCall) (actions []jsontext.Value, isHostInternalTool bool, err error) {
	switch {
	case c.Tool == "":
		return nil, false, errors.New("the hook's input names no tool; check the host's version with 'shield hook list'")
	case slices.Contains(h.description.InternalTools, c.Tool):
		return nil, true, nil
	}
	if len(c.Input) == 0 || c.Input.Kind() == 'n' {
		c.Input = jsontext.Value("{}")
	}
	v, err := decodeEvent(c.Input)
	if err != nil {
		return nil, false, err
	}
	input, isObject := v.(map[string]any)
	if !isObject {
		return nil, false, errors.New("the tool's input is not a JSON object; update shield")
	}
	if err := rejectKeysDifferingInCase(input); err != nil {
		return nil, false, err
	}
	read := map[string]any{}
	for name, text := range map[string]string{"id": c.ID, "cwd": c.CWD, "session": c.SessionID} {
		if text != "" {
			read[name] = text
		}
	}
	actions, err = h.encodedActions(ctx, c.Tool, input, read)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", h.Name, err)
	}
	return actions, false, nil
}

// encodedActions returns the actions of a tool call as JSON. eventFields are the fields of the hook
// event, of which cwd, session and id are added to each action that lacks them.
func (h *Host) encodedActions(ctx context.Context, tool string, input, eventFields map[string]any) (out []jsontext.Value, err error) {
	actions, err := h.mapToolCallToActions(ctx, tool, input, eventFields["cwd"])
	if err != nil {
		return nil, err
	}
	for _, a := range actions {
		for member, from := range map[string]string{"cwd": "cwd", "session": "session", "id": "id"} {
			if v := eventFields[from]; v != nil && a[member] == nil {
				a[member] = v
			}
		}
		if a["cwd"], err = toolWorkingDir(eventFields["cwd"], a["cwd"]); err != nil {
			return nil, err
		}
		if a["cwd"] == nil {
			delete(a, "cwd")
		}
		raw, err := encodeCompactJSON(a)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

// ConfigFolder returns the host's configuration folder below the home folder, and the environment
// variable that overrides the folder; a relative path can follow the variable's name. Both are ""
// if the host has no user settings.
func (h *Host) ConfigFolder() (folder, overrideVariable string) {
	for _, p := range h.description.SettingsFiles {
		if p.Scope == "user" {
			return p.Folder, p.FolderVariable
		}
	}
	return "", ""
}
