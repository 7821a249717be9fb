package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// An Explanation is the input of [WriteExplanation]: an action, and its verdict with the trail of a
// trace.
type Explanation struct {
	Action              *action.Action // nil if the input was not an action
	Verdict             *verdict.Verdict
	Evidence            *analysis.Evidence // nil if Tier 1 was not asked
	AllowRuleGapReasons []string           // why allow rules that name the action do not cover it
}

// A Style is the width and colours of text for a person.
type Style struct {
	Columns int // the width; less than 40 counts as 40
	Color   bool
}

// Colours by meaning.
const (
	colorNone      = ""
	colorAllow     = "\x1b[32m"
	colorAsk       = "\x1b[33m"
	colorBlock     = "\x1b[31m"
	colorDim       = "\x1b[2m"
	colorBold      = "\x1b[1m"
	colorUnderline = "\x1b[4m"
	colorReset     = "\x1b[0m"
)

// Limits of the output, since a person reads no more and the input is untrusted.
const (
	maxListedEffects     = 100 // maximum number of effects, of views, and of texts without an effect
	maxLinesPerInputView = 3   // lines per view
)

// WriteExplanation writes the effects of an action and what each tier said, the decision first.
func WriteExplanation(w io.Writer, e Explanation, s Style) error {
	d := textWriter{Writer: bufio.NewWriter(w), Style: s}
	d.Columns = max(d.Columns, 40)
	v := e.Verdict
	d.writeLine("", fmt.Sprintf("%s, tier %d, confidence %.2f%s", d.colorDecision(v.Decision), v.Tier, v.Confidence, ruleSuffix(v.Rule)))
	d.writeFolded("  ", v.Reasoning)
	if e.Action != nil {
		d.writeEffects(e.Action, decodeTrace[effectWithRules](v, func(s verdict.Step) []byte { return s.Effects }))
		d.writeTiers(v)
		d.writeEvidence(v, e.Evidence)
		d.writeGaps(e.AllowRuleGapReasons)
		d.writeViews(decodeTrace[inputView](v, func(s verdict.Step) []byte { return s.JudgedActionTextVariants }))
	}
	return d.Flush()
}

// writeGaps says why allow rules that name the action do not cover it.
func (d *textWriter) writeGaps(gaps []string) {
	if len(gaps) == 0 {
		return
	}
	d.writeTitle("Allow rules that match part of this but do not cover all of it")
	for _, g := range gaps {
		d.writeFolded("  ", g)
	}
}

// A textWriter collects lines. Flush returns any write error.
type textWriter struct {
	*bufio.Writer
	Style
}

// decodeTrace decodes values from the first step of a trace.
func decodeTrace[T any](v *verdict.Verdict, of func(verdict.Step) []byte) []T {
	var out []T
	if len(v.Trail) > 0 && json.Unmarshal(of(v.Trail[0]), &out) != nil {
		return nil // a malformed trace is not shown; the verdict does not depend on it
	}
	return out
}

// writeLine writes a line that is already formatted.
func (d *textWriter) writeLine(indent, s string) { fmt.Fprintln(d, strings.TrimRight(indent+s, " ")) }

// writeFolded writes an untrusted text, escaped, in as many lines as needed, broken between words where
// possible.
func (d *textWriter) writeFolded(indent, s string) {
	room := d.Columns - term.Width(indent)
	line, used := "", 0
	for word := range strings.FieldsSeq(brief.TruncateWithEllipsis(s, maxFoldedBytes)) {
		for _, piece := range term.Fold(word, room) {
			width := term.Width(piece)
			switch {
			case used == 0:
				line, used = piece, width
			case used+1+width <= room:
				line, used = line+" "+piece, used+1+width
			default:
				d.writeLine(indent, line)
				line, used = piece, width
			}
		}
	}
	if used > 0 {
		d.writeLine(indent, line)
	}
}

// cutLine returns an untrusted text, escaped, on one line of a width.
func (d *textWriter) cutLine(s string, width int) string {
	return term.Cut(strings.Join(strings.Fields(brief.TruncateWithEllipsis(s, maxFoldedBytes)), " "), max(width, 8))
}

// maxFoldedBytes is how many bytes of a text are folded: a megabyte need not be folded to show one line.
const maxFoldedBytes = 4096

func (d *textWriter) colorize(color, s string) string {
	if !d.Color || color == colorNone {
		return s
	}
	return color + s + colorReset
}

func (d *textWriter) colorDecision(v verdict.Decision) string {
	switch v {
	case verdict.Allow:
		return d.colorize(colorAllow, v.String())
	case verdict.Escalate:
		return d.colorize(colorAsk, v.String())
	default:
		return d.colorize(colorBlock, verdict.Block.String())
	}
}

func (d *textWriter) writeTitle(s string) { fmt.Fprintf(d, "\n%s\n", d.colorize(colorBold, s)) }

func ruleSuffix(rule string) string {
	if rule == "" {
		return ""
	}
	return ", rule " + term.Escape(rule)
}

// writeTiers writes what each classifier said.
func (d *textWriter) writeTiers(v *verdict.Verdict) {
	d.writeTitle("Tiers")
	for _, st := range v.Trail {
		line := fmt.Sprintf("%d %-10s %s %.2f%s", st.Tier, term.Escape(st.Source), d.colorDecision(st.Decision), st.Confidence, ruleSuffix(st.Rule))
		if st.Latency > 0 {
			line += d.colorize(colorDim, "  "+formatMicroseconds(st.Latency))
		}
		d.writeLine("  ", line)
		if st.Reasoning != v.Reasoning {
			d.writeFolded("      ", brief.TruncateWithEllipsis(st.Reasoning, maxFoldedBytes))
		}
	}
	if v.Decision == verdict.Escalate {
		d.writeLine("  ", d.colorize(colorDim, fmt.Sprintf("tier %d or above decides", v.NextTier)))
	}
}

// formatMicroseconds formats a time in microseconds.
func formatMicroseconds(micros int64) string {
	if micros < 10_000 {
		return fmt.Sprintf("%d µs", micros)
	}
	return fmt.Sprintf("%d ms", micros/1000)
}

// writeEvidence writes the reasons for and against ALLOW, and the confidence that the model needs for SAFE.
func (d *textWriter) writeEvidence(v *verdict.Verdict, e *analysis.Evidence) {
	if e == nil {
		return
	}
	d.writeTitle("Evidence")
	d.writeLine("  ", "for ALLOW")
	switch {
	case e.MinTier > 1:
		d.writeFolded("      ", fmt.Sprintf("tier 1 cannot allow this action: tier %d or above decides", e.MinTier))
	case e.AllowReason != "":
		d.writeFolded("      ", e.AllowReason)
	case e.MinSafeConfidence > 0.5:
		d.writeFolded("      ", fmt.Sprintf("only the model can allow this action (SAFE, confidence ≥ %.2f)", e.MinSafeConfidence))
	default:
		d.writeFolded("      ", "only the model can allow this action (SAFE)")
	}
	for _, f := range e.Findings {
		if f.Rule != "" && f.Authority > verdict.AuthorityNotNeeded {
			d.writeLine("  ", "against: rule "+term.Escape(f.Rule))
			d.writeLine("      ", d.colorize(colorDim, allowOverrideTextByAuthority[min(f.Authority, verdict.AuthorityNeverAllowed)]))
		}
	}
	for _, doubt := range e.Doubts {
		d.writeLine("  ", "against: "+term.Escape(doubt.Cause))
		d.writeFolded("      ", doubt.Reason)
		d.writeLine("      ", d.colorize(colorDim, describeDoubtOverrideByModel(doubt)))
	}
	if len(e.TextsCoveredByNoEffect) > 0 {
		d.writeLine("  ", "text without a known effect, so the model judges the wording of the text")
		for _, text := range e.TextsCoveredByNoEffect[:min(len(e.TextsCoveredByNoEffect), maxListedEffects)] {
			d.writeFolded("      ", term.Escape(text))
		}
	}
	switch m := e.Answer; {
	case m == nil:
		d.writeLine("  ", "the model was not asked")
	case m.Failed:
		d.writeLine("  ", "the model failed")
	case m.Injection:
		d.writeLine("  ", fmt.Sprintf("the model: INJECTION, confidence %.2f", m.Confidence))
	default:
		d.writeLine("  ", fmt.Sprintf("the model: SAFE, confidence %.2f", m.Confidence))
	}
}

// allowOverrideTextByAuthority says who can allow an action in spite of a finding.
var allowOverrideTextByAuthority = [...]string{
	verdict.AuthorityClassifier: "the model may allow this", verdict.AuthorityEvaluator: "the model cannot allow this",
	verdict.AuthorityPerson: "only a person may allow this", verdict.AuthorityNeverAllowed: "no one may allow this",
}

// describeDoubtOverrideByModel says whether the model's SAFE overrides a doubt.
func describeDoubtOverrideByModel(d analysis.Doubt) string {
	switch {
	case d.NeedsMoreThanModel():
		return allowOverrideTextByAuthority[min(d.MinAuthority, verdict.AuthorityNeverAllowed)]
	case d.MinConfidence > 0.5:
		return fmt.Sprintf("the model may allow this (SAFE, confidence ≥ %.2f)", d.MinConfidence)
	default:
		return "the model may allow this (SAFE)"
	}
}

// An inputView is one text that rules and models read.
type inputView struct{ View, Field, Text string }

func (d *textWriter) writeViews(views []inputView) {
	if len(views) == 0 {
		return
	}
	d.writeTitle("Texts that rules and models read")
	for _, v := range views[:min(len(views), maxListedEffects)] {
		d.writeLine("  ", term.Escape(v.View+" "+v.Field))
		lines := term.Fold(brief.TruncateWithEllipsis(v.Text, maxFoldedBytes), d.Columns-6)
		for i, line := range lines {
			if i == maxLinesPerInputView {
				d.writeLine("      ", d.colorize(colorDim, fmt.Sprintf("… %d bytes in all", len(v.Text))))
				break
			}
			d.writeLine("      ", line)
		}
	}
}

// An effectWithRules is an effect with the rules that apply to it.
type effectWithRules struct {
	effect.Effect
	Rules []analysis.RuleMatch `json:"rules"`
}

// A commandPart is a part of a command, with its effects.
type commandPart struct {
	span     effect.Span
	effects  []effectWithRules
	children []*commandPart
}

// writeEffects writes the effects as a tree: a part of a command is below the part that contains it.
func (d *textWriter) writeEffects(a *action.Action, effects []effectWithRules) {
	d.writeTitle("Effects")
	command := a.Text("command")
	root := nestEffects(effects[:min(len(effects), maxListedEffects)], len(command))
	name := a.Type
	if command != "" {
		name += "  " + command
	}
	d.writeLine("  ", d.cutLine(name, d.Columns-2))
	d.writePart("  ", root, command)
	if more := len(effects) - maxListedEffects; more > 0 {
		d.writeLine("  ", d.colorize(colorDim, fmt.Sprintf("and %d more", more)))
	}
	if len(effects) == 0 {
		d.writeLine("  ", d.colorize(colorDim, "none"))
	}
}

// nestEffects nests effects by their spans. An effect without a span belongs to the whole command; one whose
// span crosses another belongs to the smallest part that contains both.
func nestEffects(effects []effectWithRules, size int) *commandPart {
	effects = slices.Clone(effects)
	for i := range effects {
		s := &effects[i].Span
		s.Start = min(max(s.Start, 0), size)
		s.End = min(max(s.End, s.Start), size)
	}
	sorted.By(effects, func(a, b effectWithRules) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(b.Span.End, a.Span.End))
	})
	root := &commandPart{span: effect.Span{Start: 0, End: size}}
	open := []*commandPart{root}
	for _, e := range effects {
		if e.Span.Start == e.Span.End {
			root.effects = append(root.effects, e)
			continue
		}
		for len(open) > 1 && e.Span.End > open[len(open)-1].span.End {
			open = open[:len(open)-1]
		}
		at := open[len(open)-1]
		if e.Span != at.span {
			child := &commandPart{span: e.Span}
			at.children = append(at.children, child)
			open = append(open, child)
			at = child
		}
		at.effects = append(at.effects, e)
	}
	return root
}

// writePart draws the effects of a part and the parts in it.
func (d *textWriter) writePart(indent string, n *commandPart, command string) {
	bar := "   "
	if len(n.children) > 0 {
		bar = "│  "
	}
	for _, e := range n.effects {
		line := fmt.Sprintf("%-14s %s", e.KindForPolicies(), describeEffect(e.Effect))
		d.writeLine(indent+bar, d.colorEffectKind(e.KindForPolicies(), d.cutLine(line, d.Columns-term.Width(indent)-3)))
		d.writeRules(indent+bar+"  ", e.Rules)
	}
	for i, c := range n.children {
		branch, below := "├─ ", "│  "
		if i == len(n.children)-1 {
			branch, below = "└─ ", "   "
		}
		// Indenting this deep would leave no room for the text.
		if term.Width(indent) > d.Columns/2 {
			below = ""
		}
		text := d.cutLine(command[c.span.Start:c.span.End], d.Columns-term.Width(indent)-3)
		d.writeLine(indent+branch, d.colorize(colorUnderline, text))
		d.writePart(indent+below, c, command)
	}
}

// writeRules writes the rules that apply to an effect, below it, by tier.
func (d *textWriter) writeRules(indent string, rules []analysis.RuleMatch) {
	var b strings.Builder
	for i, m := range rules {
		switch {
		case i == 0 || m.Tier != rules[i-1].Tier:
			if i > 0 {
				b.WriteString("; ")
			}
			fmt.Fprintf(&b, "tier %d: ", m.Tier)
		default:
			b.WriteString(", ")
		}
		b.WriteString(m.RuleNameOrID)
		if m.Uncertain {
			b.WriteString(" (perhaps)")
		}
	}
	d.writeFolded(indent, b.String())
}

// colorEffectKind highlights the effects that a person should read first.
func (d *textWriter) colorEffectKind(k effect.Kind, s string) string {
	switch k {
	case effect.UnknownEffect, effect.RunOtherCommandOutput, effect.Persist, effect.ChangePrivilege, effect.ChangeSystem, effect.TamperWithShield, effect.SendData, effect.RunCode:
		return d.colorize(colorAsk, s)
	case effect.RunDownload, effect.RunDecoded, effect.SendSecret, effect.RemoteShell, effect.DestroyData:
		return d.colorize(colorBlock, s)
	default:
		return d.colorize(colorDim, s)
	}
}

// describeEffect returns the object of an effect, the program with its class, and the reason.
func describeEffect(e effect.Effect) string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if path := e.Path; path != "" {
		if e.Recursive {
			path = strings.TrimSuffix(path, "/") + "/**"
		}
		add(path)
	}
	if e.URL != "" {
		add(e.URL)
	} else {
		add(e.Host)
	}
	add(strings.Join(append([]string{e.Program}, e.Args...), " "))
	if e.Class != "" {
		add("(" + string(e.Class) + ")")
	}
	if e.Restorable {
		add("(in the last commit)")
	}
	switch {
	case e.CauseOrFirstHarm() != "" && e.Reason != "":
		add("(" + e.CauseOrFirstHarm() + ": " + e.Reason + ")")
	case e.CauseOrFirstHarm() != "" || e.Reason != "":
		add("(" + e.CauseOrFirstHarm() + e.Reason + ")")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}
