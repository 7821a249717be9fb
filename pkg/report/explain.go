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
	Action   *action.Action // nil if the input was not an action
	Verdict  *verdict.Verdict
	Evidence *analysis.Evidence // nil if Tier 1 was not asked
	Gaps     []string           // why allow rules that name the action do not cover it
}

// A Style is the width and colours of text for a person.
type Style struct {
	Columns int // the width; less than 40 counts as 40
	Color   bool
}

// Colours by meaning.
const (
	colorNone  = ""
	colorAllow = "\x1b[32m"
	colorAsk   = "\x1b[33m"
	colorBlock = "\x1b[31m"
	colorDim   = "\x1b[2m"
	colorBold  = "\x1b[1m"
	colorUnder = "\x1b[4m"
	colorReset = "\x1b[0m"
)

// Limits of the output, since a person reads no more and the input is untrusted.
const (
	maxDrawn = 100 // effects, and views
	maxLines = 3   // lines per view
)

// WriteExplanation writes the effects of an action and what each tier said, the decision first.
func WriteExplanation(w io.Writer, e Explanation, s Style) error {
	d := drawing{Writer: bufio.NewWriter(w), Style: s}
	d.Columns = max(d.Columns, 40)
	v := e.Verdict
	d.text("", fmt.Sprintf("%s, tier %d, confidence %.2f%s", d.decision(v.Decision), v.Tier, v.Confidence, ruleOf(v.Rule)))
	d.fold("  ", v.Reasoning)
	if e.Action != nil {
		d.effects(e.Action, traced[judged](v, func(s verdict.Step) []byte { return s.Effects }))
		d.tiers(v)
		d.evidence(v, e.Evidence)
		d.gaps(e.Gaps)
		d.views(traced[view](v, func(s verdict.Step) []byte { return s.Views }))
	}
	return d.Flush()
}

// gaps says why allow rules that name the action do not cover it.
func (d *drawing) gaps(gaps []string) {
	if len(gaps) == 0 {
		return
	}
	d.title("Allow rules that match part of this but do not cover all of it")
	for _, g := range gaps {
		d.fold("  ", g)
	}
}

// A drawing collects lines. Flush returns any write error.
type drawing struct {
	*bufio.Writer
	Style
}

// traced decodes values from the first step of a trace.
func traced[T any](v *verdict.Verdict, of func(verdict.Step) []byte) []T {
	var out []T
	if len(v.Trail) > 0 && json.Unmarshal(of(v.Trail[0]), &out) != nil {
		return nil // the action has been judged anyway
	}
	return out
}

// text writes a line that is already formatted.
func (d *drawing) text(indent, s string) { fmt.Fprintln(d, strings.TrimRight(indent+s, " ")) }

// fold writes an untrusted text, escaped, in as many lines as needed, broken between words where
// possible.
func (d *drawing) fold(indent, s string) {
	room := d.Columns - term.Width(indent)
	line, used := "", 0
	for word := range strings.FieldsSeq(brief.Text(s, maxFolded)) {
		for _, piece := range term.Fold(word, room) {
			width := term.Width(piece)
			switch {
			case used == 0:
				line, used = piece, width
			case used+1+width <= room:
				line, used = line+" "+piece, used+1+width
			default:
				d.text(indent, line)
				line, used = piece, width
			}
		}
	}
	if used > 0 {
		d.text(indent, line)
	}
}

// cut returns an untrusted text, escaped, on one line of a width.
func (d *drawing) cut(s string, width int) string {
	return term.Cut(strings.Join(strings.Fields(brief.Text(s, maxFolded)), " "), max(width, 8))
}

// maxFolded is how many bytes of a text are folded: a megabyte need not be folded to show one line.
const maxFolded = 4096

func (d *drawing) paint(color, s string) string {
	if !d.Color || color == colorNone {
		return s
	}
	return color + s + colorReset
}

func (d *drawing) decision(v verdict.Decision) string {
	switch v {
	case verdict.Allow:
		return d.paint(colorAllow, v.String())
	case verdict.Escalate:
		return d.paint(colorAsk, v.String())
	default:
		return d.paint(colorBlock, verdict.Block.String())
	}
}

func (d *drawing) title(s string) { fmt.Fprintf(d, "\n%s\n", d.paint(colorBold, s)) }

func ruleOf(rule string) string {
	if rule == "" {
		return ""
	}
	return ", rule " + term.Escape(rule)
}

// tiers writes what each classifier said.
func (d *drawing) tiers(v *verdict.Verdict) {
	d.title("Tiers")
	for _, st := range v.Trail {
		line := fmt.Sprintf("%d %-10s %s %.2f%s", st.Tier, term.Escape(st.Source), d.decision(st.Decision), st.Confidence, ruleOf(st.Rule))
		if st.Latency > 0 {
			line += d.paint(colorDim, "  "+took(st.Latency))
		}
		d.text("  ", line)
		if st.Reasoning != v.Reasoning {
			d.fold("      ", brief.Text(st.Reasoning, maxFolded))
		}
	}
	if v.Decision == verdict.Escalate {
		d.text("  ", d.paint(colorDim, fmt.Sprintf("tier %d or above decides", v.NextTier)))
	}
}

// took formats a time in microseconds.
func took(micros int64) string {
	if micros < 10_000 {
		return fmt.Sprintf("%d µs", micros)
	}
	return fmt.Sprintf("%d ms", micros/1000)
}

// evidence writes the reasons for and against ALLOW, and the confidence that the model needs for SAFE.
func (d *drawing) evidence(v *verdict.Verdict, e *analysis.Evidence) {
	if e == nil {
		return
	}
	d.title("Evidence")
	d.text("  ", "for ALLOW")
	switch {
	case e.Tier > 1:
		d.fold("      ", fmt.Sprintf("nothing in tier 1: tier %d or above decides", e.Tier))
	case e.For != "":
		d.fold("      ", e.For)
	case e.Safe > 0.5:
		d.fold("      ", fmt.Sprintf("only the model (SAFE, confidence ≥ %.2f)", e.Safe))
	default:
		d.fold("      ", "only the model (SAFE)")
	}
	for _, f := range e.Weighed {
		if f.Rule != "" && f.Who > verdict.NoApproval {
			d.text("  ", "against: rule "+term.Escape(f.Rule))
			d.text("      ", d.paint(colorDim, mayAllow[min(f.Who, verdict.Never)]))
		}
	}
	for _, doubt := range e.Doubts {
		d.text("  ", "against: "+term.Escape(doubt.Cause))
		d.fold("      ", doubt.Reason)
		d.text("      ", d.paint(colorDim, cleared(doubt)))
	}
	if len(e.Uncovered) > 0 {
		d.text("  ", "covered by no effect, so the model judges its wording")
		for _, text := range e.Uncovered[:min(len(e.Uncovered), maxDrawn)] {
			d.fold("      ", term.Escape(text))
		}
	}
	switch m := e.Answer; {
	case m == nil:
		d.text("  ", "the model was not asked")
	case m.Failed:
		d.text("  ", "the model failed")
	case m.Injection:
		d.text("  ", fmt.Sprintf("the model: INJECTION, confidence %.2f", m.Confidence))
	default:
		d.text("  ", fmt.Sprintf("the model: SAFE, confidence %.2f", m.Confidence))
	}
}

// mayAllow says who can allow an action in spite of a finding.
var mayAllow = [...]string{
	verdict.Classifier: "the model may allow this", verdict.Evaluator: "the model cannot allow this",
	verdict.Person: "only a person may allow this", verdict.Never: "no one may allow this",
}

// cleared says whether the model's SAFE overrides a doubt.
func cleared(d analysis.Doubt) string {
	switch {
	case d.Final():
		return mayAllow[min(d.Who, verdict.Never)]
	case d.Least > 0.5:
		return fmt.Sprintf("the model may allow this (SAFE, confidence ≥ %.2f)", d.Least)
	default:
		return "the model may allow this (SAFE)"
	}
}

// A view is one text that rules and models read.
type view struct{ View, Field, Text string }

func (d *drawing) views(views []view) {
	if len(views) == 0 {
		return
	}
	d.title("Read by rules and models as")
	for _, v := range views[:min(len(views), maxDrawn)] {
		d.text("  ", term.Escape(v.View+" "+v.Field))
		lines := term.Fold(brief.Text(v.Text, maxFolded), d.Columns-6)
		for i, line := range lines {
			if i == maxLines {
				d.text("      ", d.paint(colorDim, fmt.Sprintf("… %d bytes in all", len(v.Text))))
				break
			}
			d.text("      ", line)
		}
	}
}

// A judged is an effect with the rules that apply to it.
type judged struct {
	effect.Effect
	Rules []analysis.RuleMatch `json:"rules"`
}

// A node is a part of a command, with its effects.
type node struct {
	span     effect.Span
	effects  []judged
	children []*node
}

// effects writes the effects as a tree: a part of a command is below the part that contains it.
func (d *drawing) effects(a *action.Action, effects []judged) {
	d.title("Effects")
	command := a.Text("command")
	root := tree(effects[:min(len(effects), maxDrawn)], len(command))
	name := a.Type
	if command != "" {
		name += "  " + command
	}
	d.text("  ", d.cut(name, d.Columns-2))
	d.node("  ", root, command)
	if more := len(effects) - maxDrawn; more > 0 {
		d.text("  ", d.paint(colorDim, fmt.Sprintf("and %d more", more)))
	}
	if len(effects) == 0 {
		d.text("  ", d.paint(colorDim, "none"))
	}
}

// tree nests effects by their spans. An effect without a span belongs to the whole command; one whose
// span crosses another belongs to the smallest part that contains both.
func tree(effects []judged, size int) *node {
	effects = slices.Clone(effects)
	for i := range effects {
		s := &effects[i].From
		s.Start = min(max(s.Start, 0), size)
		s.End = min(max(s.End, s.Start), size)
	}
	sorted.By(effects, func(a, b judged) int {
		return cmp.Or(cmp.Compare(a.From.Start, b.From.Start), cmp.Compare(b.From.End, a.From.End))
	})
	root := &node{span: effect.Span{Start: 0, End: size}}
	open := []*node{root}
	for _, e := range effects {
		if e.From.Start == e.From.End {
			root.effects = append(root.effects, e)
			continue
		}
		for len(open) > 1 && e.From.End > open[len(open)-1].span.End {
			open = open[:len(open)-1]
		}
		at := open[len(open)-1]
		if e.From != at.span {
			child := &node{span: e.From}
			at.children = append(at.children, child)
			open = append(open, child)
			at = child
		}
		at.effects = append(at.effects, e)
	}
	return root
}

// node draws the effects of a part and the parts in it.
func (d *drawing) node(indent string, n *node, command string) {
	bar := "   "
	if len(n.children) > 0 {
		bar = "│  "
	}
	for _, e := range n.effects {
		line := fmt.Sprintf("%-14s %s", e.Word(), describe(e.Effect))
		d.text(indent+bar, d.kind(e.Word(), d.cut(line, d.Columns-term.Width(indent)-3)))
		d.rules(indent+bar+"  ", e.Rules)
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
		text := d.cut(command[c.span.Start:c.span.End], d.Columns-term.Width(indent)-3)
		d.text(indent+branch, d.paint(colorUnder, text))
		d.node(indent+below, c, command)
	}
}

// rules writes the rules that apply to an effect, below it, by tier.
func (d *drawing) rules(indent string, rules []analysis.RuleMatch) {
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
		b.WriteString(m.Rule)
		if m.Perhaps {
			b.WriteString(" (perhaps)")
		}
	}
	d.fold(indent, b.String())
}

// kind highlights the effects that a person should read first.
func (d *drawing) kind(k effect.Kind, s string) string {
	switch k {
	case effect.Dynamic, effect.RunInput, effect.Persist, effect.ChangePrivilege, effect.ChangeSystem, effect.ChangeGuard, effect.SendData, effect.RunCode:
		return d.paint(colorAsk, s)
	case effect.RunDownload, effect.RunDecoded, effect.SendSecret, effect.RemoteShell, effect.Destroy:
		return d.paint(colorBlock, s)
	default:
		return d.paint(colorDim, s)
	}
}

// describe returns the object of an effect, the program with its class, and the reason.
func describe(e effect.Effect) string {
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
	case e.Variant() != "" && e.Reason != "":
		add("(" + e.Variant() + ": " + e.Reason + ")")
	case e.Variant() != "" || e.Reason != "":
		add("(" + e.Variant() + e.Reason + ")")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}
