package shield

import (
	"strings"

	"github.com/shieldcli/shield/pkg/verdict"
)

// withReason adds to the reasoning of a BLOCK of Tier 2 or 3 that neither a model
// nor a person has decided why it had been asked: the agent needs the rule and
// its advice, whichever tier ended it, and a person needs to know what to change
// to get an answer. What a model or a person has decided stays as it is. first
// is the first tier that was not only looked at for what it blocks.
func (p *Pipeline) withReason(v verdict.Verdict, trail []verdict.Step, first int) verdict.Verdict {
	if v.Decision != verdict.Block || v.Tier < TierEvaluate || v.Error == "" {
		return v
	}
	joint, missing := "; asked because: ", ""
	switch {
	case v.Error == "unavailable" && v.Tier == TierEvaluate && p.unreviewed != "":
		v.Reasoning = p.unreviewed
		joint, missing = ": ", "; for an answer, configure a model (evaluator.provider) or a person"
	case v.Error == "unavailable": // it says what is wrong with the evaluator
		missing = "; no person can be asked either"
	}
	if asked := asked(trail, first, v.Tier); asked != "" {
		v.Reasoning += joint + asked
	}
	if missing != "" && p.noPerson != "" {
		missing += " (" + p.noPerson + ")"
	}
	v.Reasoning += missing
	return v
}

// What a denial begins with where no model is configured and no person can be
// asked.
const (
	neither = "needs review, and neither a model nor a person is configured"
	unasked = "needs review, but no model is configured and no person can be asked"
)

// adviceMark stands between what a rule says and what to do instead.
const adviceMark = "; instead: "

// asked returns what was said by the last step below a tier that escalated by a
// rule, or by the last one that escalated, and what the evaluator said if it
// could not decide.
func asked(trail []verdict.Step, first, below int) string {
	var by *verdict.Step
	var said []string
	for i := range trail {
		s := &trail[i]
		// A tier that was only looked at for what it blocks has not asked.
		if s.Decision != verdict.Escalate || s.Tier >= below || s.Tier < first && s.Rule == "" {
			continue
		}
		switch {
		case s.Tier == TierEvaluate && s.Error == "":
			said = append(said, "the evaluator: "+s.Reasoning)
		case s.Tier < TierEvaluate && (by == nil || s.Rule != "" || by.Rule == ""):
			by = s
		}
	}
	if by != nil {
		text := by.Reasoning
		if by.Rule != "" && !strings.Contains(text, by.Rule) {
			reason, advice, advised := strings.Cut(text, adviceMark)
			text = reason + " [" + by.Rule + "]"
			if advised {
				text += adviceMark + advice
			}
		}
		said = append([]string{text}, said...)
	}
	return strings.Join(said, "; ")
}
