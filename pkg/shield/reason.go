package shield

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/verdict"
)

// addReviewReason changes a BLOCK of Tier 2 or 3 that has an error code, because neither a model
// nor a person decided. It adds to the reasoning why an earlier tier asked for a review: the agent needs the
// rule and its advice, whichever tier gave the verdict. The error text of the failed tier comes first. All other
// verdicts are returned unchanged. firstDecidingTier is the first tier that could decide; lower tiers could only
// block.
//
// It also returns the reasoning for the log. If no model is configured, only the log says so and what to
// configure, because the agent cannot configure it; the agent gets only the reason for the review.
func (p *Pipeline) addReviewReason(v verdict.Verdict, trail []verdict.TierStep, firstDecidingTier int) (verdict.Verdict, string) {
	if v.Decision != verdict.Block || v.Tier < TierEvaluate || v.ErrorCode == "" {
		return v, v.Reasoning
	}
	logged, joint, missing := v.Reasoning, "; reason for the review: ", ""
	switch {
	case v.ErrorCode == "unavailable" && v.Tier == TierEvaluate && p.noReviewerDenialText != "":
		logged = p.noReviewerDenialText
		joint, missing = ": ", "; to get an answer, configure a model (evaluator.provider) or a channel to a person (approval.channels)"
	case v.ErrorCode == "unavailable": // the text says what is wrong with the evaluator
		missing = "; no person can be asked either"
	}
	text := escalationReasonText(trail, firstDecidingTier, v.Tier)
	if text != "" {
		logged += joint + text
	}
	if missing != "" {
		if why := p.cannotAskPersonReason(); why != "" {
			missing += " (" + why + ")"
		}
	}
	logged += missing
	if v.ErrorCode == "unavailable" && p.noReviewerDenialText != "" && text != "" { // the evaluator was not called
		v.Reasoning = text
	} else {
		v.Reasoning = logged
	}
	return v, logged
}

// Log texts for a denial without a model and without a person to ask.
const (
	noModelNoPersonDenialText  = "the action needs review, and neither a model nor a person is configured"
	noModelNoChannelDenialText = "the action needs review, but no model is configured and no person can be asked"
)

// adviceSeparator separates what a rule says from its advice.
const adviceSeparator = "; instead: "

// escalationReasonText returns the reason of the step that asked, and the evaluator's reason if it could not
// decide.
func escalationReasonText(trail []verdict.TierStep, firstTier, belowTier int) string {
	var said []string
	by := escalatingStep(trail, firstTier, belowTier)
	if found := evaluatorEscalationStep(trail, belowTier); found != nil && found.JudgeName != judgeNameByTier[TierEvaluate] {
		by = found // found is a question of an earlier tier that the user must answer instead of the evaluator
	}
	if by != nil {
		text := by.Reasoning
		if by.Rule != "" && !strings.Contains(text, by.Rule) {
			reason, advice, advised := strings.Cut(text, adviceSeparator)
			text = reason + " [" + by.Rule + "]"
			if advised {
				text += adviceSeparator + advice
			}
		}
		said = append(said, text)
	}
	for i := range trail {
		if s := &trail[i]; s.Decision == verdict.Escalate && s.Tier == TierEvaluate && s.Tier < belowTier && s.ErrorCode == "" && s.JudgeName == judgeNameByTier[TierEvaluate] {
			said = append(said, "the evaluator: "+s.Reasoning)
		}
	}
	return strings.Join(said, "; ")
}

// escalatingStep returns the step of Tier 0 or 1, below belowTier, because of which a higher tier was asked: the
// last ESCALATE with a rule, or else the last ESCALATE. Steps below firstTier need a rule, because their tier
// could only block. It returns nil if no step counts.
func escalatingStep(trail []verdict.TierStep, firstTier, belowTier int) (by *verdict.TierStep) {
	for i := range trail {
		s := &trail[i]
		// These tiers have not asked a person: a tier that would have allowed the action, and a tier below
		// firstTier without a rule, which judged only because it may block.
		if s.Decision != verdict.Escalate || s.AllowedPendingHigherTier || s.Tier >= min(belowTier, TierEvaluate) || s.Tier < firstTier && s.Rule == "" {
			continue
		}
		if by == nil || s.Rule != "" || by.Rule == "" {
			by = s
		}
	}
	return by
}

// evaluatorEscalationStep returns the step in which the evaluator itself found a reason to ask a person; nil if
// it did not. The person is asked about that reason, not about the rule because of which the evaluator
// was asked.
func evaluatorEscalationStep(trail []verdict.TierStep, belowTier int) (by *verdict.TierStep) {
	for i := range trail {
		if s := &trail[i]; s.Tier == TierEvaluate && s.Tier < belowTier && s.Decision == verdict.Escalate && s.ErrorCode == "" {
			by = s
		}
	}
	return by
}

// explainVerdict returns what agent and user are told about a verdict on a case. tierReasoning is
// the text of the tier that gave it.
func (p *Pipeline) explainVerdict(v *verdict.Verdict, c *analysis.ActionCase, firstTier int, tierReasoning string) verdict.Explanation {
	t := v.Explanation
	reasoning, source := v.Reasoning, judgeNameByTier[v.Tier]
	unanswered := v.Tier >= TierEvaluate && v.ErrorCode != ""
	by := escalatingStep(c.EarlierTierSteps, firstTier, v.Tier)
	if found := evaluatorEscalationStep(c.EarlierTierSteps, v.Tier); found != nil {
		by = found
	}
	if by == nil || !unanswered && v.Decision == verdict.Block {
		by = decidingStep(c.EarlierTierSteps, v)
	}
	if by != nil && (unanswered || v.Decision == verdict.Escalate || by.Decision == v.Decision) {
		reasoning, source, t.EscalatingRule = by.Reasoning, by.JudgeName, by.Rule
	}
	var kind, place string
	t.EffectAndHarm, t.AlternativeToAction, kind, place = parseTierReasoning(reasoning, source)
	t.ActionText = approve.ActionPartCausingEffect(c, decisiveEffect(c, kind, place))
	if said, object, _ := strings.Cut(t.EffectAndHarm, ": "); object != "" && strings.Contains(t.ActionText, object) {
		t.EffectAndHarm = said
	}
	switch v.ErrorCode {
	case "":
		if v.Decision == verdict.Block && v.Tier == TierApprove {
			t.EffectAndHarm, t.AlternativeToAction = v.Reasoning, ""
		}
	case "unavailable":
		if t.ShieldOwnProblemText = "no question could be asked: " + p.cannotAskPersonReason(); p.noReviewerDenialText == "" {
			t.ShieldOwnProblemText = tierReasoning + "; " + t.ShieldOwnProblemText
		}
	case "nobody":
		t.ShieldOwnProblemText = tierReasoning
	case "timeout":
		t.EffectAndHarm += "; the user did not answer in time"
	case "rate_limit", "budget":
		t.EffectAndHarm += "; no more reviews are possible now"
	case "stopped":
		t.ActionText, t.EffectAndHarm, t.AlternativeToAction = "", "this session is stopped, because too many of its actions were denied", "Ask the user to run: "+t.UserAllowCommand
	default:
		if by == nil || v.Tier < TierEvaluate {
			return failureExplanation(v)
		}
		t.AlternativeToAction, t.ShieldOwnProblemText = "Tell the user to run: shield doctor", v.Reasoning
	}
	return t
}

// failureExplanation returns what is told about a failure of shield, which only the user can fix.
func failureExplanation(v *verdict.Verdict) verdict.Explanation {
	return verdict.Explanation{EffectAndHarm: "shield could not judge this, so it is blocked", AlternativeToAction: "Tell the user to run: shield doctor", ShieldOwnProblemText: v.Reasoning}
}

// decidingStep returns the step of the trail that gave a verdict, nil if none did.
func decidingStep(trail []verdict.TierStep, v *verdict.Verdict) *verdict.TierStep {
	for i := len(trail) - 1; i >= 0; i-- {
		if s := &trail[i]; s.Tier == v.Tier && s.Decision == v.Decision && s.Rule == v.Rule {
			return s
		}
	}
	return nil
}

// parseTierReasoning splits a tier's text into the reason, the advice, and the kind and place of the effect
// that the policy rule matched.
func parseTierReasoning(reasoning, stepSource string) (reason, advice, effectKind, effectObject string) {
	text := reasoning
	if strings.HasPrefix(text, stepSource) {
		_, said, found := strings.Cut(text, ": ")
		if text = said; !found {
			text = "the policy does not allow this action; ask the user"
		}
	}
	if stepSource == "model" {
		text, _, _ = strings.Cut(text, "; ")
		return text + ", judged by its wording", "Use a simpler command", "", ""
	}
	if i := strings.LastIndex(text, " ("); i >= 0 && stepSource == "policy" {
		inside, after, closed := strings.Cut(text[i+len(" ("):], ")")
		words := strings.SplitN(inside, " ", 2)
		if closed && slices.Contains(effect.Kinds(), effect.Kind(words[0])) {
			effectKind = words[0]
			if len(words) > 1 {
				effectObject = words[1]
			}
			text = text[:i] + after
		}
	}
	reason, advice, found := strings.Cut(text, adviceSeparator)
	if !found {
		reason, advice, _ = strings.Cut(text, "; ")
	}
	if stepSource == "heuristic" { // remove "; in PLACE", where the rule matched: PLACE is a term internal to shield
		reason, _, _ = strings.Cut(reason, "; in ")
		if advice, _, _ = strings.Cut(advice, "; in "); strings.HasPrefix(advice, "in ") {
			advice = ""
		}
	}
	return approve.LowerFirst(reason), advice, effectKind, effectObject
}

// decisiveEffect returns the effect that a reason is about: the one that a rule matched or, if
// unknown, the first that is not ordinary; nil if the reason is about the whole action.
func decisiveEffect(c *analysis.ActionCase, kind, place string) *effect.Effect {
	for i := range c.Effects {
		e := &c.Effects[i]
		if kind != "" && string(e.KindForPolicies()) == kind && (place == "" || slices.Contains([]string{e.Path, e.Host, e.Program}, place)) {
			return e
		}
	}
	for i := range c.Effects {
		if e := &c.Effects[i]; kind == "" && c.HasDoubtfulOrUnusualDangerLevel(e) {
			return e
		}
	}
	return nil
}

// ResumeSessionCommandLine returns the command line with which the user resumes a stopped session.
func ResumeSessionCommandLine(k session.Key) string {
	if k.IsDefault() {
		return "shield session resume default"
	}
	return "shield session resume " + command.QuoteWordIfNeeded(k.ID)
}

// stoppedSessionVerdict returns the BLOCK for a session with too many denials.
func stoppedSessionVerdict(k session.Key) verdict.Verdict {
	command := ResumeSessionCommandLine(k)
	v := failureVerdict(TierPolicy, "stopped", "too many actions of this session were denied, so it is stopped; the user can resume it with: "+command)
	v.Explanation.UserAllowCommand = command
	return v
}
