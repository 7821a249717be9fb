package shield

import (
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/telemetry"
)

// fillTelemetry fills the telemetry of a verdict: time, duration, the steps of the tiers, and of
// the action only its type. If latencies are measured only for telemetry, it removes them from the
// verdict's trail.
func (p *Pipeline) fillTelemetry(o *VerdictWithLogData, a *action.Action, start time.Time) {
	if p.observeActionTelemetry == nil {
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
	if p.omitsLatenciesFromTierSteps {
		for i := range o.tierSteps {
			o.tierSteps[i].LatencyMicroseconds = 0
		}
		for i := range o.Verdict.Trail {
			o.Verdict.Trail[i].LatencyMicroseconds = 0
		}
	}
}

// reportTelemetry passes the telemetry of a logged verdict to Config.Observe.
func (p *Pipeline) reportTelemetry(o *VerdictWithLogData) {
	if p.observeActionTelemetry == nil {
		return
	}
	v := &o.Verdict
	if o.telemetryAction.Start.IsZero() { // the record was not an action
		o.telemetryAction.Start = p.now()
	}
	o.telemetryAction.Decision, o.telemetryAction.Tier, o.telemetryAction.Rule, o.telemetryAction.ErrorCode = v.Decision.String(), v.Tier, v.Rule, v.ErrorCode
	p.observeActionTelemetry(o.telemetryAction)
}
