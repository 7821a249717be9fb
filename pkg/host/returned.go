package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Replaces reports whether the host can be given another result than a tool's own after
// an event.
func (h *Host) Replaces(event string) bool {
	return h.form.Replace != "" && !slices.Contains(h.form.Kept, event)
}

// returned reads what a tool has returned.
func (h *Host) returned(ctx context.Context, tool string, in any) (*Returned, error) {
	r := &Returned{tool: tool}
	if h.form.Result == "" {
		return r, nil
	}
	out, err := h.one(ctx, h.form.Result, in)
	if err != nil {
		return nil, err
	}
	read, isObject := out.(map[string]any)
	if !isObject {
		return nil, errors.New("the result of the tool cannot be parsed; update shield")
	}
	r.Result = read["result"]
	r.Agent, _ = read["agent"].(string)
	files, _ := read["files"].([]any)
	for _, f := range files {
		if name, isText := f.(string); isText {
			r.Files = append(r.Files, name)
		}
	}
	return r, nil
}

// Replace returns what has the agent read a result instead of what a tool returned,
// one JSON text. With withheld there is none, and the agent reads that. A host that
// cannot be given such a result is an error.
func (h *Host) Replace(ctx context.Context, e Event, result any, withheld string) ([]byte, error) {
	if e.Returned == nil || !h.Replaces(e.Name) {
		return nil, fmt.Errorf("%s hook: the host does not let a hook replace this result", h.Name)
	}
	text, isText := result.(string)
	switch {
	case withheld != "":
		text = withheld
	case !isText:
		b, err := encode(result)
		if err != nil {
			return nil, fmt.Errorf("%s hook: %w", h.Name, err)
		}
		text = string(b)
	}
	in := map[string]any{"event": e.Name, "id": e.ID, "tool": e.Returned.tool, "result": result, "text": text, "withheld": withheld != ""}
	if withheld != "" {
		in["result"] = e.Returned.Result // for its shape
	}
	out, err := h.one(ctx, h.form.Replace, in)
	if err == nil && out == nil { // the agent must not read it, and its place has no form that is known
		return h.Lost(ctx, text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encode(out)
}

// Lost returns what a host is told about a result that could not be examined, whatever
// it is: what keeps the agent from reading it or, where nothing does, what is
// neutral, and nil if that is nothing or the host hands nothing over.
func (h *Host) Lost(ctx context.Context, reason string) ([]byte, error) {
	form := h.form.Lost
	if form == "" {
		form = h.form.Neutral
	}
	if form == "" || h.Silent() || len(h.form.After) == 0 {
		return nil, nil
	}
	out, err := h.one(ctx, form, map[string]any{"event": h.form.After[0], "reason": reason, "id": ""})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encode(out)
}
