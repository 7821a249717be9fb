package shield

import (
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/verdict"
)

// clean redacts secrets in what is said about an action: the reasons of the verdict and of its trail,
// which may quote the action. If a trace is wanted and there is none yet, it also adds redacted
// effects and views to the first step. Text that cannot be redacted is left out. The action itself,
// which the seal covers, stays as received.
//
// It returns the redacted payload for the log, if there is a log.
func (p *Pipeline) clean(v *verdict.Verdict, o *Outcome, c *analysis.Case, first bool) any {
	var payload any
	r := p.redactor
	if p.log != nil || p.trace || !sameForAll(v, c) {
		payload, r = r.Learn(c.Action.Payload, audit.MaxString)
	}
	v.Reasoning, o.forLog = r.String(v.Reasoning), r.String(o.forLog)
	for _, text := range []*string{&v.Told.What, &v.Told.Why, &v.Told.Instead, &v.Told.Cause} {
		*text = r.String(*text)
	}
	for i := range c.Trail {
		c.Trail[i].Reasoning = r.String(c.Trail[i].Reasoning)
	}
	if p.trace && first && len(c.Trail) > 0 {
		c.Trail[0].Effects, _ = c.EffectsJSON(r)
		c.Trail[0].Views, _ = c.ViewsJSON(r)
	}
	if c.Evidence != nil {
		for i := range c.Evidence.Uncovered {
			c.Evidence.Uncovered[i] = r.String(c.Evidence.Uncovered[i])
		}
		for i := range c.Evidence.Weighed {
			c.Evidence.Weighed[i].Reasoning = r.String(c.Evidence.Weighed[i].Reasoning)
		}
		for i := range c.Evidence.Doubts {
			c.Evidence.Doubts[i].Reason = r.String(c.Evidence.Doubts[i].Reason)
		}
	}
	return payload
}

// sameForAll reports whether a verdict's text cannot quote the action: that of an ALLOW, or of a
// question of Tier 0 that a later tier answers.
func sameForAll(v *verdict.Verdict, c *analysis.Case) bool {
	if v.Decision == verdict.Block || v.Decision == verdict.Escalate && v.Tier != TierPolicy || v.Told != (verdict.Told{}) {
		return false
	}
	return v.Fixed && !slices.ContainsFunc(c.Trail, func(s verdict.Step) bool { return !s.Fixed })
}
