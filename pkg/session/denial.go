package session

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A Denial is an action that was not allowed.
type Denial struct {
	DeniedUnixSeconds int64                `json:"at"`
	ActionHash        string               `json:"action"` // hash of the action
	Rule              string               `json:"rule,omitempty"`
	HasNoPersonToAsk  bool                 `json:"unasked,omitempty"` // no person could be asked; the denial does not count toward stopping the session
	Targets           []DeniedActionTarget `json:"targets,omitempty"`
}

// A DeniedActionTarget is what a denied action would have done, and to which object.
type DeniedActionTarget struct {
	Operation           string `json:"does"` // remove, write, read, send, change or run
	PathHostOrRecipient string `json:"what"` // a path, a host or a recipient
}

// Bounds of the denials of a session.
const (
	maxDenials          = 64
	maxTargetsPerDenial = 16
	recentDenialSeconds = 600 // seconds; only denials in this period count toward Options.MaxDenials
)

// deniedOperationByEffectKind groups kinds of effects under one verb.
var deniedOperationByEffectKind = map[effect.Kind]string{
	effect.DeleteFile: "remove", effect.DeleteDirectory: "remove", effect.MoveFile: "remove", effect.DestroyData: "remove",
	effect.WriteFile: "write", effect.Persist: "write", effect.ChangePermissions: "write",
	effect.ReadFile: "read", effect.ReadSecret: "read",
	effect.SendData: "send", effect.SendSecret: "send", effect.SendMessage: "send",
	effect.ChangeRemoteSystem: "change",
	effect.RunDownload:        "run", effect.RunDecodedText: "run", effect.RunCode: "run", effect.RemoteShell: "run",
}

// targetOf returns the target of an effect; ok is false if the object is unknown.
func targetOf(e *effect.Effect) (t DeniedActionTarget, ok bool) {
	t.Operation = deniedOperationByEffectKind[e.KindForPolicies()]
	t.PathHostOrRecipient = e.Path
	for _, name := range [...]string{e.Host, e.RemoteTargetName} {
		if t.PathHostOrRecipient == "" {
			t.PathHostOrRecipient = name
		}
	}
	t.PathHostOrRecipient = shortenText(strings.TrimRight(t.PathHostOrRecipient, "/*"))
	return t, t.Operation != "" && t.PathHostOrRecipient != ""
}

// NewDenial returns the denial of a case by a rule, "" for none. Its targets are the effects that rules
// matched or, if none did, those that are neither harmless nor ordinary.
func NewDenial(c *analysis.ActionCase, rule string) *Denial {
	d := &Denial{ActionHash: c.Action.TypeAndPayloadHash, Rule: rule}
	met := slices.ContainsFunc(c.MatchedRulesByEffectIndex, func(m []analysis.RuleMatch) bool { return len(m) > 0 })
	for i := range c.Effects {
		if met && (i >= len(c.MatchedRulesByEffectIndex) || len(c.MatchedRulesByEffectIndex[i]) == 0) || !met && !c.HasDoubtfulOrUnusualDangerLevel(&c.Effects[i]) {
			continue
		}
		t, ok := targetOf(&c.Effects[i])
		if ok && len(d.Targets) < maxTargetsPerDenial && !slices.Contains(d.Targets, t) {
			d.Targets = append(d.Targets, t)
		}
	}
	return d
}

// addDenial adds a denial to a record, and stops a session that has too many.
func (r *Record) addDenial(d Denial, now int64, opts *Options) {
	d.DeniedUnixSeconds, d.Rule = now, shortenText(d.Rule)
	if len(r.Denials) == max(maxDenials, opts.MaxDenials) {
		r.Denials = slices.Delete(r.Denials, 0, 1)
	}
	r.Denials = append(r.Denials, d)
	recent := 0
	for _, d := range r.Denials {
		if now-d.DeniedUnixSeconds < recentDenialSeconds && !d.HasNoPersonToAsk {
			recent++
		}
	}
	r.IsStoppedAfterDenials = r.IsStoppedAfterDenials || recent >= opts.MaxDenials
}

// DenialOfSameTarget returns a denial of another action with a target of this case, nil if there is none.
func (s *Session) DenialOfSameTarget(c *analysis.ActionCase) *Denial {
	for i := range s.record.Denials {
		d := &s.record.Denials[i]
		if d.ActionHash == c.Action.TypeAndPayloadHash {
			continue
		}
		for j := range c.Effects {
			t, ok := targetOf(&c.Effects[j])
			if ok && c.Effects[j].Cause != effect.CauseUnprintedFileRead && slices.ContainsFunc(d.Targets, func(was DeniedActionTarget) bool { return was.overlaps(t) }) {
				return d
			}
		}
	}
	return nil
}

// overlaps reports whether both targets have the same verb and o is t or inside it; for "remove", t
// inside o counts as well.
func (t DeniedActionTarget) overlaps(o DeniedActionTarget) bool {
	if t.Operation != o.Operation {
		return false
	}
	within := func(part, whole string) bool {
		rest, ok := strings.CutPrefix(part, whole)
		return ok && (rest == "" || rest[0] == '/')
	}
	return within(o.PathHostOrRecipient, t.PathHostOrRecipient) || t.Operation == "remove" && within(t.PathHostOrRecipient, o.PathHostOrRecipient)
}
