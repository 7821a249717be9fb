// Package host implements the hook formats of agent programs: it converts a program's events to
// actions, and a verdict to the program's own response. Each host is described by a file in folder
// hosts.
//
// Hooks answer allow or deny. Some hosts run a call that a hook answers with "ask", or deny it, so
// shield answers "ask" only in versions and modes in which the host waits for its user.
package host

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/itchyny/gojq"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/host/internal/form"
)

//go:generate go run ./gen

// MaxHookInputBytes is the maximum size of a hook's input, in bytes.
const MaxHookInputBytes = 4 << 20

// maxJQRunTime bounds one run of a jq program of a host.
const maxJQRunTime = 2 * time.Second

// maxActionsPerEvent is how many actions one event may propose.
const maxActionsPerEvent = 256

//go:embed hosts/shared.jq
var sharedJQFiltersSource string

// Names returns the names of all supported hosts.
func Names() []string { return slices.Clone(hosts) }

// A Host is one agent program.
type Host struct {
	Name                         string
	description                  *form.Host
	hasOnlyPermissionPromptEvent bool // the host has only the event before its permission prompt, see [Host.ForPermissionPromptEvents]
}

// Named returns a host by its name.
func Named(name string) (*Host, error) {
	f := formOf(name)
	if f == nil {
		return nil, fmt.Errorf("unknown host %q; use %s", name, strings.Join(hosts, ", "))
	}
	return &Host{Name: name, description: f}, nil
}

// Title returns the host's name as people know it. VerifiedVersion returns the version that was tested with the
// real program. If VerifiedVersion is "", EventFormatCitationText returns where the formats of the host's events
// are documented.
func (h *Host) Title() string                   { return h.description.Title }
func (h *Host) VerifiedVersion() string         { return h.description.VerifiedVersion }
func (h *Host) EventFormatCitationText() string { return h.description.EventFormatCitationText }

// HookLimitationTexts are sentences about what no hook of this host can prevent.
func (h *Host) HookLimitationTexts() []string { return h.description.HookLimitationTexts }

// RequiresEmptyHookStdout reports whether a hook must print nothing on standard output. RunsHooksInUserShell,
// below it, reports whether the host runs the command lines of hooks in the user's own shell.
func (h *Host) RequiresEmptyHookStdout() bool { return h.description.RequiresEmptyHookStdout }
func (h *Host) RunsHooksInUserShell() bool    { return h.description.RunsHooksInUserShell }

// DenialExitStatus is the exit status of a hook that denies a call: usually 2, but 0 if the host would
// allow the call, or hide the reason, after any other status.
func (h *Host) DenialExitStatus() int {
	if h.description.DenialMustExitZero {
		return 0
	}
	return 2
}

// InstallationIndicators returns the program names, and the folders below the home folder, that show that the host is
// installed.
func (h *Host) InstallationIndicators() (programs, folders []string) {
	return h.description.ProgramNames, h.description.DetectionFolders
}

// HandledEventNames returns the names of the events before a tool runs, after it, and for a prompt of the user.
// Events at which the agent stops are not among them.
func (h *Host) HandledEventNames() []string {
	all := slices.Concat(h.description.BeforeToolEvents, h.description.AfterToolEvents)
	if h.description.Prompt.Event != "" {
		all = append(all, h.description.Prompt.Event)
	}
	return all
}

// Tools returns the host's names of the tools that its file maps to actions.
func (h *Host) Tools() []string {
	return sorted.Keys(h.description.Tools)
}

// InternalTools returns the host's names of the tools that change nothing outside the host.
func (h *Host) InternalTools() []string { return slices.Clone(h.description.InternalTools) }

// ToolsWithoutActionType returns the host's names of known tools that no action type describes; they are judged by name
// and input alone.
func (h *Host) ToolsWithoutActionType() []string {
	return slices.Clone(h.description.ToolsWithoutActionType)
}

// An Event is one request of a host to its hook.
type Event struct {
	Host            *Host            // the host that sent the event; it can differ from the host whose hook receives it, since some hosts run the hooks of others. Answers use its format
	Name            string           // the host's name of the event
	ToolCallID      string           // ID of the tool call; "" if the host gives none
	ParentSessionID string           // ID of the parent session; "" if there is none, or it is unknown
	Actions         []jsontext.Value // all must be allowed; none if the event proposes nothing
	ToolResult      *ToolResult      // the result of a tool that has run the actions in Actions; nil for an event before a tool runs
	EndedSessionID  string           // ID of the session whose agent stops; "" for another event
	Prompt          *UserPrompt      // a prompt that the user may have written; nil for another event
}

// ToolResult is the result of a tool.
type ToolResult struct {
	Result             any      // a string or a JSON value; nil if the host does not report it
	FilesChangedByTool []string // files that the tool changed, as the host reports
	CallingSubAgentID  string   // the sub-agent that called the tool; "" for the session's main agent, or if unknown
	tool               string
}

// Event parses a hook's input. Input that does not fit the description of the host in folder hosts is an error;
// the returned event then has only Host set.
func (h *Host) Event(ctx context.Context, in []byte) (Event, error) {
	v, err := decodeEvent(in)
	if err == nil && !h.hasOnlyPermissionPromptEvent {
		h, err = h.detectSendingHost(ctx, v)
	}
	var e Event
	if err == nil {
		e, err = h.parseEvent(ctx, v)
	}
	if err != nil {
		return Event{Host: h}, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	e.Host = h
	return e, nil
}

// detectSendingHost returns the host that sent an event. This is a host other than h if the event contains
// fields that only the other host sends, and that host also runs hooks installed for other hosts.
func (h *Host) detectSendingHost(ctx context.Context, v any) (*Host, error) {
	for _, name := range borrowers {
		other := h
		if name != h.Name {
			other = &Host{Name: name, description: formOf(name)}
		}
		mine, err := other.runJQForOneResult(ctx, other.description.SentByThisHostJQ, v)
		if err != nil {
			return h, err
		}
		if mine == true {
			return other, nil
		}
	}
	return h, nil
}

func (h *Host) parseEvent(ctx context.Context, v any) (Event, error) {
	out, err := h.runJQForOneResult(ctx, h.description.ReadEventJQ, v)
	if err != nil {
		return Event{}, err
	}
	read, _ := out.(map[string]any)
	name, _ := read["event"].(string)
	tool, _ := read["tool"].(string)
	input, isObject := read["input"].(map[string]any)
	id, _ := read["id"].(string)
	parent, _ := read["parent"].(string)
	e := Event{Name: name, ToolCallID: id, ParentSessionID: parent}
	if name != "" && name == h.description.Prompt.Event && tool == "" {
		e.Prompt, err = h.parsePrompt(ctx, v)
		return e, err
	}
	after := slices.Contains(h.description.AfterToolEvents, name)
	if after && tool != "" {
		if e.ToolResult, err = h.parseResult(ctx, tool, v); err != nil {
			return Event{}, err
		}
	}
	switch session, _ := read["session"].(string); {
	case tool == "" && session != "" && slices.Contains(h.description.AgentStopEvents, name):
		e.EndedSessionID = session
		return e, nil
	case tool == "":
		return Event{}, errors.New("the input is not an event of this host; check the HOST in the hook's command")
	case after && !isObject:
		return e, nil
	case !after && !slices.Contains(h.description.BeforeToolEvents, name):
		return Event{}, errors.New("the hook event is unknown; update shield")
	case !isObject:
		return Event{}, errors.New("the tool's input is not a JSON object; update shield")
	case slices.Contains(h.description.InternalTools, tool):
		return e, nil
	case !after:
		if err := rejectKeysDifferingInCase(input); err != nil {
			return Event{}, err
		}
	}
	e.Actions, err = h.encodedActions(ctx, tool, input, read)
	if err != nil {
		return Event{}, err
	}
	return e, nil
}

// toolWorkingDir returns the working folder of a tool, which can be relative to the session's folder.
func toolWorkingDir(sessionDir, toolDir any) (any, error) {
	if toolDir == nil {
		return sessionDir, nil
	}
	dir, ok := toolDir.(string)
	if !ok {
		return nil, errors.New("the working folder of the tool is not a string; update shield")
	}
	base, _ := sessionDir.(string)
	switch {
	case dir == "":
		return sessionDir, nil
	case base == "" || strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, "~") || strings.Contains(dir, `\`) || strings.Contains(dir, ":"):
		return dir, nil
	}
	return path.Join(base, dir), nil
}

// mapToolCallToActions returns the actions of a tool call. A tool that the host's file does not name keeps its
// name and input. If the name is one of shield's action types or an alias of one, it is prefixed with the host's
// name, since the tool can be a different one.
func (h *Host) mapToolCallToActions(ctx context.Context, toolName string, input map[string]any, cwd any) ([]map[string]any, error) {
	tool, known := h.description.Tools[toolName]
	if !known {
		if action.CanonicalType(toolName) != "" && !strings.HasPrefix(toolName, "mcp__") {
			toolName = h.Name + ":" + toolName
		}
		return []map[string]any{{"type": toolName, "payload": input}}, nil
	}
	var folder any
	if tool.WorkingDirJQ != "" {
		var err error
		if folder, err = h.runJQForOneResult(ctx, tool.WorkingDirJQ, input); err != nil {
			return nil, err
		}
	}
	payloads, err := h.runJQProgram(ctx, tool.ActionPayloadsJQ, input)
	if err != nil {
		return nil, err
	}
	var actions []map[string]any
	for _, p := range payloads {
		a := map[string]any{"type": tool.ActionType, "payload": p}
		if tool.ActionType == "" {
			var ok bool
			if a, ok = p.(map[string]any); !ok {
				return nil, errors.New("the tool call cannot be parsed; update shield")
			}
			a = maps.Clone(a) // copy the map: the jq program can return the same constant for the next call
		}
		if folder != nil {
			a["cwd"] = folder
		}
		actions = append(actions, a)
	}
	if len(actions) == 0 {
		return nil, errors.New("the tool call has an unknown form; update shield")
	}
	if left := unmappedFilePathsAndAddresses(input, append(payloads, folder, cwd)); left != nil {
		if payload, ok := actions[0]["payload"].(map[string]any); ok {
			payload = maps.Clone(payload)
			payload[UnmappedToolInputField], actions[0]["payload"] = left, payload
		}
	}
	return actions, nil
}

// UnmappedToolInputField is the action field for the paths and addresses in a tool's input that its mapping did not use.
const UnmappedToolInputField = "left"

// unmappedFilePathsAndAddresses returns the parts of a tool's input that look like a path or address and occur
// in no string of mappedValues, the payloads and folders of the actions that shield made from the input; nil if
// there are none.
func unmappedFilePathsAndAddresses(input any, mappedValues []any) any {
	switch v := input.(type) {
	case string:
		if !looksLikePath(v) || slices.ContainsFunc(mappedValues, func(m any) bool { return containsText(m, v) }) {
			return nil
		}
		return v
	case []any:
		var left []any
		for _, item := range v {
			if one := unmappedFilePathsAndAddresses(item, mappedValues); one != nil {
				left = append(left, one)
			}
		}
		if left != nil {
			return left
		}
	case map[string]any:
		var left map[string]any
		for name, item := range v {
			if one := unmappedFilePathsAndAddresses(item, mappedValues); one != nil {
				if left == nil {
					left = map[string]any{}
				}
				left[name] = one
			}
		}
		if left != nil {
			return left
		}
	}
	return nil
}

// looksLikePath reports whether a text looks like a path or an address.
func looksLikePath(text string) bool {
	return len(text) > 1 && len(text) <= 4096 && !strings.ContainsAny(text, "\n ") &&
		(strings.ContainsRune("/~.\\", rune(text[0])) || strings.Contains(text, "..") || strings.Contains(text, "://") || len(text) > 2 && text[1] == ':')
}

// containsText reports whether a text occurs in a string of a value.
func containsText(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return containsText(item, text) })
	case map[string]any:
		for _, item := range v {
			if containsText(item, text) {
				return true
			}
		}
	}
	return false
}

// ResponseToAllowedEvent returns the host's response to an allowed event, as one JSON text; nil for no response.
// If the host has its own permissions, the response leaves the decision to them if the event has no actions or
// reports a tool's result, if delegateToHostPermissions is true, or if hooks cannot skip these permissions.
func (h *Host) ResponseToAllowedEvent(ctx context.Context, e Event, delegateToHostPermissions bool, reason string) ([]byte, error) {
	form := h.description.NeutralResponseJQ
	if len(e.Actions) > 0 && e.ToolResult == nil && !delegateToHostPermissions && h.description.AllowResponseJQ != "" {
		form = h.description.AllowResponseJQ
	}
	if form == "" {
		return nil, nil
	}
	out, err := h.runJQForOneResult(ctx, form, map[string]any{"event": e.Name, "id": e.ToolCallID, "reason": reason})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encodeCompactJSON(out)
}

// ShowUserTextResponse returns the response that makes the host show a text to its user when a session ends, one JSON
// text.
func (h *Host) ShowUserTextResponse(ctx context.Context, e Event, text string) ([]byte, error) {
	out, err := h.runJQForOneResult(ctx, h.description.ShowTextResponseJQ, map[string]any{"event": e.Name, "text": text})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encodeCompactJSON(out)
}

// DenialResponse returns the host's response for a denial as one JSON text. reasonForAgent is the text for the
// agent, and textForUser the text for the user, "" for none. Some hosts treat a denial without a reason as
// permission, so reasonForAgent must not be empty.
func (h *Host) DenialResponse(ctx context.Context, reasonForAgent, textForUser string) ([]byte, error) {
	if reasonForAgent == "" {
		return nil, errors.New("internal error: a denial has no reason; please report this")
	}
	out, err := h.runJQForOneResult(ctx, h.description.DenyResponseJQ, map[string]any{"reason": reasonForAgent, "user": textForUser})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encodeCompactJSON(out)
}

// runJQForOneResult runs a jq program on a value and returns its one result.
func (h *Host) runJQForOneResult(ctx context.Context, program string, v any) (any, error) {
	out, err := h.runJQProgram(ctx, program, v)
	if err == nil && len(out) != 1 {
		err = fmt.Errorf("internal error: %d answers instead of one; please report this", len(out))
	}
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// runJQProgram runs a jq program of the host's file on a value and returns its results.
// The program sees no environment, no files and no other input.
func (h *Host) runJQProgram(ctx context.Context, program string, v any) ([]any, error) {
	code, err := compileJQProgram(program)
	if err != nil {
		return nil, fmt.Errorf("%s.yaml: %w", h.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxJQRunTime)
	defer cancel()
	var results []any
	for it := code.RunWithContext(ctx, v); ; {
		out, more := it.Next()
		if !more {
			return results, nil
		}
		if err, failed := out.(error); failed {
			return nil, err
		}
		if results = append(results, out); len(results) > maxActionsPerEvent {
			return nil, fmt.Errorf("internal error: more than %d answers; please report this", maxActionsPerEvent)
		}
	}
}

// compiledJQPrograms caches compiled jq programs by their text; only programs of the hosts' files occur.
var compiledJQPrograms sync.Map

// compileJQProgram returns a compiled jq program, which is safe for concurrent use.
func compileJQProgram(program string) (*gojq.Code, error) {
	if code, ok := compiledJQPrograms.Load(program); ok {
		return code.(*gojq.Code), nil
	}
	query, err := gojq.Parse(neededJQFunctionsSource(sharedJQFiltersSource, program) + "\n" + program)
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query, gojq.WithFunction("patched", 0, 0, patchToActionsFilter), gojq.WithFunction("sha256", 0, 0, sha256Filter))
	if err == nil {
		compiledJQPrograms.Store(program, code)
	}
	return code, err
}

// sha256Filter is the jq filter that returns the SHA-256 of a text, in hexadecimal.
func sha256Filter(v any, _ []any) any {
	text, ok := v.(string)
	if !ok {
		return errors.New("internal error: the jq function sha256 got a value that is not a string; please report this")
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

// neededJQFunctionsSource returns the definitions that a jq program uses, directly or through other definitions. Each
// definition starts on its own line and uses only earlier ones and itself.
func neededJQFunctionsSource(sharedSource, jqProgram string) string {
	const begin = "\ndef "
	defs := strings.Split(sharedSource, begin)
	named := jqProgram
	for i := len(defs) - 1; i > 0; i-- {
		name := defs[i][:max(strings.IndexAny(defs[i], "(:"), 0)]
		if !strings.Contains(named, name) {
			defs = slices.Delete(defs, i, i+1)
			continue
		}
		named += defs[i]
	}
	return strings.Join(defs, begin)
}
