package shield

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/sanitize"
	"github.com/shieldcli/shield/pkg/session"
)

// MayBeInjection reports whether findings of a kind are, or may be, prompt injection: text that addresses its
// reader.
func MayBeInjection(kind sanitize.FindingKind) bool {
	switch kind {
	case sanitize.FindingHiddenMarkup, sanitize.FindingEncodedInjection, sanitize.FindingPromptInjection, sanitize.FindingExfiltration, sanitize.FindingTagCharacters, sanitize.FindingUnexamined:
		return true
	}
	return false
}

// RecordToolResult adds to the session of some actions their effects and what came back;
// mayContainInjection says that the result may contain prompt injection. It is for results that the
// caller has examined; [Pipeline.ExamineAndRecordToolResult] does both.
func (p *Pipeline) RecordToolResult(ctx context.Context, r ToolResult, mayContainInjection bool) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("internal error: a tool result was not recorded, panic: %.200q; please report this", fmt.Sprint(x))
		}
	}()
	if len(r.Actions) == 0 {
		return nil
	}
	m := p.memoryFor(ctx, &judgeRequest{Action: r.Actions[0]})
	if m == nil {
		return nil
	}
	did := session.CompletedCall{ChangedFiles: r.ChangedFiles, ResultTexts: resultTexts(r.ReturnedValue), UntrustedResult: mayContainInjection, IsAgentHostUnverified: r.IsAgentHostUnverified}
	for _, a := range r.Actions {
		did.Cases = append(did.Cases, p.analyze(a, m))
	}
	if err := p.sessionStoreForJudging.AddCompleted(context.WithoutCancel(ctx), m.loadSession(), did); err != nil {
		return fmt.Errorf("a tool result could not be recorded: %w", err)
	}
	if p.agentHostName == "" || m.key.ID == "" {
		return nil
	}
	for _, c := range did.Cases {
		if r.IsAgentHostUnverified {
			break
		}
		if err := p.recordAgentInstructionFileEdit(ctx, c, m); err != nil {
			return fmt.Errorf("a changed instruction file could not be recorded: %w", err)
		}
	}
	from := slices.IndexFunc(did.Cases, func(c *analysis.ActionCase) bool {
		return p.mayReturnExternalText(c.Action) || readsDownloadedOrClonedFile(c)
	})
	if from < 0 {
		if mayContainInjection { // suspected prompt injection in a file of the project itself
			return p.sessionStoreForJudging.Add(context.WithoutCancel(ctx), m.loadSession(), &session.RecordDelta{HasNewUntrustedText: true})
		}
		return nil
	}
	if err := p.sessionStoreForJudging.StoreUntrustedNames(context.WithoutCancel(ctx), m.loadSession(), p.untrustedTextSource(did.Cases[from]), did.ResultTexts); err != nil {
		return fmt.Errorf("the names in a tool result could not be recorded: %w", err)
	}
	return nil
}

// untrustedTextSource describes for people which action a text came from.
func (p *Pipeline) untrustedTextSource(c *analysis.ActionCase) (h session.UntrustedText) {
	h.OriginDescription = p.redactor.RedactText(approve.ActionPartCausingEffect(c, nil))
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.HTTPRequest && e.Host != "" && h.SourceWebHost == "" {
			h.SourceWebHost = e.Host
		}
	}
	return h
}

// readsDownloadedOrClonedFile reports whether an action reads a file that was downloaded or cloned.
func readsDownloadedOrClonedFile(c *analysis.ActionCase) bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return e.Kind == effect.ReadFile && c.SessionState != nil && len(c.SessionState.FileOriginLabels(e.Path)) > 0
	})
}

// RecordDenialByHostOrUser records in the session that an action was denied by the host or the user, not by shield, and
// did not run.
func (p *Pipeline) RecordDenialByHostOrUser(ctx context.Context, a *action.Action) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("internal error: shield did not record a denial in the session; please report this: %.200q", fmt.Sprint(x))
		}
	}()
	m := p.memoryFor(ctx, &judgeRequest{Action: a})
	if m == nil || p.agentHostName == "" {
		return nil
	}
	c := p.analyze(a, m)
	if _, err := p.tiers[TierPolicy].Judge(ctx, c); err != nil { // judged so that the case knows which rules match
		return err
	}
	return p.sessionStoreForJudging.Add(context.WithoutCancel(ctx), m.loadSession(), &session.RecordDelta{Denial: session.NewDenial(c, "")})
}

// Bounds of the texts of a result that are searched for credentials.
const (
	maxStringsPerToolResult = 1 << 16
	maxToolResultNesting    = 128
)

// splitIntoCredentialScanChunks splits a text into parts that are searched for credentials, at line ends where possible;
// otherwise parts overlap, so that no credential is cut.
func splitIntoCredentialScanChunks(text string) (chunks []string) {
	const size, overlap = redact.MaxScannedTextBytes / 2, 4 << 10
	for len(text) > size {
		end := strings.LastIndexByte(text[:size], '\n') + 1
		next := end
		if end < size/2 {
			end, next = size, size-overlap
		}
		chunks = append(chunks, text[:end])
		text = text[next:]
	}
	return append(chunks, text)
}

// resultTexts returns the texts of a result. A value whose name says that it is a credential has its name
// in front.
func resultTexts(result any) []string {
	var out []string
	left := sanitize.MaxTotalTextBytes
	var walk func(name string, v any, depth int)
	walk = func(name string, v any, depth int) {
		if depth > maxToolResultNesting || len(out) == maxStringsPerToolResult {
			return
		}
		switch v := v.(type) {
		case string:
			if left -= len(v); v == "" || left < 0 {
				return
			}
			if redact.IsSecretName(name) && !strings.ContainsAny(v, " \t\r\n\"'") {
				v = name + "=" + v
			}
			out = append(out, splitIntoCredentialScanChunks(v)...)
		case []any:
			for _, e := range v {
				walk(name, e, depth+1)
			}
		case map[string]any:
			for _, k := range sorted.Keys(v) {
				walk(k, v[k], depth+1)
			}
		}
	}
	walk("", result, 0)
	return out
}
