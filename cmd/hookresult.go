package cmd

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
)

// examineToolResult examines the result of a tool and, if the host supports it, returns a replacement for the
// agent to read. If the examination fails, the replacement withholds the result; if the host does not support
// replacements, or this process is a service, examineToolResult returns an error.
func examineToolResult(ctx context.Context, c *cli.Context, w *Environment, h *host.Host, event host.Event) (hookAnswer, error) {
	got, err := examineAndRecordToolResult(ctx, c, w, h, event)
	switch {
	case err != nil && (!h.CanReplaceResult(event.Name) || w.requestFromServiceClient != nil):
		return hookAnswer{}, err
	case err != nil:
		got.Changed, got.WithheldReason = true, "shield: the result of this tool could not be scanned for prompt injection, so it is withheld; tell the user to run 'shield doctor': "+redactedErrorText(err)
	}
	if !got.Changed || !h.CanReplaceResult(event.Name) {
		answer, err := h.ResponseToAllowedEvent(ctx, event, true, "")
		return hookAnswer{Allow: true, HostResponseJSON: answer}, err
	}
	answer, err := h.ReplaceResultResponse(ctx, event, got.Result, got.WithheldReason)
	return hookAnswer{Allow: true, HostResponseJSON: answer}, err
}

// examineAndRecordToolResult examines and remembers the result of a tool with a pipeline.
func examineAndRecordToolResult(ctx context.Context, c *cli.Context, w *Environment, h *host.Host, event host.Event) (got shield.SanitizedToolResult, err error) {
	line, err := newToolResultWrapperShellScript(ctx, h)
	if err != nil {
		return got, err
	}
	r := shield.ToolResult{ReturnedValue: event.ToolResult.Result, ChangedFiles: event.ToolResult.FilesChangedByTool, SubAgentID: event.ToolResult.CallingSubAgentID, IsAgentHostUnverified: checkEventSentByHost(w, h, line) != nil}
	for _, raw := range event.Actions {
		a, err := action.Parse(raw)
		if err != nil {
			return got, fmt.Errorf("hook: %w", err)
		}
		r.Actions = append(r.Actions, a)
	}
	set, p, err := newPipelineWithConfigChange(c, w, func(cfg *shield.Config) {
		cfg.BacksUpLostFiles = true
		setSessionOrigin(cfg, w, h.Name, event.ParentSessionID)
	})
	if err != nil {
		return got, err
	}
	recordExecutedActions(w, set, p, h, event)
	got, err = p.ExamineAndRecordToolResult(ctx, r)
	if closing := p.Close(); err == nil {
		err = closing
	}
	return got, err
}
