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

// Returned is what a tool has returned.
type Returned struct {
	Actions []*action.Action // what the tool was called for; none for a tool that is the host's own
	Result  any              // a text, or a JSON value as package json decodes it; nil if it is not known
	Files   []string         // that the tool changed, if the host says so
	Heard   bool             // nothing shows that the host itself says so: only what makes judgement stricter is believed
	Agent   string           // the sub-agent that called the tool; "" for the session's own
}

// Examined is what was found in a result, and what of it the agent is to read.
type Examined struct {
	sanitize.Applied
	Findings []sanitize.Finding
}

// Returned examines what a tool has returned, as the settings say, logs what is
// found, and adds to the session what came in. With an error the result must be taken
// for one that was not examined.
func (p *Pipeline) Returned(ctx context.Context, r Returned) (e Examined, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("a tool result was not scanned: panic: %.200q", fmt.Sprint(x))
		}
	}()
	e.Result = r.Result
	p.noteFilesAfterRun(ctx, r.Actions)
	if p.examines(r.Actions) {
		kind := ""
		if len(r.Actions) > 0 {
			kind = r.Actions[0].Type
		}
		report := p.Examine(ctx, kind, r.Result)
		e.Findings, e.Applied = report.Findings, report.Apply(sanitize.Mode(p.sanitize.Mode))
	}
	if err := p.Ran(ctx, r, slices.ContainsFunc(e.Findings, func(f sanitize.Finding) bool { return Talks(f.Kind) })); err != nil {
		return Examined{}, err
	}
	if err := p.logFound(ctx, r, e.Findings); err != nil {
		return Examined{}, err
	}
	return e, nil
}

// logFound logs what was found in a result.
func (p *Pipeline) logFound(ctx context.Context, r Returned, found []sanitize.Finding) error {
	if len(found) == 0 || p.log == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRecord)
	defer cancel()
	if err := p.log.Submit(p.found(r, found)).Wait(ctx); err != nil {
		return fmt.Errorf("findings in a tool result could not be logged: %w", err)
	}
	return nil
}

// examines reports whether the settings want a result examined: by themselves those
// that may come from somewhere else and, where people are asked in a chat, all.
func (p *Pipeline) examines(actions []*action.Action) bool {
	switch p.sanitize.Enabled {
	case config.On:
		return true
	case config.Off:
		return false
	}
	return p.chats || slices.ContainsFunc(actions, p.foreign)
}

// localReadTypes are the types of actions that return nothing but what is on this machine.
var localReadTypes = []string{
	"read_file", "write_file", "delete_file", "copy_file", "move_file", "list_directory", "create_directory", "delete_directory",
	"copy_directory", "move_directory", "search_files", "memory_write", "memory_search", "memory_delete",
}

// remoteTextKinds are the effects through which text from somewhere else may come back.
var remoteTextKinds = []effect.Kind{effect.HTTPRequest, effect.Connect, effect.SendMessage, effect.ChangeRemote, effect.SendData, effect.RunDownload, effect.RemoteShell}

// foreign reports whether what an action returns may come from the web, from mail or
// from a tool server. A tool that shield does not know is one of a server.
func (p *Pipeline) foreign(a *action.Action) bool {
	switch {
	case slices.Contains(localReadTypes, a.Type) || strings.HasPrefix(a.Type, "git_"):
		return false
	case a.Type != "execute_command":
		return true
	}
	return slices.ContainsFunc(p.analyzer.Case(a).Effects, func(e effect.Effect) bool {
		return slices.Contains(remoteTextKinds, e.Word()) || e.Kind == effect.Execute && e.Class == effect.Network
	})
}

// found is the entry in the log of what was found in a result.
func (p *Pipeline) found(r Returned, found []sanitize.Finding) audit.Entry {
	list := make([]any, len(found))
	for i, f := range found {
		one := map[string]any{"kind": string(f.Kind), "rule": f.Rule, "where": f.Where, "what": f.What, "severity": f.Severity}
		if f.Source != "" {
			one["source"] = f.Source
		}
		list[i] = one
	}
	entry := audit.Entry{
		Kind: audit.KindResult, Payload: map[string]any{"findings": list, "mode": p.sanitize.Mode, "agent": r.Agent, "files": strings.Join(r.Files, "\n")},
		Reasoning: sanitize.Summary(found), Caller: p.caller, Fingerprints: p.prints,
	}
	if len(r.Actions) > 0 {
		a := r.Actions[0]
		entry.ID, entry.Session, entry.Type, entry.CWD, entry.ActionHash = a.ID, a.Session, a.Type, a.CWD, a.Hash
	}
	return entry
}
