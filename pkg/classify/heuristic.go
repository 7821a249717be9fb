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

// maxScannedBytesPerCase is the maximum number of bytes that regular expressions read in one case. They take linear time,
// so this also limits the time: an input crafted to select many expressions for a long text is reported as
// unexamined.
const maxScannedBytesPerCase = 1 << 20

// A ruleScope says which rules run.
type ruleScope uint8

const (
	ruleScopeAll            ruleScope = iota
	ruleScopeBlocking                 // rules that block
	ruleScopeAlwaysBlocking           // rules that always block
)

func (sc ruleScope) covers(o RuleOutcome) bool {
	switch sc {
	case ruleScopeBlocking:
		return o != Escalate
	case ruleScopeAlwaysBlocking:
		return o == AlwaysBlock
	case ruleScopeAll:
	}
	return true
}

// A ruleHit is a rule that matched.
type ruleHit struct {
	ruleIndex                int
	matchLocationDescription string // for people: program of the effect, or field of the matching text and how it was transformed; "" otherwise
	isUncertainMatch         bool   // the effect may not happen, or the text may not be read or run, so the rule can only ESCALATE
}

// requiredApprovalAuthority returns who may allow an action that a rule matches.
func (h ruleHit) requiredApprovalAuthority(r *Rule) verdict.ApprovalAuthority {
	if h.isUncertainMatch || r.Outcome == Escalate {
		return verdict.AuthorityEvaluator
	}
	return verdict.AuthorityNoneSuffices
}

// A ruleMatchBuffers holds the buffers of one run. It is used by one goroutine at a time.
type ruleMatchBuffers struct {
	commandLineText      []byte // text of all commands; each entry of the field lines is a part of it
	commandLineSpans     []commandLineSpan
	foundArgLiterals     []uint64 // bit i: the arguments of the command contain a literal of clause i
	foundTextLiterals    []uint64 // bit i: the text contains a literal of expression i of ruleEngine.textLiterals
	hits                 []ruleHit
	scannedTextVariants  []analysis.PayloadTextVariant // texts of fields other than the command with which the patterns were already matched
	scanBytesLeft        int
	isScanBudgetExceeded bool // the budget is exhausted, or lines were skipped
}

func newRuleMatchBuffers(eng *ruleEngine) *ruleMatchBuffers {
	return &ruleMatchBuffers{foundArgLiterals: make([]uint64, eng.argLiterals.ExpressionBitsetWords()), foundTextLiterals: make([]uint64, eng.textLiterals.ExpressionBitsetWords())}
}

func (s *ruleMatchBuffers) reset() {
	clear(s.scannedTextVariants) // they refer to texts of another case
	s.commandLineText, s.commandLineSpans, s.hits, s.scannedTextVariants = s.commandLineText[:0], s.commandLineSpans[:0], s.hits[:0], s.scannedTextVariants[:0]
	s.scanBytesLeft, s.isScanBudgetExceeded = maxScannedBytesPerCase, false
}

// match reports whether an expression matches within the budget.
func (s *ruleMatchBuffers) match(re *lazyRegexp, text []byte) bool {
	return s.spendScanBytes(len(text)) && re.get(regexp.MustCompile).Match(text)
}

func (s *ruleMatchBuffers) matchString(f *lazyFinder, text string) bool {
	if !s.spendScanBytes(len(text)) {
		return false
	}
	found, read := f.get(prefilter.NewRegexpFinder).Match(text)
	if read > len(text) { // Match read parts of the text more than once: charge the budget for that, too
		s.spendScanBytes(read - len(text))
	}
	return found
}

func (s *ruleMatchBuffers) spendScanBytes(byteCount int) bool {
	s.scanBytesLeft -= byteCount + 1
	if s.scanBytesLeft < 0 {
		s.isScanBudgetExceeded = true
	}
	return !s.isScanBudgetExceeded
}

// run matches a case with the rules of a scope and stores the matches in s.
func (eng *ruleEngine) run(s *ruleMatchBuffers, c *analysis.ActionCase, sc ruleScope) {
	s.reset()
	if !s.tryAppendAllCommandLines(c.Effects) {
		s.isScanBudgetExceeded = true
	}
	for i := range s.commandLineSpans {
		eng.runLine(s, c, sc, &s.commandLineSpans[i])
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind == effect.Execute {
			continue
		}
		for _, id := range eng.clauseIndexesByEffectKind[e.KindForPolicies()] {
			b := &eng.clauses[id]
			if r := &eng.rules[b.ruleIndex]; sc.covers(r.Outcome) && r.appliesTo(c) && b.holds(s, e, nil) {
				eng.recordRuleMatch(s, c, i, b.ruleIndex, "", b.isUncertainMatch(e))
			}
		}
	}
	eng.matchTextVariants(s, c, sc)
	c.EachFileWriteCase(func(w *analysis.ActionCase) {
		s.commandLineSpans, s.scannedTextVariants = s.commandLineSpans[:0], s.scannedTextVariants[:0] // both belong to the command, not to the file that it writes
		eng.matchTextVariants(s, w, sc)
	})
}

// runLine tries the clauses and patterns that could match one command.
func (eng *ruleEngine) runLine(s *ruleMatchBuffers, c *analysis.ActionCase, sc ruleScope, l *commandLineSpan) {
	e := &c.Effects[l.effectIndex]
	args := s.commandLineText[l.argsStart:l.end]
	clear(s.foundArgLiterals)
	prefilter.ScanForLiterals(eng.argLiterals, args, s.foundArgLiterals)
	eng.yieldCandidateClauses(e, s.foundArgLiterals, func(b *compiledClause) {
		if r := &eng.rules[b.ruleIndex]; sc.covers(r.Outcome) && r.appliesTo(c) && b.holds(s, e, args) {
			eng.recordRuleMatch(s, c, l.effectIndex, b.ruleIndex, e.Program, e.Certainty == effect.Possible)
		}
	})
	live := argumentTextUse(e)
	if live == 0 {
		return
	}
	text := string(s.commandLineText[l.start:l.end])
	eng.matchTextPatterns(s, c, sc, l.effectIndex, analysis.PayloadTextVariant{TransformationName: "raw", Field: "command", Text: text}, live)
	if strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 }) {
		eng.matchTextPatterns(s, c, sc, l.effectIndex, analysis.PayloadTextVariant{TransformationName: "folded", Field: "command", Text: decode.FoldUnicodeLookalikes(text)}, live)
	}
}

// matchTextVariants matches the rules' text patterns with the text variants of the case.
func (eng *ruleEngine) matchTextVariants(s *ruleMatchBuffers, c *analysis.ActionCase, sc ruleScope) {
	live := commandTextUse(c)
	for _, v := range c.TextVariants() {
		if v.Field == "command" {
			eng.matchTextPatterns(s, c, sc, noEffectIndex, v, live)
		} else {
			eng.scanField(s, c, sc, v)
		}
	}
	if c.Action == nil || c.Action.Type == "execute_command" { // TextVariants already contains every field of a command
		return
	}
	for i := range eng.rules {
		r := &eng.rules[i]
		if len(r.payloadFields) == 0 || !slices.Contains(r.actionTypes, c.Action.Type) {
			continue
		}
		for _, v := range c.FieldTextVariants(r.payloadFields...) {
			if v.Field != "command" { // TextVariants already contained the command
				eng.scanField(s, c, sc, v)
			}
		}
	}
}

// scanField matches the patterns with a view of a field, only once although many rules read the same fields.
func (eng *ruleEngine) scanField(s *ruleMatchBuffers, c *analysis.ActionCase, sc ruleScope, v analysis.PayloadTextVariant) {
	if slices.Contains(s.scannedTextVariants, v) {
		return
	}
	s.scannedTextVariants = append(s.scannedTextVariants, v)
	eng.matchTextPatterns(s, c, sc, noEffectIndex, v, commandTextReachesReader)
}

// noEffectIndex is the index for a text that belongs to the whole action, not to one effect.
const noEffectIndex = -1

// matchTextPatterns matches the patterns with one text, of an effect or of the whole action.
func (eng *ruleEngine) matchTextPatterns(s *ruleMatchBuffers, c *analysis.ActionCase, sc ruleScope, effectIndex int, v analysis.PayloadTextVariant, use commandTextUseBits) {
	clear(s.foundTextLiterals)
	prefilter.ScanForLiterals(eng.textLiterals, v.Text, s.foundTextLiterals)
	for w, set := range s.foundTextLiterals[:(len(eng.patterns)+63)/64] {
		for ; set != 0; set &= set - 1 {
			if id := 64*w + bits.TrailingZeros64(set); id < len(eng.patterns) && s.containsAllRequiredLiterals(&eng.patterns[id]) {
				eng.tryPattern(s, c, sc, effectIndex, id, v, use)
			}
		}
	}
	for _, i := range eng.patternsWithoutLiterals {
		eng.tryPattern(s, c, sc, effectIndex, i, v, use)
	}
}

// containsAllRequiredLiterals reports whether a text contains all literals and bytes that a pattern requires.
func (s *ruleMatchBuffers) containsAllRequiredLiterals(p *textPattern) bool {
	for i := p.firstLiteralSetIndex; i < p.literalSetsEndIndex; i++ {
		if s.foundTextLiterals[i/64]&(1<<(i%64)) == 0 {
			return false
		}
	}
	return true
}

func (eng *ruleEngine) tryPattern(s *ruleMatchBuffers, c *analysis.ActionCase, sc ruleScope, effectIndex, patternIndex int, v analysis.PayloadTextVariant, use commandTextUseBits) {
	p := &eng.patterns[patternIndex]
	r := &eng.rules[p.ruleIndex]
	ok, perhaps := true, false
	if v.Field == "command" {
		ok, perhaps = use.satisfies(r.matchCondition)
	}
	if !ok || !sc.covers(r.Outcome) || !r.appliesToTextVariant(c, v) {
		return
	}
	for i := range len(p.requiredByteSet) {
		if strings.IndexByte(v.Text, p.requiredByteSet[i]) < 0 {
			return
		}
	}
	if s.matchString(&p.re, v.Text) && (p.excludedTextFinder.expr == "" || !s.matchString(&p.excludedTextFinder, v.Text)) {
		where := v.Field
		if v.TransformationName != "raw" {
			where += " (" + v.TransformationName + ")"
		}
		eng.recordRuleMatch(s, c, effectIndex, p.ruleIndex, where, perhaps && r.Outcome == Block)
	}
}

// appliesTo reports whether a rule applies to the action's type.
func (r *Rule) appliesTo(c *analysis.ActionCase) bool {
	return len(r.actionTypes) == 0 || c.Action != nil && slices.Contains(r.actionTypes, c.Action.Type)
}

// appliesToTextVariant reports whether the patterns of a rule apply to a text variant.
func (r *Rule) appliesToTextVariant(c *analysis.ActionCase, v analysis.PayloadTextVariant) bool {
	if !r.appliesTo(c) {
		return false
	}
	if len(r.textTransformationNames) > 0 && !slices.Contains(r.textTransformationNames, v.TransformationName) {
		return false
	}
	if len(r.payloadFields) > 0 {
		return slices.Contains(r.payloadFields, v.Field)
	}
	switch v.Field {
	case "command", "path", "source", "destination", "url", "pattern":
		return true
	}
	return false
}

// recordRuleMatch records that a rule matched an effect, unless one of the rule's other
// conditions (requires, unless) is not met.
func (eng *ruleEngine) recordRuleMatch(s *ruleMatchBuffers, c *analysis.ActionCase, effectIndex, ruleIndex int, location string, isUncertain bool) {
	met := analysis.RuleMatch{Tier: 1, RuleNameOrID: eng.rules[ruleIndex].ID, Uncertain: isUncertain}
	for i := range s.hits {
		if h := &s.hits[i]; h.ruleIndex == ruleIndex {
			c.RecordMatch(effectIndex, met)
			h.isUncertainMatch = h.isUncertainMatch && isUncertain
			return
		}
	}
	if list := eng.requiredClausesByRule[ruleIndex]; len(list) > 0 && !anyClauseHolds(s, c, list) {
		return
	}
	if list := eng.forbiddenClausesByRule[ruleIndex]; len(list) > 0 && anyClauseHolds(s, c, list) {
		return
	}
	c.RecordMatch(effectIndex, met)
	s.hits = append(s.hits, ruleHit{ruleIndex, location, isUncertain})
}

// anyClauseHolds reports whether one of the clauses holds for an effect of the case.
func anyClauseHolds(s *ruleMatchBuffers, c *analysis.ActionCase, list []compiledClause) bool {
	next := 0
	for i := range c.Effects {
		e := &c.Effects[i]
		var args []byte
		if next < len(s.commandLineSpans) && s.commandLineSpans[next].effectIndex == i {
			args = s.commandLineText[s.commandLineSpans[next].argsStart:s.commandLineSpans[next].end]
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
