package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// CanReplaceResult reports whether a hook can replace the tool's result after an event.
func (h *Host) CanReplaceResult(event string) bool {
	return h.form.Replace != "" && !slices.Contains(h.form.Kept, event)
}

// parseResult parses the tool result in a hook's input.
func (h *Host) parseResult(ctx context.Context, tool string, in any) (*ToolResult, error) {
	r := &ToolResult{tool: tool}
	if h.form.Result == "" {
		return r, nil
	}
	out, err := h.runForOne(ctx, h.form.Result, in)
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

// Replace returns the response that makes the agent read result instead of the tool's result, one JSON
// text. If withheld is not "", the agent reads that reason. It returns an error if the host cannot
// replace results after this event.
func (h *Host) Replace(ctx context.Context, e Event, result any, withheld string) ([]byte, error) {
	if e.ToolResult == nil || !h.CanReplaceResult(e.Name) {
		return nil, fmt.Errorf("internal error: %s hook: a hook cannot replace the result of a tool after this event; please report this", h.Name)
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
	in := map[string]any{"event": e.Name, "id": e.ID, "tool": e.ToolResult.tool, "result": result, "text": text, "withheld": withheld != ""}
	if withheld != "" {
		in["result"] = e.ToolResult.Result // the replacement must have the same structure
	}
	out, err := h.runForOne(ctx, h.form.Replace, in)
	if err == nil && out == nil { // this result's format is unknown, so keep the agent from reading it
		return h.UnexaminedResponse(ctx, text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encode(out)
}

// UnexaminedResponse returns the response for a result that could not be examined: the one that keeps the agent from
// reading it, or else the neutral response; nil if the host has neither or sends no results.
func (h *Host) UnexaminedResponse(ctx context.Context, reason string) ([]byte, error) {
	form := h.form.Lost
	if form == "" {
		form = h.form.Neutral
	}
	if form == "" || h.NeedsSilentHook() || len(h.form.After) == 0 {
		return nil, nil
	}
	out, err := h.runForOne(ctx, form, map[string]any{"event": h.form.After[0], "reason": reason, "id": ""})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encode(out)
}
