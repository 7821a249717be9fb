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

// MaxBytes is the maximum size of a hook's input, in bytes.
const MaxBytes = 4 << 20

// maxProgramTime bounds one run of a jq program of a host.
const maxProgramTime = 2 * time.Second

// maxActions is how many actions one event may propose.
const maxActions = 256

//go:embed hosts/shared.jq
var sharedFilters string

// Names returns the names of all supported hosts.
func Names() []string { return slices.Clone(hosts) }

// A Host is one agent program.
type Host struct {
	Name          string
	form          *form.Host
	forPermission bool // the host has only the event before its permission prompt, see [Host.Permission]
}

// Named returns a host by its name.
func Named(name string) (*Host, error) {
	f := formOf(name)
	if f == nil {
		return nil, fmt.Errorf("unknown host %q; use %s", name, strings.Join(hosts, ", "))
	}
	return &Host{Name: name, form: f}, nil
}

// Title returns the host's name as people know it. VerifiedVersion returns the version that was
// tested with the real program. If VerifiedVersion is "", Source returns where the formats of the
// host's events are documented.
func (h *Host) Title() string           { return h.form.Title }
func (h *Host) VerifiedVersion() string { return h.form.Verified }
func (h *Host) Source() string          { return h.form.Source }

// Limits are sentences about what no hook of this host can prevent.
func (h *Host) Limits() []string { return h.form.Limits }

// NeedsSilentHook reports whether a hook must print nothing on standard output. The method
// UserShell reports whether the host runs command lines in the user's own shell.
func (h *Host) NeedsSilentHook() bool { return h.form.Silent }
func (h *Host) UserShell() bool       { return h.form.UserShell }

// DenialStatus is the exit status of a hook that denies a call: usually 2, but 0 if the host would
// allow the call, or hide the reason, after any other status.
func (h *Host) DenialStatus() int {
	if h.form.ZeroStatus {
		return 0
	}
	return 2
}

// Found returns the program names, and the folders below the home folder, that show that the host is
// installed.
func (h *Host) Found() (programs, folders []string) { return h.form.Programs, h.form.Folders }

// Events returns the names of the events that shield handles: before a tool runs, after it, and for a
// prompt of the user.
func (h *Host) Events() []string {
	all := slices.Concat(h.form.Before, h.form.After)
	if h.form.Prompt.Event != "" {
		all = append(all, h.form.Prompt.Event)
	}
	return all
}

// Tools returns the host's names of the tools that its file maps to actions.
func (h *Host) Tools() []string {
	return sorted.Keys(h.form.Tools)
}

// InternalTools returns the host's names of the tools that change nothing outside the host.
func (h *Host) InternalTools() []string { return slices.Clone(h.form.Internal) }

// UntypedTools returns the host's names of known tools that no action type describes; they are judged by name
// and input alone.
func (h *Host) UntypedTools() []string { return slices.Clone(h.form.Asked) }

// An Event is one request of a host to its hook.
type Event struct {
	Host          *Host            // the host that sent the event; it can differ from the host whose hook receives it, since some hosts run the hooks of others. Answers use its format
	Name          string           // the host's name of the event
	ID            string           // ID of the tool call; "" if the host gives none
	ParentSession string           // ID of the parent session; "" if there is none, or it is unknown
	Actions       []jsontext.Value // all must be allowed; none if the event proposes nothing
	ToolResult    *ToolResult      // the result of a tool; nil for an event before a tool runs. Actions are then those that were executed
	EndedSession  string           // ID of the session whose agent stops; "" for another event
	Prompt        *Prompt          // a prompt that the user may have written; nil for another event
}

// ToolResult is the result of a tool.
type ToolResult struct {
	Result any      // a string or a JSON value; nil if the host does not report it
	Files  []string // files that the tool changed, as the host reports
	Agent  string   // the sub-agent that called the tool; "" for the session's main agent, or if unknown
	tool   string
}

// Event parses a hook's input. Input that the host's file does not describe is an error; the returned
// event then has only Host set.
func (h *Host) Event(ctx context.Context, in []byte) (Event, error) {
	v, err := decodeEvent(in)
	if err == nil && !h.forPermission {
		h, err = h.detectSender(ctx, v)
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

// detectSender returns the host that sent an event. This is a host other than h if the event
// contains fields that only the other host sends, and that host also runs hooks installed for h.
func (h *Host) detectSender(ctx context.Context, v any) (*Host, error) {
	for _, name := range borrowers {
		other := h
		if name != h.Name {
			other = &Host{Name: name, form: formOf(name)}
		}
		mine, err := other.runForOne(ctx, other.form.Borrows, v)
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
	out, err := h.runForOne(ctx, h.form.Read, v)
	if err != nil {
		return Event{}, err
	}
	read, _ := out.(map[string]any)
	name, _ := read["event"].(string)
	tool, _ := read["tool"].(string)
	input, isObject := read["input"].(map[string]any)
	id, _ := read["id"].(string)
	parent, _ := read["parent"].(string)
	e := Event{Name: name, ID: id, ParentSession: parent}
	if name != "" && name == h.form.Prompt.Event && tool == "" {
		e.Prompt, err = h.parsePrompt(ctx, v)
		return e, err
	}
	after := slices.Contains(h.form.After, name)
	if after && tool != "" {
		if e.ToolResult, err = h.parseResult(ctx, tool, v); err != nil {
			return Event{}, err
		}
	}
	switch session, _ := read["session"].(string); {
	case tool == "" && session != "" && slices.Contains(h.form.End, name):
		e.EndedSession = session
		return e, nil
	case tool == "":
		return Event{}, errors.New("the input is not an event of this host; check the HOST in the hook's command")
	case after && !isObject:
		return e, nil
	case !after && !slices.Contains(h.form.Before, name):
		return Event{}, errors.New("the hook event is unknown; update shield")
	case !isObject:
		return Event{}, errors.New("the tool's input is not a JSON object; update shield")
	case slices.Contains(h.form.Internal, tool):
		return e, nil
	case !after:
		if err := checkUnambiguous(input); err != nil {
			return Event{}, err
		}
	}
	e.Actions, err = h.encodedActions(ctx, tool, input, read)
	if err != nil {
		return Event{}, err
	}
	return e, nil
}

// joinFolders returns the working folder of a tool, which can be relative to the session's folder.
func joinFolders(session, tool any) (any, error) {
	if tool == nil {
		return session, nil
	}
	dir, ok := tool.(string)
	if !ok {
		return nil, errors.New("the working folder of the tool is not a string; update shield")
	}
	base, _ := session.(string)
	switch {
	case dir == "":
		return session, nil
	case base == "" || strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, "~") || strings.Contains(dir, `\`) || strings.Contains(dir, ":"):
		return dir, nil
	}
	return path.Join(base, dir), nil
}

// mapActions returns the actions of a tool call. A tool that the host's file does not name keeps its name
// and input. If the name equals one of shield's action types, it is prefixed with the host's name,
// since the tool can be a different one.
func (h *Host) mapActions(ctx context.Context, name string, input map[string]any, cwd any) ([]map[string]any, error) {
	tool, known := h.form.Tools[name]
	if !known {
		if action.CanonicalType(name) != "" && !strings.HasPrefix(name, "mcp__") {
			name = h.Name + ":" + name
		}
		return []map[string]any{{"type": name, "payload": input}}, nil
	}
	var folder any
	if tool.Folder != "" {
		var err error
		if folder, err = h.runForOne(ctx, tool.Folder, input); err != nil {
			return nil, err
		}
	}
	payloads, err := h.runProgram(ctx, tool.Payload, input)
	if err != nil {
		return nil, err
	}
	var actions []map[string]any
	for _, p := range payloads {
		a := map[string]any{"type": tool.Type, "payload": p}
		if tool.Type == "" {
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
	if left := unmappedPaths(input, append(payloads, folder, cwd)); left != nil {
		if payload, ok := actions[0]["payload"].(map[string]any); ok {
			payload = maps.Clone(payload)
			payload[UnmappedField], actions[0]["payload"] = left, payload
		}
	}
	return actions, nil
}

// UnmappedField is the action field for the paths and addresses in a tool's input that its mapping did not use.
const UnmappedField = "left"

// unmappedPaths returns the parts of a tool's input that look like a path or address and occur in no text
// of the mapped actions; nil if there are none.
func unmappedPaths(input any, made []any) any {
	switch v := input.(type) {
	case string:
		if !looksLikePath(v) || slices.ContainsFunc(made, func(m any) bool { return containsText(m, v) }) {
			return nil
		}
		return v
	case []any:
		var left []any
		for _, item := range v {
			if one := unmappedPaths(item, made); one != nil {
				left = append(left, one)
			}
		}
		if left != nil {
			return left
		}
	case map[string]any:
		var left map[string]any
		for name, item := range v {
			if one := unmappedPaths(item, made); one != nil {
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

// Answer returns the host's response to an allowed event, as one JSON text; nil for no response. On
// a host with its own permissions, the response leaves the decision to them if the event has no
// actions or if delegate is true.
func (h *Host) Answer(ctx context.Context, e Event, delegate bool, reason string) ([]byte, error) {
	form := h.form.Neutral
	if len(e.Actions) > 0 && e.ToolResult == nil && !delegate && h.form.Allow != "" {
		form = h.form.Allow
	}
	if form == "" {
		return nil, nil
	}
	out, err := h.runForOne(ctx, form, map[string]any{"event": e.Name, "id": e.ID, "reason": reason})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encode(out)
}

// Say returns the response that makes the host show a text to its user when a session ends, one JSON
// text.
func (h *Host) Say(ctx context.Context, e Event, text string) ([]byte, error) {
	out, err := h.runForOne(ctx, h.form.Said, map[string]any{"event": e.Name, "text": text})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encode(out)
}

// Deny returns the host's response for a denial, one JSON text: reason is for the agent, user (unless
// "") for the user. Some hosts treat a denial without a reason as permission, so reason must not be
// empty.
func (h *Host) Deny(ctx context.Context, reason, user string) ([]byte, error) {
	if reason == "" {
		return nil, errors.New("internal error: a denial has no reason; please report this")
	}
	out, err := h.runForOne(ctx, h.form.Deny, map[string]any{"reason": reason, "user": user})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encode(out)
}

// runForOne runs a jq program on a value and returns its one result.
func (h *Host) runForOne(ctx context.Context, program string, v any) (any, error) {
	out, err := h.runProgram(ctx, program, v)
	if err == nil && len(out) != 1 {
		err = fmt.Errorf("internal error: %d answers instead of one; please report this", len(out))
	}
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// runProgram runs a jq program of the host's file on a value and returns its results.
// The program sees no environment, no files and no other input.
func (h *Host) runProgram(ctx context.Context, program string, v any) ([]any, error) {
	code, err := compileProgram(program)
	if err != nil {
		return nil, fmt.Errorf("%s.yaml: %w", h.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxProgramTime)
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
		if results = append(results, out); len(results) > maxActions {
			return nil, fmt.Errorf("internal error: more than %d answers; please report this", maxActions)
		}
	}
}

// compiledPrograms caches compiled jq programs by their text; only programs of the hosts' files occur.
var compiledPrograms sync.Map

// compileProgram returns a compiled jq program, which is safe for concurrent use.
func compileProgram(program string) (*gojq.Code, error) {
	if code, ok := compiledPrograms.Load(program); ok {
		return code.(*gojq.Code), nil
	}
	query, err := gojq.Parse(neededDefinitions(sharedFilters, program) + "\n" + program)
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query, gojq.WithFunction("patched", 0, 0, patchFilter), gojq.WithFunction("sha256", 0, 0, sha256Filter))
	if err == nil {
		compiledPrograms.Store(program, code)
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

// neededDefinitions returns the definitions that a jq program uses, directly or through other definitions. Each
// definition starts on its own line and uses only earlier ones and itself.
func neededDefinitions(text, program string) string {
	const begin = "\ndef "
	defs := strings.Split(text, begin)
	named := program
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
