package shield

import (
	"context"
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/verdict"
)

// WithTools returns a pipeline that shares everything with p, and identifies the unknown tool of an
// action by which. Only p is to be closed.
func (p *Pipeline) WithTools(which func(*action.Action) approve.Tool) *Pipeline {
	own := *p
	own.toolLookup = which
	return &own
}

// unknownTool returns what is known of the unknown tool of a case, and the key to which an answer
// about it is bound. lasts is true if the key identifies the tool, and false if it identifies only
// the session. binding is "" if neither is known.
func (p *Pipeline) unknownTool(c *analysis.Case) (t approve.Tool, binding string, lasts bool) {
	if p.toolLookup != nil {
		t = p.toolLookup(c.Action)
	}
	if t.Identity != "" {
		return t, fmt.Sprintf("%q", []string{p.approvalInstallationID, p.caller.User, "tool", c.Action.Type, t.Identity}), true
	}
	if within := p.kindApprovalScope(c); within != "" {
		return t, fmt.Sprintf("%q", []string{within, "tool", c.Action.Type}), false
	}
	return t, "", false
}

// classifyTool gives the unknown tool of a case the class that a person chose, or else the one that shield
// ships.
func (p *Pipeline) classifyTool(c *analysis.Case) {
	if p.kindApprovals == nil || !c.CallsUnknownTool() {
		return
	}
	t, binding, _ := p.unknownTool(c)
	class := t.ShippedClass
	if binding != "" {
		switch said, ok, err := p.kindApprovals.FindToolClass(context.Background(), binding); {
		case err != nil:
			return // when in doubt, ask
		case ok:
			class = said.Class
		}
	}
	c.Classify(class, t.Server, t.RemoteHost)
}

// forbiddenToolChannel is the Channel of a verdict that blocks a tool because a person gave it the
// class "never".
const forbiddenToolChannel = "tool"

// blockForbiddenTool returns the BLOCK for a tool that a person has forbidden.
func (p *Pipeline) blockForbiddenTool(ctx context.Context, c *analysis.Case) (verdict.Verdict, bool) {
	if p.kindApprovals == nil || c.Action == nil || !c.CallsUnknownTool() {
		return verdict.Verdict{}, false
	}
	_, binding, _ := p.unknownTool(c)
	if binding == "" {
		return verdict.Verdict{}, false
	}
	said, ok, err := p.kindApprovals.FindToolClass(ctx, binding)
	if err != nil || !ok || said.Class != analysis.ClassNever {
		return verdict.Verdict{}, false
	}
	v := verdict.Finding{
		Authority: verdict.NeverAllowed, Confidence: 1,
		Reasoning: said.By + " decided that this tool is never used; use another tool, or ask the user to change it: shield tools",
	}.Verdict(TierApprove)
	v.Channel, v.By = forbiddenToolChannel, said.By
	return v, true
}

// offerToolClassification describes the tool that a person is asked to classify, and returns the function that saves
// the answer; nil if the action uses no unknown tool, or the answer could not be saved.
func (p *Pipeline) offerToolClassification(c *analysis.Case) (about string, keep func(ctx context.Context, class analysis.ToolClass, by string) error) {
	p = p.judgingPipeline(c)
	if p.kindApprovals == nil || !c.CallsUnknownTool() {
		return "", nil
	}
	t, binding, lasts := p.unknownTool(c)
	if binding == "" {
		return "", nil
	}
	said := p.newToolClass(c, &t, lasts)
	return toolDescription(c.Action.Type, &t, lasts), func(ctx context.Context, class analysis.ToolClass, by string) error {
		said.Class, said.By = class, by
		return p.kindApprovals.SetTool(ctx, binding, said)
	}
}

// newToolClass returns the record of an answer about a tool, without the answer.
func (p *Pipeline) newToolClass(c *analysis.Case, t *approve.Tool, lasts bool) approve.ToolClass {
	said := approve.ToolClass{Tool: c.Action.Type, Server: p.redactor.String(t.Server)}
	if !lasts {
		said.Session = c.Action.Session
		if said.Session == "" {
			said.Session = "this one"
		}
	}
	return said
}

// toolDescription describes a tool for a person.
func toolDescription(name string, t *approve.Tool, lasts bool) string {
	text := name
	if t.Server != "" {
		text += ", of the server " + t.Server
	}
	if t.RemoteHost != "" {
		text += ", which sends the arguments to " + t.RemoteHost
	}
	if t.Description != "" {
		text += "\ndescription by the server: " + t.Description
	} else {
		text += "\ndescription by the server: none"
	}
	if !lasts {
		text += "\nyour settings do not define the server, so your answer counts for this session only"
	}
	return text
}

// judgingPipeline returns the pipeline that judges a case: p, or a pipeline derived from p with its
// own host and tools, such as that of a connection.
func (p *Pipeline) judgingPipeline(c *analysis.Case) *Pipeline {
	if r, ok := c.Memory.(*sessionMemory); ok && r != nil {
		return r.pipeline
	}
	return p
}
