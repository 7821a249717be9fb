package shield

import (
	"context"
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/verdict"
)

// WithUnknownToolLookup returns a pipeline that shares everything with p, but calls lookUpTool to
// identify the unknown tool of an action. Close p, not the returned pipeline.
func (p *Pipeline) WithUnknownToolLookup(lookUpTool func(*action.Action) approve.UnknownTool) *Pipeline {
	own := *p
	own.unknownToolLookup = lookUpTool
	return &own
}

// lookUpUnknownTool returns what is known of the unknown tool of a case, and the key to which an
// answer about its class is bound; "" if neither tool nor session is known. outlivesSession is true
// if the key identifies the tool, and false if it identifies only the session.
func (p *Pipeline) lookUpUnknownTool(c *analysis.ActionCase) (t approve.UnknownTool, classAnswerKey string, outlivesSession bool) {
	if p.unknownToolLookup != nil {
		t = p.unknownToolLookup(c.Action)
	}
	if t.IdentityHash != "" {
		return t, fmt.Sprintf("%q", []string{p.installationIDForApprovalKeys, p.caller.User, "tool", c.Action.Type, t.IdentityHash}), true
	}
	if within := p.advanceApprovalScope(c); within != "" {
		return t, fmt.Sprintf("%q", []string{within, "tool", c.Action.Type}), false
	}
	return t, "", false
}

// assignToolClassToUnknownTool gives the unknown tool of a case the class that a person chose, or else the one that shield
// ships.
func (p *Pipeline) assignToolClassToUnknownTool(c *analysis.ActionCase) {
	if p.personDecisionStore == nil || !c.CallsUnknownTool() {
		return
	}
	t, binding, _ := p.lookUpUnknownTool(c)
	class := t.ShieldShippedToolClass
	if binding != "" {
		switch said, ok, err := p.personDecisionStore.FindToolClass(context.Background(), binding); {
		case err != nil:
			return // when in doubt, ask
		case ok:
			class = said.Class
		}
	}
	c.ApplyToolClass(class, t.Server, t.RemoteHost)
}

// answerChannelToolClass is the Channel of a verdict that blocks a tool because a person gave it the
// class "never".
const answerChannelToolClass = "tool"

// blockForbiddenTool returns the BLOCK for a tool that a person has forbidden.
func (p *Pipeline) blockForbiddenTool(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, bool) {
	if p.personDecisionStore == nil || c.Action == nil || !c.CallsUnknownTool() {
		return verdict.Verdict{}, false
	}
	_, binding, _ := p.lookUpUnknownTool(c)
	if binding == "" {
		return verdict.Verdict{}, false
	}
	said, ok, err := p.personDecisionStore.FindToolClass(ctx, binding)
	if err != nil || !ok || said.Class != analysis.ToolClassForbidden {
		return verdict.Verdict{}, false
	}
	v := verdict.Finding{
		RequiredAuthority: verdict.AuthorityNoneSuffices, Confidence: 1,
		Reasoning: said.By + " forbade this tool; use another tool, or ask the user to change it: shield tools",
	}.Verdict(TierApprove)
	v.AnswerChannel, v.AnsweredBy = answerChannelToolClass, said.By
	return v, true
}

// prepareToolClassQuestion describes the tool that a person is asked to classify, and returns the function that saves
// the answer; nil if the action uses no unknown tool, or the answer could not be saved.
func (p *Pipeline) prepareToolClassQuestion(c *analysis.ActionCase) (description string, saveAnswer func(ctx context.Context, class analysis.ToolClass, by string) error) {
	p = p.pipelineJudgingCase(c)
	if p.personDecisionStore == nil || !c.CallsUnknownTool() {
		return "", nil
	}
	t, binding, lasts := p.lookUpUnknownTool(c)
	if binding == "" {
		return "", nil
	}
	said := p.newPendingToolClassAnswer(c, &t, lasts)
	return toolDescription(c.Action.Type, &t, lasts), func(ctx context.Context, class analysis.ToolClass, by string) error {
		said.Class, said.By = class, by
		return p.personDecisionStore.SetToolClass(ctx, binding, said)
	}
}

// newPendingToolClassAnswer returns the record of a person's answer about a tool. The caller must set
// Class and By, which are still empty.
func (p *Pipeline) newPendingToolClassAnswer(c *analysis.ActionCase, t *approve.UnknownTool, classOutlivesSession bool) approve.ToolClassAnswer {
	said := approve.ToolClassAnswer{Tool: c.Action.Type, Server: p.redactor.RedactText(t.Server)}
	if !classOutlivesSession {
		said.Session = c.Action.Session
		if said.Session == "" {
			said.Session = "this one"
		}
	}
	return said
}

// toolDescription describes a tool for a person.
func toolDescription(name string, t *approve.UnknownTool, classOutlivesSession bool) string {
	text := name
	if t.Server != "" {
		text += ", of the MCP server " + t.Server
	}
	if t.RemoteHost != "" {
		text += "\nthe arguments are sent to " + t.RemoteHost
	}
	if t.Description != "" {
		text += "\ndescription by the server: " + t.Description
	} else {
		text += "\ndescription by the server: none"
	}
	if !classOutlivesSession {
		text += "\nyour settings do not define the server, so your answer counts for this session only"
	}
	return text
}

// pipelineJudgingCase returns the pipeline that judges a case: p, or a pipeline derived from p with its
// own host and tools, such as that of a connection.
func (p *Pipeline) pipelineJudgingCase(c *analysis.ActionCase) *Pipeline {
	if r, ok := c.SessionState.(*sessionMemory); ok && r != nil {
		return r.pipeline
	}
	return p
}
