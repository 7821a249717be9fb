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

// A callJudge has the user's service judge what a server is asked, or else judges it
// itself: of many gateways one process holds the model.
type callJudge struct {
	w    *World
	self gateway.Judge
}

// Evaluate returns the verdict on an action. Of one that the service has given it holds
// what a gateway acts upon: decision, tier and reasoning.
func (j callJudge) Evaluate(ctx context.Context, a *action.Action) verdict.Verdict {
	if line, ok := j.w.askService(a.Raw); ok {
		if v, err := servedVerdict(line); err == nil {
			return v
		}
	}
	return j.self.Evaluate(ctx, a)
}

// A toldJudge judges what a server is asked, and says about it what an agent is told.
type toldJudge struct{ gateway.Judge }

func (j toldJudge) Evaluate(ctx context.Context, a *action.Action) verdict.Verdict {
	v := j.Judge.Evaluate(ctx, a)
	return forAgent(&v)
}

// forAgent returns a verdict whose reasoning is what an agent is told about it.
func forAgent(v *verdict.Verdict) verdict.Verdict {
	if v.Decision != verdict.Allow {
		v.Reasoning = v.ForAgent()
	}
	return *v
}

// servedVerdict reads from a line of a service what those that ask act upon.
func servedVerdict(line []byte) (v verdict.Verdict, err error) {
	var said struct {
		ID        string           `json:"id"`
		Line      int              `json:"line"`
		Decision  verdict.Decision `json:"decision"`
		Tier      int              `json:"tier"`
		Rule      string           `json:"rule"`
		Reasoning string           `json:"reasoning"`
		Action    jsontext.Value   `json:"action"`
	}
	if err = json.Unmarshal(line, &said); err == nil && said.Decision == verdict.None {
		err = errUndecided
	}
	return verdict.Verdict{
		ID: said.ID, Line: said.Line, Decision: said.Decision, Tier: said.Tier, Rule: said.Rule, Reasoning: said.Reasoning, Action: said.Action,
	}, err
}

// answerCall judges the action of a gateway to a server, which is another process.
func answerCall(c *cli.Context, w *World, server gateway.Server) error {
	set, p, err := serverPipeline(c, w)
	if err != nil {
		return err
	}
	p = p.WithTools(gatewayTools(stateDir(&set.Settings, w), server.Name, c.Args().Slice()))
	a, err := action.Parse(w.served.input)
	if err != nil {
		return err
	}
	v, err := w.evaluate(c.Context, p.ForServer(server.Name), a)
	if err != nil {
		return err
	}
	v = forAgent(&v)
	return verdict.NewWriter(w.Out).Write(&v)
}
