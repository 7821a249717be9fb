package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// CanReplaceResult reports whether a hook can replace the tool's result after an event.
func (h *Host) CanReplaceResult(event string) bool {
	return h.description.ReplaceResultResponseJQ != "" && !slices.Contains(h.description.ReadOnlyResultEvents, event)
}

// parseResult parses the tool result in a hook's input.
func (h *Host) parseResult(ctx context.Context, tool string, in any) (*ToolResult, error) {
	r := &ToolResult{tool: tool}
	if h.description.ReadToolResultJQ == "" {
		return r, nil
	}
	out, err := h.runJQForOneResult(ctx, h.description.ReadToolResultJQ, in)
	if err != nil {
		return nil, err
	}
	read, isObject := out.(map[string]any)
	if !isObject {
		return nil, errors.New("the result of the tool cannot be parsed; update shield")
	}
	r.Result = read["result"]
	r.CallingSubAgentID, _ = read["agent"].(string)
	files, _ := read["files"].([]any)
	for _, f := range files {
		if name, isText := f.(string); isText {
			r.FilesChangedByTool = append(r.FilesChangedByTool, name)
		}
	}
	return r, nil
}

// ReplaceResultResponse returns the response that makes the agent read newResult, a JSON value,
// instead of the tool's result. If withholdReason is not "", the agent reads that reason. It
// returns an error if the host cannot replace results after this event.
func (h *Host) ReplaceResultResponse(ctx context.Context, e Event, newResult any, withholdReason string) ([]byte, error) {
	if e.ToolResult == nil || !h.CanReplaceResult(e.Name) {
		return nil, fmt.Errorf("internal error: %s hook: a hook cannot replace the result of a tool after this event; please report this", h.Name)
	}
	text, isText := newResult.(string)
	switch {
	case withholdReason != "":
		text = withholdReason
	case !isText:
		b, err := encodeCompactJSON(newResult)
		if err != nil {
			return nil, fmt.Errorf("%s hook: %w", h.Name, err)
		}
		text = string(b)
	}
	in := map[string]any{"event": e.Name, "id": e.ToolCallID, "tool": e.ToolResult.tool, "result": newResult, "text": text, "withheld": withholdReason != ""}
	if withholdReason != "" {
		in["result"] = e.ToolResult.Result // the replacement must have the same structure as the tool's result
	}
	out, err := h.runJQForOneResult(ctx, h.description.ReplaceResultResponseJQ, in)
	if err == nil && out == nil { // this result's format is unknown, so keep the agent from reading it
		return h.UnexaminedResultResponse(ctx, text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encodeCompactJSON(out)
}

// UnexaminedResultResponse returns the response for a result that could not be examined: the one that keeps the
// agent from reading it, or else the neutral response; nil if the host has neither, sends no results, or
// requires that hooks print nothing.
func (h *Host) UnexaminedResultResponse(ctx context.Context, reason string) ([]byte, error) {
	form := h.description.UnexaminedResultResponseJQ
	if form == "" {
		form = h.description.NeutralResponseJQ
	}
	if form == "" || h.RequiresEmptyHookStdout() || len(h.description.AfterToolEvents) == 0 {
		return nil, nil
	}
	out, err := h.runJQForOneResult(ctx, form, map[string]any{"event": h.description.AfterToolEvents[0], "reason": reason, "id": ""})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encodeCompactJSON(out)
}
