package shield

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/sanitize"
)

// ToolResult is what a tool call returned and changed, as reported to [Pipeline.ExamineAndRecordToolResult].
type ToolResult struct {
	Actions               []*action.Action // the actions of the call; none for a tool of the host itself
	ReturnedValue         any              // a string, or a JSON value as package json decodes it; nil if unknown
	ChangedFiles          []string         // files that the tool changed, if the host says so
	IsAgentHostUnverified bool             // not verified to come from the host: only what makes judgement stricter is believed
	SubAgentID            string           // the sub-agent that called the tool; "" for the main agent
}

// SanitizedToolResult is what was found in a result, and the part of it that the agent may read.
type SanitizedToolResult struct {
	sanitize.SanitizedResult
	Findings []sanitize.Finding
}

// ExamineAndRecordToolResult examines the result of a tool as the settings say, logs findings, and adds to the session
// what came in. After an error the result counts as not examined.
func (p *Pipeline) ExamineAndRecordToolResult(ctx context.Context, r ToolResult) (e SanitizedToolResult, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("internal error: shield did not scan the result of a tool; please report this: %.200q", fmt.Sprint(x))
		}
	}()
	e.Result = r.ReturnedValue
	p.recordFileStatesAfterActions(ctx, r.Actions)
	if p.mustExamineToolResult(r.Actions) {
		kind := ""
		if len(r.Actions) > 0 {
			kind = r.Actions[0].Type
		}
		report := p.ExamineToolResult(ctx, kind, r.ReturnedValue)
		e.Findings, e.SanitizedResult = report.Findings, report.SanitizeResult(sanitize.ResultHandlingMode(p.sanitizeSettings.ActionOnFindings))
	}
	if err := p.RecordToolResult(ctx, r, slices.ContainsFunc(e.Findings, func(f sanitize.Finding) bool { return MayBeInjection(f.Kind) })); err != nil {
		return SanitizedToolResult{}, err
	}
	if err := p.logFindings(ctx, r, e.Findings); err != nil {
		return SanitizedToolResult{}, err
	}
	return e, nil
}

// logFindings logs the findings in a result.
func (p *Pipeline) logFindings(ctx context.Context, r ToolResult, found []sanitize.Finding) error {
	if len(found) == 0 || p.log == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxAuditEntryWriteWait)
	defer cancel()
	if err := p.log.EncodeAndQueue(p.findingsLogEntry(r, found)).Wait(ctx); err != nil {
		return fmt.Errorf("findings in a tool result could not be logged: %w", err)
	}
	return nil
}

// mustExamineToolResult reports whether the settings want a result examined: by default those that may come from
// outside the machine and, if people are asked in a chat, all.
func (p *Pipeline) mustExamineToolResult(actions []*action.Action) bool {
	switch p.sanitizeSettings.Enabled {
	case config.On:
		return true
	case config.Off:
		return false
	}
	return p.asksPersonInChatService || slices.ContainsFunc(actions, p.mayReturnExternalText)
}

// actionTypesWithLocalResults are the types of actions that return only data of this machine.
var actionTypesWithLocalResults = []string{
	"read_file", "write_file", "delete_file", "copy_file", "move_file", "list_directory", "create_directory", "delete_directory",
	"copy_directory", "move_directory", "search_files", "memory_write", "memory_search", "memory_delete",
}

// effectKindsReturningRemoteText are the effects through which text of other machines may come back.
var effectKindsReturningRemoteText = []effect.Kind{effect.HTTPRequest, effect.Connect, effect.SendMessage, effect.ChangeRemoteSystem, effect.SendData, effect.RunDownload, effect.RemoteShell}

// mayReturnExternalText reports whether the result of an action may come from the web, from mail or from an MCP
// server. A tool that shield does not know counts as one of an MCP server.
func (p *Pipeline) mayReturnExternalText(a *action.Action) bool {
	switch {
	case slices.Contains(actionTypesWithLocalResults, a.Type) || strings.HasPrefix(a.Type, "git_"):
		return false
	case a.Type != "execute_command":
		return true
	}
	return slices.ContainsFunc(p.analyzer.AnalyzeAction(a).Effects, func(e effect.Effect) bool {
		return slices.Contains(effectKindsReturningRemoteText, e.KindForPolicies()) || e.Kind == effect.Execute && e.Class == effect.Network
	})
}

// findingsLogEntry returns the log entry for the findings in a result.
func (p *Pipeline) findingsLogEntry(r ToolResult, found []sanitize.Finding) audit.Entry {
	list := make([]any, len(found))
	for i, f := range found {
		one := map[string]any{"kind": string(f.Kind), "rule": f.Rule, "where": f.JSONPointer, "what": f.FindingDescription, "severity": f.Severity}
		if f.ExaminerName != "" {
			one["source"] = f.ExaminerName
		}
		list[i] = one
	}
	entry := audit.Entry{
		Kind: audit.EntryKindToolResultFindings, Payload: map[string]any{"findings": list, "mode": p.sanitizeSettings.ActionOnFindings, "agent": r.SubAgentID, "files": strings.Join(r.ChangedFiles, "\n")},
		Reasoning: sanitize.Summary(found), Caller: p.caller, Fingerprints: p.fingerprints,
	}
	if len(r.Actions) > 0 {
		a := r.Actions[0]
		entry.ActionID, entry.Session, entry.ActionType, entry.CWD, entry.ActionHash = a.ID, a.Session, a.Type, a.CWD, a.TypeAndPayloadHash
	}
	return entry
}
