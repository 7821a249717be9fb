package cmd

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/gateway"
	"github.com/shieldcli/shield/pkg/verdict"
)

// An mcpToolCallJudge judges calls to an MCP server. It asks the user's service, so that many gateways share the
// model of that service. If the service does not decide, this process judges.
type mcpToolCallJudge struct {
	environment    *Environment
	inProcessJudge gateway.ActionJudge
}

// Evaluate returns the verdict on an action. A verdict of the service contains only what a gateway
// needs: decision, tier and reasoning.
func (j mcpToolCallJudge) Evaluate(ctx context.Context, a *action.Action) verdict.Verdict {
	if line, ok := j.environment.askServiceForCommandOutput(a.Raw); ok {
		if v, err := parseServiceVerdict(line); err == nil {
			return v
		}
	}
	return j.inProcessJudge.Evaluate(ctx, a)
}

// A judgeWithAgentFacingReasoning judges calls to a server, with the text for the agent as the reasoning.
type judgeWithAgentFacingReasoning struct{ gateway.ActionJudge }

func (j judgeWithAgentFacingReasoning) Evaluate(ctx context.Context, a *action.Action) verdict.Verdict {
	v := j.ActionJudge.Evaluate(ctx, a)
	return withAgentFacingReasoning(&v)
}

// withAgentFacingReasoning returns the verdict with its reasoning replaced by the text for the agent. The
// reasoning of an ALLOW is unchanged.
func withAgentFacingReasoning(v *verdict.Verdict) verdict.Verdict {
	if v.Decision != verdict.Allow {
		v.Reasoning = v.TextForAgent()
	}
	return *v
}

// parseServiceVerdict parses the line of a service into the fields that callers need.
func parseServiceVerdict(line []byte) (v verdict.Verdict, err error) {
	var said struct {
		ID        string           `json:"id"`
		Line      int              `json:"line"`
		Decision  verdict.Decision `json:"decision"`
		Tier      int              `json:"tier"`
		Rule      string           `json:"rule"`
		Reasoning string           `json:"reasoning"`
		Action    jsontext.Value   `json:"action"`
	}
	if err = json.Unmarshal(line, &said); err == nil && said.Decision == verdict.NoDecision {
		err = errUndecided
	}
	return verdict.Verdict{
		ActionID: said.ID, Line: said.Line, Decision: said.Decision, Tier: said.Tier, Rule: said.Rule, Reasoning: said.Reasoning, Action: said.Action,
	}, err
}

// judgeToolCallForServiceClient judges the action of another process, a gateway to a server.
func judgeToolCallForServiceClient(c *cli.Context, w *Environment, server gateway.Server) error {
	set, p, err := loadSettingsAndMCPPipeline(c, w)
	if err != nil {
		return err
	}
	p = p.WithUnknownToolLookup(gatewayToolDescriber(stateDir(&set.Settings, w), server.Name, c.Args().Slice()))
	a, err := action.Parse(w.requestFromServiceClient.input)
	if err != nil {
		return err
	}
	v, err := w.evaluateAction(c.Context, p.ForMCPServer(server.Name), a)
	if err != nil {
		return err
	}
	v = withAgentFacingReasoning(&v)
	return verdict.NewWriter(w.Out).Write(&v)
}
