package speech

import (
	"bytes"
	"regexp"
	"sync"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/prefilter"
)

// Limits of a search. Lengths are in bytes of the normalized text that the rules read.
const (
	maxNearbyLiteralDistanceBytes = 260 // largest distance between a literal and another one that must be near it
	contextBytesBeforeLiteral     = 120 // bytes read before a literal, for a rule whose matches need not begin with the literal
	contextBytesAfterLiteral      = 400 // bytes read after a literal

	minScanBudgetBytesPerText   = 256 << 10 // bytes that the rules may read in a text, in addition to a quarter of its length
	bytesChargedPerMatchAttempt = 48        // bytes charged for trying a match that begins with a literal: most tries fail early
	maxHits                     = 200       // hits in one text, after which the search stops
)

// A PhraseHit is a place in a text where a rule found a phrase that addresses the agent.
type PhraseHit struct {
	Rule         *Rule
	Start, End   int    // bytes of the text: where the words of the phrase begin and end
	EncodingName string // rot13 or reversed if the phrase was found after this decoding; otherwise ""
}

// agentPromptInjectionSearcher returns the searcher for text that is addressed to an agent. It is created on first
// use.
var agentPromptInjectionSearcher = sync.OnceValue(func() *ruleSearcher { return newRuleSearcher(agentRules()) })

// AgentTargetedPromptInjectionRules returns the rules of [FindAgentTargetedPromptInjections].
func AgentTargetedPromptInjectionRules() []Rule { return agentRules() }

// FindAgentTargetedPromptInjections finds phrases in a text that address the agent that reads it.
// isTextHidden means that people do not see the text. isComplete is false if the search stopped
// early: after 200 hits, or in a text that consists mostly of the literals that rules search for.
//
// The time is linear: one scan of each normalized form of the text searches for the literals of all
// rules. The regular expression of a rule runs only around such a literal, and only if other
// literals that the rule requires are near.
func FindAgentTargetedPromptInjections(text string, isTextHidden bool) (hits []PhraseHit, isComplete bool) {
	return agentPromptInjectionSearcher().searchText(text, isTextHidden)
}

// A ruleSearcher searches texts for the phrases of its rules. It first finds the literals of the rules, and runs
// a regular expression only around them. Goroutines may share it.
type ruleSearcher struct {
	rules                      []Rule
	literalsForNormalizedWords *prefilter.LiteralSet // expression 2i has the literals of rule i, 2i+1 its nearbyLiterals; only rules that read words
	literalsForLowercasedText  *prefilter.LiteralSet
	regexps                    []func() *regexp.Regexp
	searchPool                 sync.Pool
}

func newRuleSearcher(rules []Rule) *ruleSearcher {
	s := &ruleSearcher{rules: rules, regexps: compileRules(rules)}
	words, raw := make([][]string, 2*len(rules)), make([][]string, 2*len(rules))
	for i, r := range rules {
		list := words
		if r.matchesRawText {
			list = raw
		}
		list[2*i], list[2*i+1] = r.literals, r.nearbyLiterals
	}
	var all, both bool
	s.literalsForNormalizedWords, all = prefilter.TryNewLiteralSet(words)
	s.literalsForLowercasedText, both = prefilter.TryNewLiteralSet(raw)
	if !all || !both {
		panic("speech: rules have too many literals")
	}
	s.searchPool.New = func() any {
		return &textSearch{searcher: s, literalPositionsByRuleIndex: make([]ruleLiteralPositions, len(rules)), latinSpellings: spellingCache{spell: latinSpelling}, lookalikeSpellings: spellingCache{spell: lookalikeSpelling}}
	}
	return s
}

// ruleLiteralPositions are where literals of one rule were met.
type ruleLiteralPositions struct {
	latestSeenNearbyLiteralOffset                  int   // offset of the last literal that the rule requires nearby; -1 for none
	latestSeenMainLiteralOffset                    int   // offset of the last text found from the rule's literals (not its nearbyLiterals); -1 for none
	pendingMatchWindowStart, pendingMatchWindowEnd int   // part of the text that is still to be matched; pendingMatchWindowEnd is 0 for none
	pendingMainLiteralOffsets                      []int // offsets of found literals at which a match is tried once one of the nearbyLiterals follows
}

// A textSearch is the state of the search of one text. Its memory is reused for the next text.
type textSearch struct {
	searcher                            *ruleSearcher
	literalPositionsByRuleIndex         []ruleLiteralPositions
	latinSpellings, lookalikeSpellings  spellingCache
	normalizedWords                     normalizedWordText
	lowercasedText, rot13OrReversedText []byte
	scanBudgetBytesLeft                 int // bytes that rules may still read
	hits                                []PhraseHit
}

func (s *ruleSearcher) searchText(text string, isTextHidden bool) (hits []PhraseHit, isComplete bool) {
	c := s.searchPool.Get().(*textSearch)
	defer s.searchPool.Put(c)
	c.hits, c.scanBudgetBytesLeft = nil, minScanBudgetBytesPerText+len(text)/4
	c.lowercasedText = appendLowerASCII(c.lowercasedText[:0], text)
	c.matchRulesNearLiterals(s.literalsForLowercasedText, c.lowercasedText, isTextHidden, "", func(i int) int { return i })
	ascii := c.normalizedWords.readWords(text, c.latinSpellings.spellingOf)
	c.matchRulesNearLiterals(s.literalsForNormalizedWords, c.normalizedWords.text, isTextHidden, "", c.normalizedWords.originalOffset)
	c.rot13OrReversedText = appendROT13(c.rot13OrReversedText[:0], c.normalizedWords.text)
	c.matchRulesNearLiterals(s.literalsForNormalizedWords, c.rot13OrReversedText, true, "rot13", c.normalizedWords.originalOffset)
	c.rot13OrReversedText = appendRunesReversed(c.rot13OrReversedText[:0], c.normalizedWords.text)
	c.matchRulesNearLiterals(s.literalsForNormalizedWords, c.rot13OrReversedText, true, "reversed", func(i int) int { return c.normalizedWords.originalOffset(len(c.normalizedWords.text) - i) })
	if leet := decodeLeet(string(c.lowercasedText)); leet != string(c.lowercasedText) {
		c.normalizedWords.readWords(leet, c.latinSpellings.spellingOf)
		c.matchRulesNearLiterals(s.literalsForNormalizedWords, c.normalizedWords.text, isTextHidden, "", c.normalizedWords.originalOffset)
	}
	if !ascii {
		c.normalizedWords.readWords(text, c.lookalikeSpellings.spellingOf)
		c.matchRulesNearLiterals(s.literalsForNormalizedWords, c.normalizedWords.text, isTextHidden, "", c.normalizedWords.originalOffset)
	}
	return c.hits, c.scanBudgetBytesLeft >= 0 && len(c.hits) < maxHits
}

// A textVariantSearch searches one form of a text: the original text, its normalised words, or a decoded
// form such as ROT13.
type textVariantSearch struct {
	*textSearch
	text                 []byte
	textHidden           bool
	variantName          string
	toOriginalTextOffset func(int) int // offset in the original text of a byte of the normalised one
}

// matchRulesNearLiterals runs the rules of a set on a form of the text.
func (c *textSearch) matchRulesNearLiterals(ruleLiterals *prefilter.LiteralSet, text []byte, isTextHidden bool, variantName string, toOriginalTextOffset func(int) int) {
	for i := range c.literalPositionsByRuleIndex {
		c.literalPositionsByRuleIndex[i] = ruleLiteralPositions{latestSeenNearbyLiteralOffset: -1, latestSeenMainLiteralOffset: -1, pendingMainLiteralOffsets: c.literalPositionsByRuleIndex[i].pendingMainLiteralOffsets[:0]}
	}
	r := textVariantSearch{c, text, isTextHidden, variantName, toOriginalTextOffset}
	prefilter.EachLiteralMatch(ruleLiterals, text, func(id, at int) {
		switch i := id / 2; {
		case c.searcher.rules[i].OnlyInHiddenText && !isTextHidden:
		case c.searcher.rules[i].matchesBeginWithLiteral:
			r.matchStartingAtLiteral(i, at, id%2 == 1)
		default:
			r.matchWindowAroundLiteral(i, at, id%2 == 1)
		}
	})
	for i := range c.literalPositionsByRuleIndex {
		if p := &c.literalPositionsByRuleIndex[i]; p.pendingMatchWindowEnd > 0 {
			r.matchWindow(i, p.pendingMatchWindowStart, p.pendingMatchWindowEnd)
		}
	}
}

// matchStartingAtLiteral handles a found literal of a rule whose matches all begin with a literal.
func (r *textVariantSearch) matchStartingAtLiteral(ruleIndex, literalOffset int, isNearbyLiteral bool) {
	p := &r.literalPositionsByRuleIndex[ruleIndex]
	switch {
	case isNearbyLiteral:
		p.latestSeenNearbyLiteralOffset = literalOffset
		for _, w := range p.pendingMainLiteralOffsets {
			if literalOffset-w <= maxNearbyLiteralDistanceBytes {
				r.addHitIfMatchStartsAt(ruleIndex, w)
			}
		}
		p.pendingMainLiteralOffsets = p.pendingMainLiteralOffsets[:0]
	case len(r.searcher.rules[ruleIndex].nearbyLiterals) == 0 || p.latestSeenNearbyLiteralOffset >= 0 && literalOffset-p.latestSeenNearbyLiteralOffset <= maxNearbyLiteralDistanceBytes:
		r.addHitIfMatchStartsAt(ruleIndex, literalOffset)
	default:
		if n := len(p.pendingMainLiteralOffsets); n > 0 && literalOffset-p.pendingMainLiteralOffsets[n-1] > maxNearbyLiteralDistanceBytes {
			p.pendingMainLiteralOffsets = p.pendingMainLiteralOffsets[:0]
		}
		p.pendingMainLiteralOffsets = append(p.pendingMainLiteralOffsets, literalOffset)
	}
}

// addHitIfMatchStartsAt adds the match of a rule that begins at a byte, if there is one.
func (r *textVariantSearch) addHitIfMatchStartsAt(ruleIndex, offset int) {
	if r.searcher.rules[ruleIndex].matchesBeginAtWord && offset > 0 && wordBytes[r.text[offset-1]] != 0 || len(r.hits) >= maxHits {
		return
	}
	if r.scanBudgetBytesLeft -= bytesChargedPerMatchAttempt; r.scanBudgetBytesLeft < 0 {
		return
	}
	if m := r.searcher.regexps[ruleIndex]().FindIndex(r.text[offset:r.wordEnd(offset+contextBytesAfterLiteral)]); m != nil {
		r.addHit(ruleIndex, offset, offset+m[1])
	}
}

// matchWindowAroundLiteral handles a found literal of a rule whose matches can contain the literal anywhere.
func (r *textVariantSearch) matchWindowAroundLiteral(ruleIndex, literalOffset int, isNearbyLiteral bool) {
	p := &r.literalPositionsByRuleIndex[ruleIndex]
	other := p.latestSeenNearbyLiteralOffset
	if isNearbyLiteral {
		p.latestSeenNearbyLiteralOffset, other = literalOffset, p.latestSeenMainLiteralOffset
	} else {
		p.latestSeenMainLiteralOffset = literalOffset
	}
	if p.latestSeenMainLiteralOffset < 0 || len(r.searcher.rules[ruleIndex].nearbyLiterals) > 0 && (other < 0 || literalOffset-other > maxNearbyLiteralDistanceBytes) {
		return
	}
	from, to := max(min(p.latestSeenMainLiteralOffset, literalOffset)-contextBytesBeforeLiteral, 0), min(p.latestSeenMainLiteralOffset+contextBytesAfterLiteral, len(r.text))
	if p.pendingMatchWindowEnd > 0 && from <= p.pendingMatchWindowEnd {
		p.pendingMatchWindowEnd = max(p.pendingMatchWindowEnd, to)
		return
	}
	if p.pendingMatchWindowEnd > 0 {
		r.matchWindow(ruleIndex, p.pendingMatchWindowStart, p.pendingMatchWindowEnd)
	}
	p.pendingMatchWindowStart, p.pendingMatchWindowEnd = from, to
}

// matchWindow adds the matches of a rule in a part of the text.
func (r *textVariantSearch) matchWindow(rule, from, to int) {
	for n := 0; n < maxWordCompletionBytes && from > 0 && r.text[from] != ' '; n++ {
		from--
	}
	to = r.wordEnd(to)
	for from < to && len(r.hits) < maxHits {
		if r.scanBudgetBytesLeft -= to - from; r.scanBudgetBytesLeft < 0 {
			return
		}
		m := r.searcher.regexps[rule]().FindIndex(r.text[from:to])
		if m == nil || m[1] == 0 {
			return
		}
		r.addHit(rule, from+m[0], from+m[1])
		from += m[1]
	}
}

// maxWordCompletionBytes is by how many bytes a window is extended so that it does not cut a word.
const maxWordCompletionBytes = 40

// wordEnd returns the end offset of the word that contains byte to of the text; the length of the text if to is
// beyond the text. It goes at most maxWordCompletionBytes bytes beyond to.
func (r *textVariantSearch) wordEnd(to int) int {
	to = min(to, len(r.text))
	for n := 0; n < maxWordCompletionBytes && to < len(r.text) && r.text[to] != ' '; n++ {
		to++
	}
	return to
}

// addHit keeps a hit, unless the same rule has one there already.
func (r *textVariantSearch) addHit(rule, from, to int) {
	h := PhraseHit{&r.searcher.rules[rule], r.toOriginalTextOffset(from), r.toOriginalTextOffset(to-1) + 1, r.variantName}
	if r.variantName == "reversed" {
		h.Start, h.End = r.toOriginalTextOffset(to), r.toOriginalTextOffset(from)
	}
	for _, k := range r.hits {
		if k.Rule == h.Rule && k.Start < h.End && h.Start < k.End {
			return
		}
	}
	r.hits = append(r.hits, h)
}

// appendLowerASCII appends a text with its ASCII letters in lower case.
func appendLowerASCII(b []byte, text string) []byte {
	b = append(b, text...)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return b
}

// appendROT13 appends lower-case words with each letter turned by half the alphabet.
func appendROT13(b, words []byte) []byte {
	b = append(b, words...)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = 'a' + (c-'a'+13)%26
		}
	}
	return b
}

// appendRunesReversed appends words from their end to their beginning.
func appendRunesReversed(b, words []byte) []byte {
	for len(words) > 0 {
		_, n := utf8.DecodeLastRune(words)
		b = append(b, words[len(words)-n:]...)
		words = words[:len(words)-n]
	}
	return bytes.TrimSpace(b)
}
