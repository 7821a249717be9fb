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
	maxNearDistance = 260 // largest distance between a literal and another one that must be near it
	contextBefore   = 120 // bytes read before a literal, for a rule whose matches need not begin with the literal
	contextAfter    = 400 // bytes read after a literal

	baseReadBudget   = 256 << 10 // bytes that the rules may read in a text, in addition to a quarter of its length
	matchAttemptCost = 48        // bytes charged for trying a match that begins with a literal: most tries fail early
	maxHits          = 200       // hits in one text, after which the search stops
)

// A PhraseHit is a phrase in a text.
type PhraseHit struct {
	Rule       *Rule
	Start, End int    // bytes of the text: where the words of the phrase begin and end
	Form       string // rot13 or reversed if the phrase was found after this decoding; otherwise ""
}

// agentSearcher returns the searcher for text that is addressed to an agent. It is created on first
// use.
var agentSearcher = sync.OnceValue(func() *ruleSearcher { return newRuleSearcher(agentRules()) })

// AgentRules returns the rules of [FindAgentSpeech].
func AgentRules() []Rule { return agentRules() }

// FindAgentSpeech finds phrases in a text that address the agent that reads it, in linear time: one
// scan of each form of the text looks for literals, and a rule's expression runs only around a
// literal that has the literals it requires nearby. hidden means that people do not see the text.
// whole is false if the search stopped early: after 200 hits, or in a text that consists mostly of
// such literals.
func FindAgentSpeech(text string, hidden bool) (hits []PhraseHit, whole bool) {
	return agentSearcher().searchText(text, hidden)
}

// A ruleSearcher reads texts around literals. Goroutines may share it.
type ruleSearcher struct {
	rules        []Rule
	wordLiterals *prefilter.LiteralSet // literals of rules that read words: expression 2i has rule i's own, 2i+1 those required nearby
	rawLiterals  *prefilter.LiteralSet
	regexps      []func() *regexp.Regexp
	searchPool   sync.Pool
}

func newRuleSearcher(rules []Rule) *ruleSearcher {
	s := &ruleSearcher{rules: rules, regexps: compileRules(rules)}
	words, raw := make([][]string, 2*len(rules)), make([][]string, 2*len(rules))
	for i, r := range rules {
		list := words
		if r.raw {
			list = raw
		}
		list[2*i], list[2*i+1] = r.literals, r.near
	}
	var all, both bool
	s.wordLiterals, all = prefilter.New(words)
	s.rawLiterals, both = prefilter.New(raw)
	if !all || !both {
		panic("speech: rules have too many literals")
	}
	s.searchPool.New = func() any {
		return &textSearch{searcher: s, places: make([]literalPlaces, len(rules)), latin: spellingCache{spell: latinSpelling}, folded: spellingCache{spell: lookalikeSpelling}}
	}
	return s
}

// literalPlaces are where literals of one rule were met.
type literalPlaces struct {
	lastNearLiteral        int   // offset of the last literal that the rule requires nearby; -1 for none
	lastMainLiteral        int   // offset of the rule's last own literal, not one required nearby; -1 for none
	windowStart, windowEnd int   // part of the text that is still to be matched; windowEnd is 0 for none
	pendingStarts          []int // offsets of literals that begin a match if a literal required nearby follows
}

// A textSearch is the state of the search of one text. Its memory is reused for the next text.
type textSearch struct {
	searcher           *ruleSearcher
	places             []literalPlaces
	latin, folded      spellingCache
	form               wordText
	lower, transformed []byte
	bytesLeft          int // bytes that rules may still read
	hits               []PhraseHit
}

func (s *ruleSearcher) searchText(text string, hidden bool) (hits []PhraseHit, whole bool) {
	c := s.searchPool.Get().(*textSearch)
	defer s.searchPool.Put(c)
	c.hits, c.bytesLeft = nil, baseReadBudget+len(text)/4
	c.lower = appendLowerASCII(c.lower[:0], text)
	c.runRules(s.rawLiterals, c.lower, hidden, "", func(i int) int { return i })
	ascii := c.form.readWords(text, c.latin.spellingOf)
	c.runRules(s.wordLiterals, c.form.text, hidden, "", c.form.originalOffset)
	c.transformed = appendROT13(c.transformed[:0], c.form.text)
	c.runRules(s.wordLiterals, c.transformed, true, "rot13", c.form.originalOffset)
	c.transformed = appendReversed(c.transformed[:0], c.form.text)
	c.runRules(s.wordLiterals, c.transformed, true, "reversed", func(i int) int { return c.form.originalOffset(len(c.form.text) - i) })
	if leet := decodeLeet(string(c.lower)); leet != string(c.lower) {
		c.form.readWords(leet, c.latin.spellingOf)
		c.runRules(s.wordLiterals, c.form.text, hidden, "", c.form.originalOffset)
	}
	if !ascii {
		c.form.readWords(text, c.folded.spellingOf)
		c.runRules(s.wordLiterals, c.form.text, hidden, "", c.form.originalOffset)
	}
	return c.hits, c.bytesLeft >= 0 && len(c.hits) < maxHits
}

// A formSearch searches one form of a text: the original text, its normalised words, or a decoded
// form such as ROT13.
type formSearch struct {
	*textSearch
	text           []byte
	textHidden     bool
	formName       string
	originalOffset func(int) int // offset in the original text of a byte of the normalised one
}

// runRules runs the rules of a set on a form of the text.
func (c *textSearch) runRules(set *prefilter.LiteralSet, text []byte, hidden bool, form string, origin func(int) int) {
	for i := range c.places {
		c.places[i] = literalPlaces{lastNearLiteral: -1, lastMainLiteral: -1, pendingStarts: c.places[i].pendingStarts[:0]}
	}
	r := formSearch{c, text, hidden, form, origin}
	prefilter.Each(set, text, func(id, at int) {
		switch i := id / 2; {
		case c.searcher.rules[i].Hidden && !hidden:
		case c.searcher.rules[i].begins:
			r.matchFromStart(i, at, id%2 == 1)
		default:
			r.matchAround(i, at, id%2 == 1)
		}
	})
	for i := range c.places {
		if p := &c.places[i]; p.windowEnd > 0 {
			r.matchWindow(i, p.windowStart, p.windowEnd)
		}
	}
}

// matchFromStart handles a found literal of a rule whose matches all begin with a literal.
func (r *formSearch) matchFromStart(rule, at int, near bool) {
	p := &r.places[rule]
	switch {
	case near:
		p.lastNearLiteral = at
		for _, w := range p.pendingStarts {
			if at-w <= maxNearDistance {
				r.addMatchAt(rule, w)
			}
		}
		p.pendingStarts = p.pendingStarts[:0]
	case len(r.searcher.rules[rule].near) == 0 || p.lastNearLiteral >= 0 && at-p.lastNearLiteral <= maxNearDistance:
		r.addMatchAt(rule, at)
	default:
		if n := len(p.pendingStarts); n > 0 && at-p.pendingStarts[n-1] > maxNearDistance {
			p.pendingStarts = p.pendingStarts[:0]
		}
		p.pendingStarts = append(p.pendingStarts, at)
	}
}

// addMatchAt adds the match of a rule that begins at a byte, if there is one.
func (r *formSearch) addMatchAt(rule, at int) {
	if r.searcher.rules[rule].word && at > 0 && wordBytes[r.text[at-1]] != 0 || len(r.hits) >= maxHits {
		return
	}
	if r.bytesLeft -= matchAttemptCost; r.bytesLeft < 0 {
		return
	}
	if m := r.searcher.regexps[rule]().FindIndex(r.text[at:r.wordEnd(at+contextAfter)]); m != nil {
		r.addHit(rule, at, at+m[1])
	}
}

// matchAround handles a found literal of a rule whose matches can contain the literal anywhere.
func (r *formSearch) matchAround(rule, at int, near bool) {
	p := &r.places[rule]
	other := p.lastNearLiteral
	if near {
		p.lastNearLiteral, other = at, p.lastMainLiteral
	} else {
		p.lastMainLiteral = at
	}
	if p.lastMainLiteral < 0 || len(r.searcher.rules[rule].near) > 0 && (other < 0 || at-other > maxNearDistance) {
		return
	}
	from, to := max(min(p.lastMainLiteral, at)-contextBefore, 0), min(p.lastMainLiteral+contextAfter, len(r.text))
	if p.windowEnd > 0 && from <= p.windowEnd {
		p.windowEnd = max(p.windowEnd, to)
		return
	}
	if p.windowEnd > 0 {
		r.matchWindow(rule, p.windowStart, p.windowEnd)
	}
	p.windowStart, p.windowEnd = from, to
}

// matchWindow adds the matches of a rule in a part of the text.
func (r *formSearch) matchWindow(rule, from, to int) {
	for n := 0; n < maxWordTail && from > 0 && r.text[from] != ' '; n++ {
		from--
	}
	to = r.wordEnd(to)
	for from < to && len(r.hits) < maxHits {
		if r.bytesLeft -= to - from; r.bytesLeft < 0 {
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

// maxWordTail is by how many bytes a window is extended so that it does not cut a word.
const maxWordTail = 40

// wordEnd returns where the word ends that a byte is in.
func (r *formSearch) wordEnd(to int) int {
	to = min(to, len(r.text))
	for n := 0; n < maxWordTail && to < len(r.text) && r.text[to] != ' '; n++ {
		to++
	}
	return to
}

// addHit keeps a hit, unless the same rule has one there already.
func (r *formSearch) addHit(rule, from, to int) {
	h := PhraseHit{&r.searcher.rules[rule], r.originalOffset(from), r.originalOffset(to-1) + 1, r.formName}
	if r.formName == "reversed" {
		h.Start, h.End = r.originalOffset(to), r.originalOffset(from)
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

// appendReversed appends words from their end to their beginning.
func appendReversed(b, words []byte) []byte {
	for len(words) > 0 {
		_, n := utf8.DecodeLastRune(words)
		b = append(b, words[len(words)-n:]...)
		words = words[:len(words)-n]
	}
	return bytes.TrimSpace(b)
}
