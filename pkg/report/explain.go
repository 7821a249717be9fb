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

// An Explanation is the input of [WriteExplanation]: an action, and its verdict with the trace
// steps of each tier.
type Explanation struct {
	Action                   *action.Action // nil if the input was not an action
	Verdict                  *verdict.Verdict
	Evidence                 *analysis.Tier1DecisionEvidence // nil if Tier 1 was not asked
	AllowRuleMismatchReasons []string                        // why allow rules that name the action do not cover it
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
	maxListedEffects      = 100 // maximum length of each list: effects, texts that rules and models read, and texts without a known effect
	maxLinesPerJudgedText = 3   // maximum number of lines shown of each text that rules and models read
)

// WriteExplanation writes the effects of an action and what each tier said, the decision first.
func WriteExplanation(w io.Writer, e Explanation, s Style) error {
	d := styledLineWriter{Writer: bufio.NewWriter(w), Style: s}
	d.Columns = max(d.Columns, 40)
	v := e.Verdict
	d.writeLine("", fmt.Sprintf("%s, tier %d, confidence %.2f%s", d.colorDecision(v.Decision), v.Tier, v.Confidence, ruleNameSuffix(v.Rule)))
	d.writeFolded("  ", v.Reasoning)
	if e.Action != nil {
		d.writeEffects(e.Action, decodeFirstTraceStepField[effectWithRules](v, func(s verdict.TierStep) []byte { return s.Effects }))
		d.writeTiers(v)
		d.writeEvidence(v, e.Evidence)
		d.writeAllowRuleMismatches(e.AllowRuleMismatchReasons)
		d.writeJudgedTextVariants(decodeFirstTraceStepField[judgedTextVariant](v, func(s verdict.TierStep) []byte { return s.JudgedActionTextVariants }))
	}
	return d.Flush()
}

// writeAllowRuleMismatches says why allow rules that name the action do not cover it.
func (d *styledLineWriter) writeAllowRuleMismatches(reasons []string) {
	if len(reasons) == 0 {
		return
	}
	d.writeTitle("Allow rules that match only a part of this action")
	for _, g := range reasons {
		d.writeFolded("  ", g)
	}
}

// A styledLineWriter collects lines. Flush returns any write error.
type styledLineWriter struct {
	*bufio.Writer
	Style
}

// decodeFirstTraceStepField decodes values from the first step of a trace.
func decodeFirstTraceStepField[T any](v *verdict.Verdict, fieldJSON func(verdict.TierStep) []byte) []T {
	var out []T
	if len(v.Trail) > 0 && json.Unmarshal(fieldJSON(v.Trail[0]), &out) != nil {
		return nil // a malformed trace is not shown; the verdict does not depend on it
	}
	return out
}

// writeLine writes a line that is already formatted.
func (d *styledLineWriter) writeLine(indent, s string) {
	fmt.Fprintln(d, strings.TrimRight(indent+s, " "))
}

// writeFolded writes an untrusted text, escaped, in as many lines as needed, broken between words where
// possible.
func (d *styledLineWriter) writeFolded(indent, s string) {
	room := d.Columns - term.Width(indent)
	line, used := "", 0
	for word := range strings.FieldsSeq(brief.TruncateWithEllipsis(s, maxWrappedTextBytes)) {
		for _, piece := range term.WrapLines(word, room) {
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
func (d *styledLineWriter) cutLine(s string, width int) string {
	return term.TruncateWithEllipsis(strings.Join(strings.Fields(brief.TruncateWithEllipsis(s, maxWrappedTextBytes)), " "), max(width, 8))
}

// maxWrappedTextBytes is how many characters of a text are broken into lines. The rest is cut off first, so that a
// very long text takes little time.
const maxWrappedTextBytes = 4096

func (d *styledLineWriter) colorize(color, s string) string {
	if !d.Color || color == colorNone {
		return s
	}
	return color + s + colorReset
}

func (d *styledLineWriter) colorDecision(v verdict.Decision) string {
	switch v {
	case verdict.Allow:
		return d.colorize(colorAllow, v.String())
	case verdict.Escalate:
		return d.colorize(colorAsk, v.String())
	default:
		return d.colorize(colorBlock, verdict.Block.String())
	}
}

func (d *styledLineWriter) writeTitle(s string) { fmt.Fprintf(d, "\n%s\n", d.colorize(colorBold, s)) }

func ruleNameSuffix(ruleName string) string {
	if ruleName == "" {
		return ""
	}
	return ", rule " + term.EscapeControlAndInvisible(ruleName)
}

// writeTiers writes each step of the verdict's trail: the tier, its judge and decision, and the judge's
// reasoning if it differs from the verdict's.
func (d *styledLineWriter) writeTiers(v *verdict.Verdict) {
	d.writeTitle("Tiers")
	for _, st := range v.Trail {
		line := fmt.Sprintf("%d %-10s %s %.2f%s", st.Tier, term.EscapeControlAndInvisible(st.JudgeName), d.colorDecision(st.Decision), st.Confidence, ruleNameSuffix(st.Rule))
		if st.LatencyMicroseconds > 0 {
			line += d.colorize(colorDim, "  "+formatMicroseconds(st.LatencyMicroseconds))
		}
		d.writeLine("  ", line)
		if st.Reasoning != v.Reasoning {
			d.writeFolded("      ", brief.TruncateWithEllipsis(st.Reasoning, maxWrappedTextBytes))
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
func (d *styledLineWriter) writeEvidence(v *verdict.Verdict, e *analysis.Tier1DecisionEvidence) {
	if e == nil {
		return
	}
	d.writeTitle("Evidence")
	d.writeLine("  ", "for ALLOW")
	switch {
	case e.MinAllowTier > 1:
		d.writeFolded("      ", fmt.Sprintf("tier 1 cannot allow this action: tier %d or above decides", e.MinAllowTier))
	case e.AllowReason != "":
		d.writeFolded("      ", e.AllowReason)
	case e.RequiredSafeConfidence > 0.5:
		d.writeFolded("      ", fmt.Sprintf("only the model can allow this action (SAFE, confidence ≥ %.2f)", e.RequiredSafeConfidence))
	default:
		d.writeFolded("      ", "only the model can allow this action (SAFE)")
	}
	for _, f := range e.Findings {
		if f.Rule != "" && f.RequiredAuthority > verdict.AuthorityNotNeeded {
			d.writeLine("  ", "against: rule "+term.EscapeControlAndInvisible(f.Rule))
			d.writeLine("      ", d.colorize(colorDim, approverTextByAuthority[min(f.RequiredAuthority, verdict.AuthorityNoneSuffices)]))
		}
	}
	for _, doubt := range e.Doubts {
		d.writeLine("  ", "against: "+term.EscapeControlAndInvisible(doubt.CauseName))
		d.writeFolded("      ", doubt.Reason)
		d.writeLine("      ", d.colorize(colorDim, describeModelOverrideOfDoubt(doubt)))
	}
	if len(e.TextsCoveredByNoEffect) > 0 {
		d.writeLine("  ", "text without a known effect, so the model judges the wording of the text")
		for _, text := range e.TextsCoveredByNoEffect[:min(len(e.TextsCoveredByNoEffect), maxListedEffects)] {
			d.writeFolded("      ", term.EscapeControlAndInvisible(text))
		}
	}
	switch m := e.Answer; {
	case m == nil:
		d.writeLine("  ", "the model was not asked")
	case m.Failed:
		d.writeLine("  ", "the model gave no answer; run 'shield doctor'")
	case m.InjectionDetected:
		d.writeLine("  ", fmt.Sprintf("the model: INJECTION, confidence %.2f", m.Confidence))
	default:
		d.writeLine("  ", fmt.Sprintf("the model: SAFE, confidence %.2f", m.Confidence))
	}
}

// approverTextByAuthority says who can allow an action in spite of a finding.
var approverTextByAuthority = [...]string{
	verdict.AuthorityClassifier: "the model may allow this", verdict.AuthorityEvaluator: "the model cannot allow this",
	verdict.AuthorityPerson: "only a person may allow this", verdict.AuthorityNoneSuffices: "no one may allow this",
}

// describeModelOverrideOfDoubt says whether the model's SAFE overrides a doubt.
func describeModelOverrideOfDoubt(d analysis.EffectSafetyDoubt) string {
	switch {
	case d.NeedsAuthorityAboveClassifier():
		return approverTextByAuthority[min(d.MinApprovingAuthority, verdict.AuthorityNoneSuffices)]
	case d.MinSafeAnswerConfidence > 0.5:
		return fmt.Sprintf("the model may allow this (SAFE, confidence ≥ %.2f)", d.MinSafeAnswerConfidence)
	default:
		return "the model may allow this (SAFE)"
	}
}

// A judgedTextVariant is one text of an action that rules and models read: the payload field Field in the form
// View, such as raw or base64.
type judgedTextVariant struct{ View, Field, Text string }

func (d *styledLineWriter) writeJudgedTextVariants(variants []judgedTextVariant) {
	if len(variants) == 0 {
		return
	}
	d.writeTitle("Texts that rules and models read")
	for _, v := range variants[:min(len(variants), maxListedEffects)] {
		d.writeLine("  ", term.EscapeControlAndInvisible(v.View+" "+v.Field))
		lines := term.WrapLines(brief.TruncateWithEllipsis(v.Text, maxWrappedTextBytes), d.Columns-6)
		for i, line := range lines {
			if i == maxLinesPerJudgedText {
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

// A commandSpanNode is a part of a command, with its effects.
type commandSpanNode struct {
	span     effect.CommandTextSpan
	effects  []effectWithRules
	children []*commandSpanNode
}

// writeEffects writes the effects as a tree: a part of a command is below the part that contains it.
func (d *styledLineWriter) writeEffects(a *action.Action, effects []effectWithRules) {
	d.writeTitle("Effects")
	command := a.Text("command")
	root := nestEffectsBySpan(effects[:min(len(effects), maxListedEffects)], len(command))
	name := a.Type
	if command != "" {
		name += "  " + command
	}
	d.writeLine("  ", d.cutLine(name, d.Columns-2))
	d.writeCommandPart("  ", root, command)
	if more := len(effects) - maxListedEffects; more > 0 {
		d.writeLine("  ", d.colorize(colorDim, fmt.Sprintf("and %d more", more)))
	}
	if len(effects) == 0 {
		d.writeLine("  ", d.colorize(colorDim, "none"))
	}
}

// nestEffectsBySpan nests effects by their spans. An effect without a span belongs to the whole command; one whose
// span crosses another belongs to the smallest part that contains both.
func nestEffectsBySpan(effects []effectWithRules, commandBytes int) *commandSpanNode {
	effects = slices.Clone(effects)
	for i := range effects {
		s := &effects[i].Span
		s.Start = min(max(s.Start, 0), commandBytes)
		s.End = min(max(s.End, s.Start), commandBytes)
	}
	sorted.SortStableBy(effects, func(a, b effectWithRules) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(b.Span.End, a.Span.End))
	})
	root := &commandSpanNode{span: effect.CommandTextSpan{Start: 0, End: commandBytes}}
	open := []*commandSpanNode{root}
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
			child := &commandSpanNode{span: e.Span}
			at.children = append(at.children, child)
			open = append(open, child)
			at = child
		}
		at.effects = append(at.effects, e)
	}
	return root
}

// writeCommandPart draws the effects of a part and the parts in it.
func (d *styledLineWriter) writeCommandPart(indent string, n *commandSpanNode, command string) {
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
		d.writeCommandPart(indent+below, c, command)
	}
}

// writeRules writes the rules that apply to an effect, below it, by tier.
func (d *styledLineWriter) writeRules(indent string, rules []analysis.RuleMatch) {
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
func (d *styledLineWriter) colorEffectKind(k effect.Kind, s string) string {
	switch k {
	case effect.UnknownEffect, effect.RunCommandOutput, effect.Persist, effect.ChangePrivilege, effect.ChangeSystem, effect.TamperWithShield, effect.SendData, effect.RunCode:
		return d.colorize(colorAsk, s)
	case effect.RunDownload, effect.RunDecodedText, effect.SendSecret, effect.RemoteShell, effect.DestroyData:
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
	if e.IsRestorableWithoutBackup {
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
