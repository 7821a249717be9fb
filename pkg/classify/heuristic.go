package classify

import (
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// scanBudget is the maximum number of bytes that regular expressions read in one case. They take linear time,
// so this also limits the time: an input crafted to select many expressions for a long text is reported as
// unexamined.
const scanBudget = 1 << 20

// A scope says which rules run.
type scope uint8

const (
	scopeAll    scope = iota
	scopeBlock        // rules that block
	scopeAlways       // rules that always block
)

func (sc scope) covers(o Outcome) bool {
	switch sc {
	case scopeBlock:
		return o != Escalate
	case scopeAlways:
		return o == AlwaysBlock
	case scopeAll:
	}
	return true
}

// A hit is a rule that matched.
type hit struct {
	rule    int
	where   string // for people: the program, or the field and view; "" for effects that are not of commands
	perhaps bool   // it is uncertain whether the text is read, or the effect happens: at most ESCALATE
}

// who returns who may allow an action that a rule matches.
func (h hit) who(r *Rule) verdict.Who {
	if h.perhaps || r.Outcome == Escalate {
		return verdict.Evaluator
	}
	return verdict.Never
}

// A scratch holds the buffers of one run. It is used by one goroutine at a time.
type scratch struct {
	buf    []byte // bytes of lines
	lines  []line
	found  []uint64 // literals of clauses that occur
	texts  []uint64 // literals of patterns that occur
	hits   []hit
	read   []analysis.View // views of fields that were scanned already
	budget int
	over   bool // the budget is exhausted, or lines were skipped
}

func newScratch(eng *engine) *scratch {
	return &scratch{found: make([]uint64, eng.lineSet.Words()), texts: make([]uint64, eng.textSet.Words())}
}

func (s *scratch) reset() {
	clear(s.read) // they refer to texts of another case
	s.buf, s.lines, s.hits, s.read = s.buf[:0], s.lines[:0], s.hits[:0], s.read[:0]
	s.budget, s.over = scanBudget, false
}

// match reports whether an expression matches within the budget.
func (s *scratch) match(re *lazyRegexp, text []byte) bool {
	return s.spend(len(text)) && re.get(regexp.MustCompile).Match(text)
}

func (s *scratch) matchString(f *lazyFinder, text string) bool {
	if !s.spend(len(text)) {
		return false
	}
	found, read := f.get(prefilter.NewFinder).Match(text)
	if read > len(text) { // the places where a match may begin were read first
		s.spend(read - len(text))
	}
	return found
}

func (s *scratch) spend(n int) bool {
	s.budget -= n + 1
	if s.budget < 0 {
		s.over = true
	}
	return !s.over
}

// run matches a case with the rules of a scope and stores the matches in s.
func (eng *engine) run(s *scratch, c *analysis.Case, sc scope) {
	s.reset()
	if !s.appendLines(c.Effects) {
		s.over = true
	}
	for i := range s.lines {
		eng.runLine(s, c, sc, &s.lines[i])
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind == effect.Execute {
			continue
		}
		for _, id := range eng.byKind[e.Word()] {
			b := &eng.clauses[id]
			if r := &eng.rules[b.rule]; sc.covers(r.Outcome) && r.appliesTo(c) && b.holds(s, e, nil) {
				eng.hit(s, c, i, b.rule, "", b.perhaps(e))
			}
		}
	}
	eng.runTexts(s, c, sc)
	c.Writes(func(w *analysis.Case) {
		s.lines, s.read = s.lines[:0], s.read[:0] // both refer to the command
		eng.runTexts(s, w, sc)
	})
}

// runLine tries the clauses and patterns that could match one command.
func (eng *engine) runLine(s *scratch, c *analysis.Case, sc scope, l *line) {
	e := &c.Effects[l.effect]
	args := s.buf[l.args:l.end]
	clear(s.found)
	prefilter.Scan(eng.lineSet, args, s.found)
	eng.candidates(e, s.found, func(b *compiledClause) {
		if r := &eng.rules[b.rule]; sc.covers(r.Outcome) && r.appliesTo(c) && b.holds(s, e, args) {
			eng.hit(s, c, l.effect, b.rule, e.Program, e.Sure == effect.May)
		}
	})
	live := lineLiveness(e)
	if live == 0 {
		return
	}
	text := string(s.buf[l.start:l.end])
	eng.scan(s, c, sc, l.effect, analysis.View{Name: "raw", Field: "command", Text: text}, live)
	if strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 }) {
		eng.scan(s, c, sc, l.effect, analysis.View{Name: "folded", Field: "command", Text: decode.Fold(text)}, live)
	}
}

// runTexts matches the patterns with the views of the case.
func (eng *engine) runTexts(s *scratch, c *analysis.Case, sc scope) {
	live := commandLiveness(c)
	for _, v := range c.Views() {
		if v.Field == "command" {
			eng.scan(s, c, sc, noEffect, v, live)
		} else {
			eng.scanField(s, c, sc, v)
		}
	}
	if c.Action == nil || c.Action.Type == "execute_command" { // the views of a command contain every field
		return
	}
	for i := range eng.rules {
		r := &eng.rules[i]
		if len(r.fields) == 0 || !slices.Contains(r.types, c.Action.Type) {
			continue
		}
		for _, v := range c.Text(r.fields...) {
			if v.Field != "command" { // the views contain the command
				eng.scanField(s, c, sc, v)
			}
		}
	}
}

// scanField matches the patterns with a view of a field, only once although many rules read the same fields.
func (eng *engine) scanField(s *scratch, c *analysis.Case, sc scope, v analysis.View) {
	if slices.Contains(s.read, v) {
		return
	}
	s.read = append(s.read, v)
	eng.scan(s, c, sc, noEffect, v, isRead)
}

// noEffect is the index of the effect of a text that belongs to no effect.
const noEffect = -1

// scan matches the patterns with one text, of an effect or of the whole action.
func (eng *engine) scan(s *scratch, c *analysis.Case, sc scope, at int, v analysis.View, live liveness) {
	clear(s.texts)
	prefilter.Scan(eng.textSet, v.Text, s.texts)
	for w, set := range s.texts[:(len(eng.patterns)+63)/64] {
		for ; set != 0; set &= set - 1 {
			if id := 64*w + bits.TrailingZeros64(set); id < len(eng.patterns) && s.hasAll(&eng.patterns[id]) {
				eng.tryPattern(s, c, sc, at, id, v, live)
			}
		}
	}
	for _, i := range eng.always {
		eng.tryPattern(s, c, sc, at, i, v, live)
	}
}

// hasAll reports whether a text contains all literals and bytes that a pattern requires.
func (s *scratch) hasAll(p *textPattern) bool {
	for i := p.also; i < p.end; i++ {
		if s.texts[i/64]&(1<<(i%64)) == 0 {
			return false
		}
	}
	return true
}

func (eng *engine) tryPattern(s *scratch, c *analysis.Case, sc scope, at, id int, v analysis.View, live liveness) {
	p := &eng.patterns[id]
	r := &eng.rules[p.rule]
	ok, perhaps := true, false
	if v.Field == "command" {
		ok, perhaps = live.meets(r.needs)
	}
	if !ok || !sc.covers(r.Outcome) || !r.readsView(c, v) {
		return
	}
	for i := range len(p.bytes) {
		if strings.IndexByte(v.Text, p.bytes[i]) < 0 {
			return
		}
	}
	if s.matchString(&p.re, v.Text) && (p.except.expr == "" || !s.matchString(&p.except, v.Text)) {
		where := v.Field
		if v.Name != "raw" {
			where += " (" + v.Name + ")"
		}
		eng.hit(s, c, at, p.rule, where, perhaps && r.Outcome == Block)
	}
}

// appliesTo reports whether a rule applies to the action's type.
func (r *Rule) appliesTo(c *analysis.Case) bool {
	return len(r.types) == 0 || c.Action != nil && slices.Contains(r.types, c.Action.Type)
}

// readsView reports whether the patterns of a rule apply to a view.
func (r *Rule) readsView(c *analysis.Case, v analysis.View) bool {
	if !r.appliesTo(c) {
		return false
	}
	if len(r.views) > 0 && !slices.Contains(r.views, v.Name) {
		return false
	}
	if len(r.fields) > 0 {
		return slices.Contains(r.fields, v.Field)
	}
	switch v.Field {
	case "command", "path", "source", "destination", "url", "pattern":
		return true
	}
	return false
}

// hit records that a rule matched an effect, unless one of the rule's other
// conditions (requires, unless) is not met.
func (eng *engine) hit(s *scratch, c *analysis.Case, at, rule int, where string, perhaps bool) {
	met := analysis.RuleMatch{Tier: 1, Rule: eng.rules[rule].ID, Perhaps: perhaps}
	for i := range s.hits {
		if h := &s.hits[i]; h.rule == rule {
			c.RecordMatch(at, met)
			h.perhaps = h.perhaps && perhaps
			return
		}
	}
	if list := eng.requires[rule]; len(list) > 0 && !anyHolds(s, c, list) {
		return
	}
	if list := eng.unless[rule]; len(list) > 0 && anyHolds(s, c, list) {
		return
	}
	c.RecordMatch(at, met)
	s.hits = append(s.hits, hit{rule, where, perhaps})
}

// anyHolds reports whether one of the clauses holds for an effect of the case.
func anyHolds(s *scratch, c *analysis.Case, list []compiledClause) bool {
	next := 0
	for i := range c.Effects {
		e := &c.Effects[i]
		var args []byte
		if next < len(s.lines) && s.lines[next].effect == i {
			args = s.buf[s.lines[next].args:s.lines[next].end]
			next++
		}
		for k := range list {
			if list[k].holds(s, e, args) {
				return true
			}
		}
	}
	return false
}
