// Package host speaks the hook formats of agent programs: what a program asks
// becomes an action, and a verdict becomes the program's own answer. The
// formats are jq programs, one file a host.
//
// Hosts are told allow or deny only. Their own "ask" is ignored, approved
// without asking, or turned into a denial, depending on host and mode.
package host

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/itchyny/gojq"
)

// MaxBytes is the size, in bytes, from which a hook's input is refused.
const MaxBytes = 4 << 20

// maxTime bounds one run of a host's jq program.
const maxTime = 2 * time.Second

//go:embed *.jq
var programs embed.FS

// hosts are the agent programs, in the order the help lists them. A host is a
// line here and a file NAME.jq that defines the filters that claude-code.jq
// lists.
var hosts = []string{"claude-code"}

// Names returns the names of all hosts.
func Names() []string { return slices.Clone(hosts) }

// A Host is one agent program.
type Host struct {
	Name string
	text string
}

// Named returns a host by its name.
func Named(name string) (*Host, error) {
	if !slices.Contains(hosts, name) {
		return nil, fmt.Errorf("unknown host %q; use %s", name, strings.Join(hosts, ", "))
	}
	text, err := programs.ReadFile(name + ".jq")
	if err != nil {
		return nil, err
	}
	return &Host{Name: name, text: string(text)}, nil
}

// An Event is what a host asks.
type Event struct {
	Name    string           // the host's own name for it
	Actions []jsontext.Value // to be judged, all of which must be allowed; none if the event proposes nothing
}

// Event reads a hook's input.
func (h *Host) Event(ctx context.Context, in []byte) (Event, error) {
	v, err := decode(in)
	if err != nil {
		return Event{}, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	out, err := h.run(ctx, "event", v)
	if err != nil {
		return Event{}, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	m, _ := out.(map[string]any)
	name, _ := m["event"].(string)
	actions, ok := m["actions"].([]any)
	if name == "" || !ok {
		return Event{}, fmt.Errorf("%s hook: not an event of this host", h.Name)
	}
	e := Event{Name: name}
	for _, a := range actions {
		raw, err := encode(a)
		if err != nil {
			return Event{}, fmt.Errorf("%s hook: %w", h.Name, err)
		}
		e.Actions = append(e.Actions, raw)
	}
	return e, nil
}

// Answer returns what the host is told of an event that is allowed, one JSON
// text, or nil if it is told nothing. An event without actions is left to the
// host; with delegate so is every other, on hosts with permissions of their own.
func (h *Host) Answer(ctx context.Context, e Event, delegate bool, reason string) ([]byte, error) {
	if len(e.Actions) == 0 {
		return nil, nil
	}
	out, err := h.run(ctx, "answer", map[string]any{"event": e.Name, "delegate": delegate, "reason": reason})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	if out == nil {
		return nil, nil
	}
	return encode(out)
}

// Deny returns the host's own form of a denial, one JSON text. Some hosts take
// a denial without a reason for permission, so reason must not be empty.
func (h *Host) Deny(ctx context.Context, reason string) ([]byte, error) {
	if reason == "" {
		return nil, errors.New("a denial needs a reason")
	}
	out, err := h.run(ctx, "deny", map[string]any{"reason": reason})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encode(out)
}

// run runs one filter of the host's program on a value and returns its one
// result. The program sees no environment, no files and no other input.
func (h *Host) run(ctx context.Context, filter string, v any) (any, error) {
	query, err := gojq.Parse(needed(h.text, filter) + "\n" + filter)
	if err != nil {
		return nil, fmt.Errorf("%s.jq: %w", h.Name, err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("%s.jq: %w", h.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	it := code.RunWithContext(ctx, v)
	out, ok := it.Next()
	if !ok {
		return nil, errors.New("no answer")
	}
	if err, failed := out.(error); failed {
		return nil, err
	}
	if _, more := it.Next(); more {
		return nil, errors.New("more than one answer")
	}
	return out, nil
}

// needed returns what a filter needs of a program: the definitions that it names,
// and those that these name. A definition begins a line, and names earlier ones and
// itself alone.
func needed(text, filter string) string {
	const begin = "\ndef "
	defs := strings.Split(text, begin)
	named := filter
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
