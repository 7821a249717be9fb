package policy

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/itchyny/gojq"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A gate is what a condition asks first: the type of the action, or an effect with
// certain fields. Most cases fail it, and then jq does not run.
//
//	.action.type == "http_request" and …
//	any(.effects[]; .kind == "run_code" and …)
//	any(.effects[]; .kind == "run_code" and …) | not
type gate struct {
	actionType string
	effect     []comparison // which one effect passes; nil if the gate asks for the type
	whole      bool         // the condition asks for nothing else
	not        bool         // the condition is the opposite
}

// A comparison compares a field of an effect with constants.
type comparison struct {
	field  string
	values []string // any of them
	not    bool     // it differs; of a list: it has another element
}

// The bounds within which jq cannot exceed those of a condition, so that a gate
// gives the answer that jq would give.
const (
	gateComparisons = 8        // constants
	gateValue       = 64       // bytes of a constant
	gateValues      = 200      // effects and the elements of their lists
	gateText        = 16 << 10 // bytes of those elements
)

// The forms of an expression that a gate is read from, in gojq's own spelling. No
// constant has an escape.
var (
	gateType  = prefilter.Lazy(`^\.action\.type == "([ !#-\[\]-~]*)"$`)
	gateField = prefilter.Lazy(`^\.([a-z]+) ([!=]=) "([ !#-\[\]-~]*)"$`)
	gateIn    = prefilter.Lazy(`^\.([a-z]+) // "" \| IN\("([ !#-\[\]-~]+(?:", "[ !#-\[\]-~]+)*)"\)$`)
	gateIndex = prefilter.Lazy(`^\.(labels|args) // \[\] \| index\("([ !#-\[\]-~]*)"\) != null( and .*)?$`)
	gateAny   = prefilter.Lazy(`^any\(\(\.(labels|args) // \[\]\)\[\]; \. ([!=]=) "([ !#-\[\]-~]*)"\)$`)
)

// gateOf reads the gate of an expression. It returns nil for one of another form.
func gateOf(expr string) *gate {
	q, err := gojq.Parse(expr)
	if err != nil {
		return nil
	}
	g := &gate{whole: true}
	if q.Op == gojq.OpPipe && q.Meta == nil && len(q.Imports)+len(q.FuncDefs) == 0 && q.Right.String() == "not" {
		g.not = true
		q = q.Left
	}
	all := conjuncts(nil, q)
	if m := gateType().FindStringSubmatch(all[0].String()); m != nil {
		g.actionType, g.whole = m[1], len(all) == 1
		return g
	}
	if len(all) > 1 {
		return nil
	}
	if all[0].Term == nil || all[0].Term.Type != gojq.TermTypeFunc || len(all[0].Term.SuffixList) > 0 || len(all[0].FuncDefs) > 0 {
		return nil
	}
	call := all[0].Term.Func
	if call.Name != "any" || len(call.Args) != 2 || call.Args[0].String() != ".effects[]" {
		return nil
	}
	constants := 0
	for _, part := range conjuncts(nil, call.Args[1]) {
		c, whole := comparisonOf(part.String())
		if c == nil || c.long() || constants+len(c.values) > gateComparisons {
			g.whole = false
			break
		}
		g.effect = append(g.effect, *c)
		constants += len(c.values)
		if !whole {
			g.whole = false
			break
		}
	}
	if g.effect == nil {
		return nil
	}
	return g
}

// conjuncts appends the parts of a query that "and" joins, in the order in which
// jq tries them.
func conjuncts(dst []*gojq.Query, q *gojq.Query) []*gojq.Query {
	switch {
	case q.Meta != nil || len(q.Imports) > 0 || len(q.FuncDefs) > 0:
	case q.Term != nil && q.Term.Type == gojq.TermTypeQuery && len(q.Term.SuffixList) == 0:
		return conjuncts(dst, q.Term.Query)
	case q.Op == gojq.OpAnd:
		return conjuncts(conjuncts(dst, q.Left), q.Right)
	}
	return append(dst, q)
}

// comparisonOf reads a comparison. whole is false if more follows it.
func comparisonOf(text string) (c *comparison, whole bool) {
	if m := gateField().FindStringSubmatch(text); m != nil && slices.Contains(textNames, m[1]) {
		return &comparison{m[1], m[3:], m[2] == "!="}, true
	}
	if m := gateIn().FindStringSubmatch(text); m != nil && slices.Contains(textNames, m[1]) {
		return &comparison{m[1], strings.Split(m[2], `", "`), false}, true
	}
	if m := gateIndex().FindStringSubmatch(text); m != nil {
		return &comparison{m[1], m[2:3], false}, m[3] == ""
	}
	if m := gateAny().FindStringSubmatch(text); m != nil {
		return &comparison{m[1], m[3:], m[2] == "!="}, true
	}
	return nil, false
}

// long reports whether a constant is longer than gates take.
func (c *comparison) long() bool {
	return slices.ContainsFunc(c.values, func(v string) bool { return len(v) > gateValue })
}

// passes reports whether an effect passes a comparison.
func (c *comparison) passes(e *effect.Effect) bool {
	other := func(s string) bool { return slices.Contains(c.values, s) != c.not }
	switch c.field {
	case "labels":
		return slices.ContainsFunc(e.Labels, func(l effect.Label) bool { return other(string(l)) })
	case "args":
		return slices.ContainsFunc(e.Args, other)
	}
	s := textOf(e, c.field)
	return (slices.Contains(c.values, s) && (s != "" || c.field == "kind")) != c.not
}

// passes reports whether an effect is the one that a gate asks for.
func (g *gate) passes(e *effect.Effect) bool {
	for i := range g.effect {
		if !g.effect[i].passes(e) {
			return false
		}
	}
	return true
}

// answer returns what jq would return, if the gate is enough to know.
func (g *gate) answer(s *search) (holds, known bool) {
	if g == nil || s.ctx.Err() != nil || !s.gated() {
		return false, false
	}
	passes := s.c.Action.Type == g.actionType
	if g.effect != nil {
		passes = false
		for i := range s.c.Effects {
			passes = passes || g.passes(&s.c.Effects[i])
		}
	}
	return passes != g.not, !passes || g.whole
}

// gated reports whether a case is within the bounds of gates.
func (s *search) gated() bool {
	if s.within == 0 {
		s.within = -1
		if withinGates(s.c) {
			s.within = 1
		}
	}
	return s.within > 0
}

func withinGates(c *analysis.Case) bool {
	values, text := len(c.Effects), 0
	for i := range c.Effects {
		e := &c.Effects[i]
		values += len(e.Labels) + len(e.Args)
		for _, l := range e.Labels {
			text += len(l)
		}
		for _, a := range e.Args {
			text += len(a)
		}
	}
	return values <= gateValues && text <= gateText && shortNumbers(c.Action.Payload)
}

// shortNumbers reports whether jq takes all numbers of a payload, see [jsonValue].
func shortNumbers(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if !shortNumbers(e) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !shortNumbers(e) })
	case jsontext.Value:
		return len(v) <= maxNumber
	}
	return true
}
