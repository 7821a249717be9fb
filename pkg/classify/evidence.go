package classify

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// clearable are the causes of doubt that a model's SAFE may clear, each with the
// confidence that it takes unless a model's card says another: a script that does
// not exist runs nothing, what no shell parses runs nowhere, what the environment
// holds the agent did not write, and an unknown tool may only read. What is known
// and not ordinary has a cause of its own, see unusual. Nothing clears the others.
var clearable = map[string]float64{
	string(effect.CauseAbsent): 0, string(effect.CauseSyntax): 0.75, string(effect.CauseVariable): 0.75, string(effect.CauseReader): 0.90,
	doubtProgram: 0, doubtPrivileged: 0, doubtContact: 0, doubtOutside: 0, doubtSystem: 0, doubtRemote: 0, doubtLater: 0, doubtOther: 0,
}

// The causes of doubt about effects that are known and not ordinary.
const (
	doubtProgram    = "program"    // what the program does with these arguments is not known
	doubtPrivileged = "privileged" // it runs with more rights
	doubtContact    = "contact"    // it contacts a place that the settings do not trust
	doubtOutside    = "outside"    // it changes files outside the workspace
	doubtSystem     = "system"     // it changes the system
	doubtRemote     = "remote"     // it changes something elsewhere
	doubtLater      = "later"      // it writes what runs later
	doubtOther      = "other"
)

// doubts returns the gravest doubt about a case, where SAFE clears a cause from
// the confidence that clears says on. What a model cannot know
// better than the analysis stays a doubt whatever it says: what was not read,
// data that leaves for a place that the settings do not name, credentials,
// downloaded code, remote data that is destroyed, elevated privileges, and shield itself.
func doubts(c *analysis.Case, clears map[string]float64) (worst analysis.Doubt) {
	if c.Unexamined != "" {
		worst = analysis.Doubt{Cause: "unexamined", Reason: unexaminedReason(c), Final: true}
		c.Evidence.Doubt(worst)
	}
	for i := range c.Effects {
		if worst.Final && c.Evidence == nil {
			break
		}
		d := doubtOf(&c.Effects[i], clears)
		if d.Reason == "" {
			d = unusual(c, i, clears)
		}
		c.Evidence.Doubt(d)
		if !worst.Final && graverDoubt(d, worst) {
			worst = d
		}
	}
	return worst
}

// graverDoubt reports whether the first of two doubts is the graver: it is final, its
// effect is unknown and not only unusual, or clearing it takes more confidence.
func graverDoubt(d, than analysis.Doubt) bool {
	switch {
	case d.Reason == "" || than.Reason == "" || d.Final != than.Final:
		return d.Reason != "" && (than.Reason == "" || d.Final)
	case d.Least != than.Least:
		return d.Least > than.Least
	}
	return than.Unusual && !d.Unusual
}

// unusual returns the doubt about an effect of a case, by its index, that is known
// and not ordinary.
func unusual(c *analysis.Case, i int, clears map[string]float64) analysis.Doubt {
	e := &c.Effects[i]
	if !c.Notable(e) {
		return analysis.Doubt{}
	}
	cause, what, final := doubtOther, "not an everyday action: ", false
	switch e.Word() {
	case effect.Execute:
		if e.Class == effect.Privileged {
			cause, what = doubtPrivileged, "runs with elevated privileges: "
		} else if e.Class != effect.UnknownClass && len(e.Harms) > 0 {
			what = string(e.Harms[0]) + ", as its entry says: "
		} else if cause, what = doubtProgram, "unknown program or subcommand: "; c.Unread(i) {
			return analysis.Doubt{}
		}
	case effect.HTTPRequest, effect.Connect, effect.SendData:
		cause, what = doubtContact, "contacts "
	case effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ChangePermissions:
		cause, what = doubtOutside, "changes files outside the workspace: "
	case effect.ChangeSystem:
		cause, what = doubtSystem, "changes the system: "
	case effect.ChangePrivilege:
		return analysis.Doubt{Cause: doubtPrivileged, Reason: "runs with elevated privileges: " + elevated(c, i) + "; ask the user", Final: true, Unusual: true}
	case effect.Listen:
		what, final = "listens where other machines can connect: ", true
	case effect.StopProcess:
		what, final = "stops processes: ", c.StopsOthers(e)
	case effect.ChangeRemote:
		cause, what = doubtRemote, "changes a remote resource: "
	case effect.Persist:
		cause, what = doubtLater, "writes a file that runs later (persistence): "
	}
	return analysis.Doubt{Cause: cause, Reason: what + place(e), Least: clears[cause], Final: final, Unusual: true}
}

// elevated names what a change of privilege, by its index, runs.
func elevated(c *analysis.Case, i int) string {
	for _, e := range c.Effects[i+1:] {
		if e.Kind == effect.Execute {
			return clip(strings.Join(append([]string{e.Program}, e.Args...), " "), 80)
		}
	}
	return place(&c.Effects[i])
}

const ordinaryReason = "ordinary: every effect is known, and none reaches outside the workspace"

// becauseOrdinary says why a case that is ordinary is allowed.
func becauseOrdinary(c *analysis.Case) string {
	if c.Class() != "" {
		return classedReason
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Cause == effect.CauseContained }) {
		return "ordinary: every effect is known, and what changes outside the workspace is gone with the container"
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Restorable }) {
		return ordinaryReason + "; what it deletes is in the last commit, or does not exist"
	}
	return ordinaryReason
}

const classedReason = "ordinary: the tool's class covers this call"

const harmlessReason = "harmless: every effect is known and only reads inside the workspace"

const permittedReason = "no rule matched, and a rule of the policy allows this"

// permitted reports whether a rule of the policy allows a case that Tier 1 has to
// decide.
func permitted(c *analysis.Case) bool {
	return slices.ContainsFunc(c.Trail, func(s verdict.Step) bool { return s.Tier == 0 && s.Allows })
}

// note records for people the reasons for and against a case, and what the
// model said about it; nil means that it was not asked.
func (k *Classifier) note(c *analysis.Case, w *weighing, m *result) {
	e := c.Evidence
	if e == nil {
		return
	}
	e.Tier, e.Uncovered = c.MinTier, c.Uncovered
	e.Weighs(w.rules.matched...)
	switch {
	case w.harmless:
		e.For = harmlessReason
	case w.permitted:
		e.For = permittedReason
	case w.ordinary != "":
		e.For = ordinaryReason
	}
	if c.Action != nil {
		e.Safe = k.opts.Safe[c.Action.Type]
	}
	if m != nil {
		e.Answer = &analysis.Answer{Injection: !m.safe, Confidence: m.Confidence, Failed: m.err != nil}
	}
}

// weighing returns what Tier 1 decides by, without the findings of the rules.
func (k *Classifier) weighing(c *analysis.Case) weighing {
	w := weighing{
		above: c.MinTier >= 2, least: verdict.Least(max(2, c.MinTier)), harmless: c.Harmless(), permitted: permitted(c), doubt: doubts(c, k.opts.Doubts),
		noRules: k.opts.NoHeuristic, failOpen: k.opts.FailOpen, note: k.opts.Note,
		skips: k.opts.Model != nil && c.Action != nil && slices.Contains(k.opts.SkipTypes, c.Action.Type),
	}
	if c.Ordinary() {
		w.ordinary, w.factual = becauseOrdinary(c), k.opts.Facts && c.Factual()
		w.noBlock = k.opts.Facts
	}
	if w.above {
		at := slices.IndexFunc(c.Trail, func(s verdict.Step) bool {
			return s.Tier == 0 && s.Decision == verdict.Escalate && !s.Allows && s.Rule != ""
		})
		if at >= 0 {
			w.asked = &c.Trail[at]
		} else {
			w.why = c.WhyTier()
		}
	}
	return w
}

// doubtOf returns the doubt that one effect gives.
func doubtOf(e *effect.Effect, clears map[string]float64) analysis.Doubt {
	if e.Sure == effect.Unknown {
		return unknown(e, clears)
	}
	reason := ""
	switch e.Word() {
	case effect.SendData:
		switch {
		case e.Trusted:
		case e.Is(effect.LabelCredential):
			reason = "sends credentials to " + place(e) + ": " + clip(e.Reason, 80) + "; leave them out, or ask the user"
		case !e.Is(effect.LabelPublic):
			reason = "sends local data to " + place(e) + "; send it to a trusted host, or ask the user"
		}
	case effect.SendSecret, effect.ReadSecret:
		reason = "prints or sends credentials: " + place(e) + "; ask the user for the one value that is needed"
	case effect.ChangeRemote:
		if e.Destroys() && !e.Trusted && !e.Kept {
			reason = "destroys data that cannot be recovered: " + place(e) + "; ask the user to do it"
		}
	case effect.RunCode:
		if e.Is(effect.LabelNetwork) || e.Is(effect.LabelDecoded) {
			reason = "runs a downloaded file: " + place(e) + "; read it first, then ask the user"
		}
	case effect.RunDownload, effect.RunDecoded, effect.RunInput, effect.RemoteShell:
		reason = "runs downloaded, decoded or piped-in code; write it to a file, read it, then run it"
	case effect.ChangeGuard:
		reason = "changes shield or the agent's security settings; ask the user to do it"
	}
	if reason == "" {
		return analysis.Doubt{}
	}
	return analysis.Doubt{Cause: string(e.Word()), Reason: reason, Final: true}
}

// unknown is the doubt about what cannot be known before it runs.
func unknown(e *effect.Effect, clears map[string]float64) analysis.Doubt {
	advice, what := "write the value in full", "unknown effect: "
	switch e.Cause {
	case effect.CauseAbsent:
		advice = "check its name, or run its commands directly"
	case effect.CauseScript:
		advice = "check that the script is readable, or run its commands directly"
	case effect.CausePackage, effect.CauseUnread:
		advice = "use a path of the workspace, or ask the user"
	case effect.CauseLoaded:
		advice = "leave the variable unset"
	case effect.CauseTool, effect.CauseReader:
		advice, what = "ask the user to approve the tool once", ""
	}
	least, cleared := clears[string(e.Cause)]
	reason := what + clip(e.Reason, 120) + "; " + advice
	return analysis.Doubt{Cause: string(e.Cause), Reason: reason, Final: !cleared, Least: least}
}

// place names what an effect concerns.
func place(e *effect.Effect) string {
	for _, s := range [...]string{e.Host, e.Target, e.Path, e.Program, e.Reason} {
		if s != "" {
			return clip(s, 80)
		}
	}
	return "a remote host"
}

func unexaminedReason(c *analysis.Case) string {
	return "unexamined: " + clip(c.Unexamined, 120) + "; split it into smaller steps"
}
