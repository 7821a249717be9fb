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

// ToolResult is the result of a tool call.
type ToolResult struct {
	Actions      []*action.Action // the actions of the call; none for a tool of the host itself
	Result       any              // a string, or a JSON value as package json decodes it; nil if unknown
	ChangedFiles []string         // files that the tool changed, if the host says so
	Unverified   bool             // not verified to come from the host: only what makes judgement stricter is believed
	Agent        string           // the sub-agent that called the tool; "" for the main agent
}

// ExaminedResult is what was found in a result, and the part of it that the agent may read.
type ExaminedResult struct {
	sanitize.AppliedResult
	Findings []sanitize.Finding
}

// HandleToolResult examines the result of a tool as the settings say, logs findings, and adds to the session
// what came in. After an error the result counts as not examined.
func (p *Pipeline) HandleToolResult(ctx context.Context, r ToolResult) (e ExaminedResult, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("internal error: shield did not scan the result of a tool; please report this: %.200q", fmt.Sprint(x))
		}
	}()
	e.Result = r.Result
	p.noteFilesAfterRun(ctx, r.Actions)
	if p.shouldExamine(r.Actions) {
		kind := ""
		if len(r.Actions) > 0 {
			kind = r.Actions[0].Type
		}
		report := p.Examine(ctx, kind, r.Result)
		e.Findings, e.AppliedResult = report.Findings, report.Apply(sanitize.Mode(p.sanitize.Mode))
	}
	if err := p.RecordToolResult(ctx, r, slices.ContainsFunc(e.Findings, func(f sanitize.Finding) bool { return MayBeInjection(f.Kind) })); err != nil {
		return ExaminedResult{}, err
	}
	if err := p.logFindings(ctx, r, e.Findings); err != nil {
		return ExaminedResult{}, err
	}
	return e, nil
}

// logFindings logs the findings in a result.
func (p *Pipeline) logFindings(ctx context.Context, r ToolResult, found []sanitize.Finding) error {
	if len(found) == 0 || p.log == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxLogWait)
	defer cancel()
	if err := p.log.Submit(p.findingsLogEntry(r, found)).Wait(ctx); err != nil {
		return fmt.Errorf("findings in a tool result could not be logged: %w", err)
	}
	return nil
}

// shouldExamine reports whether the settings want a result examined: by default those that may come from
// outside the machine and, if people are asked in a chat, all.
func (p *Pipeline) shouldExamine(actions []*action.Action) bool {
	switch p.sanitize.Enabled {
	case config.On:
		return true
	case config.Off:
		return false
	}
	return p.asksInChat || slices.ContainsFunc(actions, p.mayReturnExternalText)
}

// localResultTypes are the types of actions that return only data of this machine.
var localResultTypes = []string{
	"read_file", "write_file", "delete_file", "copy_file", "move_file", "list_directory", "create_directory", "delete_directory",
	"copy_directory", "move_directory", "search_files", "memory_write", "memory_search", "memory_delete",
}

// remoteTextEffects are the effects through which text of other machines may come back.
var remoteTextEffects = []effect.Kind{effect.HTTPRequest, effect.Connect, effect.SendMessage, effect.ChangeRemote, effect.SendData, effect.RunDownload, effect.RemoteShell}

// mayReturnExternalText reports whether the result of an action may come from the web, from mail or from an MCP
// server. A tool that shield does not know counts as one of an MCP server.
func (p *Pipeline) mayReturnExternalText(a *action.Action) bool {
	switch {
	case slices.Contains(localResultTypes, a.Type) || strings.HasPrefix(a.Type, "git_"):
		return false
	case a.Type != "execute_command":
		return true
	}
	return slices.ContainsFunc(p.analyzer.Case(a).Effects, func(e effect.Effect) bool {
		return slices.Contains(remoteTextEffects, e.RuleKind()) || e.Kind == effect.Execute && e.Class == effect.Network
	})
}

// findingsLogEntry returns the log entry for the findings in a result.
func (p *Pipeline) findingsLogEntry(r ToolResult, found []sanitize.Finding) audit.Entry {
	list := make([]any, len(found))
	for i, f := range found {
		one := map[string]any{"kind": string(f.Kind), "rule": f.Rule, "where": f.Where, "what": f.What, "severity": f.Severity}
		if f.Source != "" {
			one["source"] = f.Source
		}
		list[i] = one
	}
	entry := audit.Entry{
		Kind: audit.KindResult, Payload: map[string]any{"findings": list, "mode": p.sanitize.Mode, "agent": r.Agent, "files": strings.Join(r.ChangedFiles, "\n")},
		Reasoning: sanitize.Summary(found), Caller: p.caller, Fingerprints: p.fingerprints,
	}
	if len(r.Actions) > 0 {
		a := r.Actions[0]
		entry.ID, entry.Session, entry.Type, entry.CWD, entry.ActionHash = a.ID, a.Session, a.Type, a.CWD, a.Hash
	}
	return entry
}
