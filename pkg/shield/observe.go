package shield

import (
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/telemetry"
)

// fillTelemetry fills the telemetry of an outcome: time, duration and the steps of the tiers, but nothing of the
// action except its type. If latencies are measured for telemetry only, it removes them from the trail.
func (p *Pipeline) fillTelemetry(o *VerdictWithLogData, a *action.Action, start time.Time) {
	if p.observe == nil {
		return
	}
	o.telemetryAction = telemetry.Action{Start: start, Latency: o.latency}
	if a != nil {
		o.telemetryAction.Type = a.Type
	}
	for i := range o.tierSteps {
		s := &o.tierSteps[i]
		o.telemetryAction.Steps = append(o.telemetryAction.Steps, telemetry.Step{
			JudgeName: s.JudgeName, Tier: s.Tier, Decision: s.Decision.String(), Rule: s.Rule, ErrorCode: s.ErrorCode,
			Latency: time.Duration(s.LatencyMicroseconds) * time.Microsecond,
		})
	}
	if p.hidesLatencies {
		for i := range o.tierSteps {
			o.tierSteps[i].LatencyMicroseconds = 0
		}
		for i := range o.Verdict.Trail {
			o.Verdict.Trail[i].LatencyMicroseconds = 0
		}
	}
}

// reportTelemetry passes an outcome that was logged to Config.Observe.
func (p *Pipeline) reportTelemetry(o *VerdictWithLogData) {
	if p.observe == nil {
		return
	}
	v := &o.Verdict
	if o.telemetryAction.Start.IsZero() { // the record was not an action
		o.telemetryAction.Start = p.now()
	}
	o.telemetryAction.Decision, o.telemetryAction.Tier, o.telemetryAction.Rule, o.telemetryAction.ErrorCode = v.Decision.String(), v.Tier, v.Rule, v.ErrorCode
	p.observe(o.telemetryAction)
}
