package classify

import (
	"fmt"
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A doubt says why the silence of rules and a model's SAFE are not enough to
// allow a case. The zero doubt is none.
type doubt struct {
	reason string
	final  bool    // no confidence of the model clears it
	least  float64 // confidence of the model's SAFE that clears it; 0 means whatever counts for the action's type
}

// clearable are the causes of unknown effects that a model's SAFE may clear, each
// with the confidence that it takes unless a model's card says another: a script
// that does not exist runs nothing, what no shell parses runs nowhere, what the
// environment holds the agent did not write, and an unknown tool may only read.
// Nothing clears the others.
var clearable = map[effect.Cause]float64{
	effect.CauseAbsent: 0, effect.CauseSyntax: 0.75, effect.CauseVariable: 0.75, effect.CauseReader: 0.90,
}

// doubts returns the gravest doubt about a case, where SAFE clears a cause from
// the confidence that clears says on. What a model cannot know
// better than the analysis stays a doubt whatever it says: what was not read,
// data that leaves for a place that the settings do not name, credentials,
// downloaded code, what is destroyed elsewhere, and shield itself.
func doubts(c *analysis.Case, clears map[effect.Cause]float64) doubt {
	if c.Unexamined != "" {
		return doubt{reason: unexaminedReason(c), final: true}
	}
	var worst doubt
	for i := range c.Effects {
		d := doubtOf(&c.Effects[i], clears)
		if d.final {
			return d
		}
		if worst.reason == "" || d.least > worst.least {
			worst = d
		}
	}
	return worst
}

const ordinaryReason = "ordinary: every effect is known, and none changes more than the workspace"

// becauseOrdinary says why a case that is ordinary is allowed.
func becauseOrdinary(c *analysis.Case) string {
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Restorable }) {
		return ordinaryReason + "; what it deletes is in the last commit as it is"
	}
	return ordinaryReason
}

const permittedReason = "no rule matched, and a rule of the policy allows this"

// permitted reports whether a rule of the policy allows a case that Tier 1 has to
// decide.
func permitted(c *analysis.Case) bool {
	return slices.ContainsFunc(c.Trail, func(s verdict.Step) bool { return s.Tier == 0 && s.Allows })
}

// An evidence is what the analysis and the rules say of a case that a model judges.
type evidence struct {
	unmatched bool // no rule matched
	allowed   bool // a rule of the policy allows it
	ordinary  bool // it is ordinary, and no rule of the policy has to say so
	doubt     doubt
	because   string // why it is ordinary
}

// evidence returns what a model's answers are weighed against.
func (k *Classifier) evidence(c *analysis.Case, unmatched bool) evidence {
	e := evidence{unmatched: unmatched, allowed: permitted(c), doubt: doubts(c, k.opts.Doubts)}
	if e.ordinary = unmatched && !e.allowed && c.Ordinary(); e.ordinary {
		e.because = becauseOrdinary(c)
	}
	return e
}

// weigh returns what a model's answer is worth: its SAFE clears no final doubt,
// unless the policy allows the case, and of ordinary work in which no rule matched
// its suspicion is a question.
func (e *evidence) weigh(m result) result {
	if m.err != nil {
		return m
	}
	switch {
	case m.decision == verdict.Allow && !e.allowed && (e.doubt.final || m.confidence < e.doubt.least):
		m.decision, m.reasoning = verdict.Escalate, e.doubt.reason
		if !e.doubt.final {
			m.reasoning += fmt.Sprintf(" (the model calls it safe with %.2f; this takes %.2f)", m.confidence, e.doubt.least)
		}
	case m.safe && e.unmatched && e.allowed:
		m.decision, m.confidence, m.reasoning = verdict.Allow, ordinaryConfidence, permittedReason
	case m.safe && e.ordinary && m.decision != verdict.Allow:
		m.decision, m.confidence, m.reasoning = verdict.Allow, ordinaryConfidence, e.because
	case m.decision == verdict.Block && e.ordinary:
		m.decision = verdict.Escalate
		m.reasoning = "model: looks like an attack, though every effect is known and ordinary; a higher tier decides"
	}
	return m
}

// doubtOf returns the doubt that one effect gives.
func doubtOf(e *effect.Effect, clears map[effect.Cause]float64) doubt {
	switch e.Kind {
	case effect.Dynamic:
		return unknown(e, clears)
	case effect.SendData:
		if !e.Trusted && e.Is(effect.LabelCredential) {
			return doubt{reason: "hands credentials on to " + place(e) + ": " + clip(e.Reason, 80) + "; leave them out, or ask the user", final: true}
		}
		if !e.Trusted && !e.Is(effect.LabelPublic) {
			return doubt{reason: "sends local data to " + place(e) + "; send it to a place that the settings trust, or ask the user", final: true}
		}
	case effect.SendSecret, effect.ReadSecret:
		return doubt{reason: "shows credentials or hands them on: " + place(e) + "; ask the user for the one value that is needed", final: true}
	case effect.ChangeRemote:
		if e.Destroys && !e.Trusted {
			return doubt{reason: "destroys what cannot be restored from here: " + place(e) + "; ask the user to do it", final: true}
		}
	case effect.RunCode:
		if e.Is(effect.LabelNetwork) || e.Is(effect.LabelDecoded) {
			return doubt{reason: "runs a downloaded file: " + place(e) + "; read it first, then ask the user", final: true}
		}
	case effect.RunDownload, effect.RunDecoded, effect.RunInput, effect.RemoteShell:
		return doubt{reason: "runs text from elsewhere; write it to a file, read it, then run it", final: true}
	case effect.ChangeGuard:
		return doubt{reason: "changes shield or the guard of an agent; ask the user to do it", final: true}
	}
	return doubt{}
}

// unknown is the doubt about what cannot be known before it runs.
func unknown(e *effect.Effect, clears map[effect.Cause]float64) doubt {
	advice := "write it out in full"
	switch e.Cause {
	case effect.CauseAbsent:
		advice = "check its name, or run its commands directly"
	case effect.CauseScript:
		advice = "check that the script is readable, or run its commands directly"
	case effect.CauseLoaded:
		advice = "leave the variable unset"
	case effect.CauseTool, effect.CauseReader:
		advice = "ask the user to have a policy say what the tool does"
	}
	least, cleared := clears[e.Cause]
	return doubt{reason: "cannot tell what this does before it runs: " + clip(e.Reason, 120) + "; " + advice, final: !cleared, least: least}
}

// place names what an effect concerns.
func place(e *effect.Effect) string {
	for _, s := range [...]string{e.Host, e.Target, e.Path, e.Program, e.Reason} {
		if s != "" {
			return clip(s, 80)
		}
	}
	return "another place"
}

func unexaminedReason(c *analysis.Case) string {
	return "unexamined: " + clip(c.Unexamined, 120) + "; split it into smaller steps"
}
