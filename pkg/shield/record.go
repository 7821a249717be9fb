package shield

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/verdict"
)

// maxAuditEntryWriteWait is the maximum time to wait until an audit log entry is on the disk. It is shorter than
// the time that a host waits after its hook's deadline, because a host that gives up runs the tool. The locks
// that an entry needs may wait longer; the error then names the lock that is held, see explainLockTimeout.
const maxAuditEntryWriteWait = 5 * time.Second

// queueLogEntry queues the log entry of a verdict for the audit log without waiting, in the order
// of the calls. Entries that are written together share one fsync. The caller must then call
// awaitLogEntry for each verdict.
func (p *Pipeline) queueLogEntry(o *VerdictWithLogData) {
	if o.pendingLogEntry != nil {
		p.log.Enqueue(o.pendingLogEntry)
	}
}

// buildLogEntry builds the log entry of a complete verdict; a is nil if there was no action.
func (p *Pipeline) buildLogEntry(o *VerdictWithLogData, a *action.Action) {
	if p.log == nil {
		return
	}
	v := &o.Verdict
	e := audit.Entry{
		Time: v.JudgedAt, ActionID: v.ActionID, ActionInputLineNumber: v.Line,
		Decision: v.Decision, Tier: v.Tier, Confidence: v.Confidence, Rule: v.Rule, Reasoning: v.Reasoning,
		IsAllowedDespiteFailure: v.IsAllowedDespiteFailure, Error: v.ErrorCode, ActionHash: v.ActionHash,
		AnswerChannel: v.AnswerChannel, AnsweredBy: v.AnsweredBy, VerdictLatencyMicroseconds: o.latency.Microseconds(), Caller: p.caller, Fingerprints: p.fingerprints,
	}
	if p.isHookStatusTestAction(a) && v.Decision == verdict.Block {
		e.Kind = audit.EntryKindHookTest
	}
	e.Fingerprints.Prompt = v.EvaluatorPromptHash
	e.Reasoning, e.RefusalRef = cmp.Or(o.reasoningForLog, v.Reasoning), v.RefusalRef
	if a != nil {
		e.Session, e.ActionType, e.CWD, e.Payload = a.Session, a.Type, a.CWD, a.Payload
		if o.redactedPayload != nil {
			e.Payload, e.HasRedactedPayloadAndReasonings, o.redactedPayload = o.redactedPayload, true, nil
		}
	}
	if v.Decision != verdict.Allow || v.IsAllowedDespiteFailure || v.Tier == TierApprove {
		e.Trail = o.tierSteps
	}
	o.pendingLogEntry = p.log.EncodeWithoutQueueing(e)
}

// probeSession is the session of the test actions that 'shield hook status' sends through a host's
// hook; see the samples of package host.
const probeSession = "shield-status"

// isHookStatusTestAction reports whether an action is a test action of 'shield hook status', by the session that the
// host reports.
func (p *Pipeline) isHookStatusTestAction(a *action.Action) bool {
	return p.agentHostName != "" && a != nil && a.Session == probeSession
}

// ForMCPServer returns a pipeline that shares everything with p and names an MCP server in its log
// entries. Only p is to be closed.
func (p *Pipeline) ForMCPServer(serverName string) *Pipeline {
	own := *p
	own.caller.MCPServerName = serverName
	return &own
}

// WithSeparateDenialCount returns a pipeline that shares everything with p and counts the denials of one
// connection of a session apart from other connections; "" is the session itself. Only p is to be
// closed.
func (p *Pipeline) WithSeparateDenialCount(connectionName string) *Pipeline {
	own := *p
	own.connectionWithOwnDenialCount = connectionName
	return &own
}

// LogAndNotify logs an event that is not a verdict, and notifies the user. entryKind is a kind of
// [audit.Entry]. It waits until the entry is in the log, since the process may exit next.
func (p *Pipeline) LogAndNotify(entryKind, text string) {
	if p.log != nil {
		ctx, cancel := context.WithTimeout(context.Background(), maxAuditEntryWriteWait)
		defer cancel()
		ticket := p.log.EncodeAndQueue(audit.Entry{Kind: entryKind, Tier: TierEvaluate, Reasoning: text, Caller: p.caller, Fingerprints: p.fingerprints})
		if err := ticket.Wait(ctx); err != nil {
			text += "; this could not be logged: " + p.explainLockTimeout(err).Error()
		}
	}
	if p.notifyUser != nil {
		p.notifyUser(text)
	}
}

// isLogged reports whether awaitLogEntry would return at once for a verdict: the log has finished
// writing its entry, or the verdict has no entry.
func (o *VerdictWithLogData) isLogged() bool {
	return o.pendingLogEntry == nil || o.pendingLogEntry.Done()
}

// awaitLogEntry waits until the log entry of a verdict is in the audit log. If the entry cannot be
// written, the verdict becomes a BLOCK with error "audit". An interrupt does not end the wait, so
// that each judged action is logged.
func (p *Pipeline) awaitLogEntry(ctx context.Context, o *VerdictWithLogData) {
	defer p.reportTelemetry(o)
	if o.pendingLogEntry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxAuditEntryWriteWait)
	defer cancel()
	if err := o.pendingLogEntry.Wait(ctx); err != nil {
		p.replaceVerdict(o, failureVerdict(o.Verdict.Tier, "audit", "shield could not log the verdict, so the action is blocked; tell the user: "+p.explainLockTimeout(err).Error()))
	}
}

// explainLockTimeout returns an error that names the lock that delayed a log entry, instead of the timeout
// error.
func (p *Pipeline) explainLockTimeout(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*flock.HeldError)) {
		return err
	}
	for _, path := range p.stateAndAuditLockFilePaths {
		if held := flock.CheckLockNotHeld(path, maxAuditEntryWriteWait); held != nil {
			return held
		}
	}
	return err
}

// replaceVerdict replaces a finished verdict by the BLOCK for a failure.
func (p *Pipeline) replaceVerdict(o *VerdictWithLogData, v verdict.Verdict) {
	was := &o.Verdict
	v.Line, v.ActionID, v.ActionHash, v.Action = was.Line, was.ActionID, was.ActionHash, was.Action
	o.Verdict = v
	p.sealVerdictWithMAC(o, nil)
}
