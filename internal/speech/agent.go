package speech

import (
	"bytes"
	"regexp"
	"sync"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/prefilter"
)

// Bounds of a search, in bytes of a form of the text.
const (
	maxNearDistance = 260 // between a literal and one that must stand near it
	bytesBefore     = 120 // that a rule reads before a literal, if that does not begin its matches
	bytesAfter      = 400 // and after it

	freeRoom = 256 << 10 // that rules read of a text of any length
	perLook  = 48        // that a look at a literal counts which begins a match: most end there
	maxHits  = 200       // of one text
)

// A Hit is a phrase in a text.
type Hit struct {
	Rule       *Rule
	Start, End int    // bytes of the text: where the words of the phrase begin and end
	Form       string // in which it was read, if people do not read it: rot13 or reversed
}

// agent is what finds speech to an agent.
var agent = sync.OnceValue(func() *searcher { return newSearcher(agentRules()) })

// AgentRules returns the rules of [Agent].
func AgentRules() []Rule { return agentRules() }

// Agent finds what a text says to the agent that reads it, in linear time: one scan
// of each form of the text looks for literals, and an expression runs only around
// one that has what it needs nearby. hidden says that people do not see the text.
// It reports whether all that had to be was read: a text that is made of hardly
// anything but such places is not, nor is one after its 200th hit.
func Agent(text string, hidden bool) (hits []Hit, whole bool) { return agent().search(text, hidden) }

// A searcher reads texts around literals. Goroutines may share it.
type searcher struct {
	rules   []Rule
	words   *prefilter.Set // of rules that read words: 2i are the literals of rule i, 2i+1 those near
	raw     *prefilter.Set
	regexps []func() *regexp.Regexp
	pool    sync.Pool
}

func newSearcher(rules []Rule) *searcher {
	s := &searcher{rules: rules, regexps: compiled(rules)}
	words, raw := make([][]string, 2*len(rules)), make([][]string, 2*len(rules))
	for i, r := range rules {
		list := words
		if r.raw {
			list = raw
		}
		list[2*i], list[2*i+1] = r.literals, r.near
	}
	var all, both bool
	s.words, all = prefilter.New(words)
	s.raw, both = prefilter.New(raw)
	if !all || !both {
		panic("speech: rules have too many literals")
	}
	s.pool.New = func() any {
		return &search{s: s, places: make([]places, len(rules)), latin: spelling{spell: latin}, folded: spelling{spell: folded}}
	}
	return s
}

// places are where literals of one rule were met.
type places struct {
	near     int   // the last that must stand near; -1 for none
	first    int   // the last other one; -1 for none
	from, to int   // the part of the window around a match that is still to be read; to is 0 for none
	waiting  []int // those that begin a match, if one near follows
}

// A search is one of a text. It keeps its memory for the next.
type search struct {
	s             *searcher
	places        []places
	latin, folded spelling
	form          form
	lower, turned []byte
	room          int // bytes that rules may still read
	hits          []Hit
}

func (s *searcher) search(text string, hidden bool) (hits []Hit, whole bool) {
	c := s.pool.Get().(*search)
	defer s.pool.Put(c)
	c.hits, c.room = nil, freeRoom+len(text)/4
	c.lower = lowerASCII(c.lower[:0], text)
	c.read(s.raw, c.lower, hidden, "", func(i int) int { return i })
	ascii := c.form.read(text, c.latin.of)
	c.read(s.words, c.form.text, hidden, "", c.form.origin)
	c.turned = rot13(c.turned[:0], c.form.text)
	c.read(s.words, c.turned, true, "rot13", c.form.origin)
	c.turned = reversed(c.turned[:0], c.form.text)
	c.read(s.words, c.turned, true, "reversed", func(i int) int { return c.form.origin(len(c.form.text) - i) })
	if leet := unleet(string(c.lower)); leet != string(c.lower) {
		c.form.read(leet, c.latin.of)
		c.read(s.words, c.form.text, hidden, "", c.form.origin)
	}
	if !ascii {
		c.form.read(text, c.folded.of)
		c.read(s.words, c.form.text, hidden, "", c.form.origin)
	}
	return c.hits, c.room >= 0 && len(c.hits) < maxHits
}

// A formSearch is one form of the text of a search.
type formSearch struct {
	*search
	text   []byte
	hidden bool
	form   string
	origin func(int) int // where bytes of the form come from
}

// read runs the rules of a set on a form of the text.
func (c *search) read(set *prefilter.Set, text []byte, hidden bool, form string, origin func(int) int) {
	for i := range c.places {
		c.places[i] = places{near: -1, first: -1, waiting: c.places[i].waiting[:0]}
	}
	r := formSearch{c, text, hidden, form, origin}
	prefilter.Each(set, text, func(id, at int) {
		switch i := id / 2; {
		case c.s.rules[i].Hidden && !hidden:
		case c.s.rules[i].begins:
			r.matchFromStart(i, at, id%2 == 1)
		default:
			r.matchAround(i, at, id%2 == 1)
		}
	})
	for i := range c.places {
		if p := &c.places[i]; p.to > 0 {
			r.window(i, p.from, p.to)
		}
	}
}

// matchFromStart takes a literal of a rule of which all matches begin with one.
func (r *formSearch) matchFromStart(rule, at int, near bool) {
	p := &r.places[rule]
	switch {
	case near:
		p.near = at
		for _, w := range p.waiting {
			if at-w <= maxNearDistance {
				r.addMatchAt(rule, w)
			}
		}
		p.waiting = p.waiting[:0]
	case len(r.s.rules[rule].near) == 0 || p.near >= 0 && at-p.near <= maxNearDistance:
		r.addMatchAt(rule, at)
	default:
		if n := len(p.waiting); n > 0 && at-p.waiting[n-1] > maxNearDistance {
			p.waiting = p.waiting[:0]
		}
		p.waiting = append(p.waiting, at)
	}
}

// addMatchAt adds the match of a rule that begins at a byte, if there is one.
func (r *formSearch) addMatchAt(rule, at int) {
	if r.s.rules[rule].word && at > 0 && wordByte[r.text[at-1]] != 0 || len(r.hits) >= maxHits {
		return
	}
	if r.room -= perLook; r.room < 0 {
		return
	}
	if m := r.s.regexps[rule]().FindIndex(r.text[at:r.wordEnd(at+bytesAfter)]); m != nil {
		r.add(rule, at, at+m[1])
	}
}

// matchAround takes a literal of a rule that stands somewhere in its matches.
func (r *formSearch) matchAround(rule, at int, near bool) {
	p := &r.places[rule]
	other := p.near
	if near {
		p.near, other = at, p.first
	} else {
		p.first = at
	}
	if p.first < 0 || len(r.s.rules[rule].near) > 0 && (other < 0 || at-other > maxNearDistance) {
		return
	}
	from, to := max(min(p.first, at)-bytesBefore, 0), min(p.first+bytesAfter, len(r.text))
	if p.to > 0 && from <= p.to {
		p.to = max(p.to, to)
		return
	}
	if p.to > 0 {
		r.window(rule, p.from, p.to)
	}
	p.from, p.to = from, to
}

// window adds the matches of a rule in a part of the text.
func (r *formSearch) window(rule, from, to int) {
	for n := 0; n < longWord && from > 0 && r.text[from] != ' '; n++ {
		from--
	}
	to = r.wordEnd(to)
	for from < to && len(r.hits) < maxHits {
		if r.room -= to - from; r.room < 0 {
			return
		}
		m := r.s.regexps[rule]().FindIndex(r.text[from:to])
		if m == nil || m[1] == 0 {
			return
		}
		r.add(rule, from+m[0], from+m[1])
		from += m[1]
	}
}

// longWord is how much of a word a window takes in that it would cut.
const longWord = 40

// wordEnd returns where the word ends that a byte is in.
func (r *formSearch) wordEnd(to int) int {
	to = min(to, len(r.text))
	for n := 0; n < longWord && to < len(r.text) && r.text[to] != ' '; n++ {
		to++
	}
	return to
}

// add keeps a hit, unless the same rule has one there already.
func (r *formSearch) add(rule, from, to int) {
	h := Hit{&r.s.rules[rule], r.origin(from), r.origin(to-1) + 1, r.form}
	if r.form == "reversed" {
		h.Start, h.End = r.origin(to), r.origin(from)
	}
	for _, k := range r.hits {
		if k.Rule == h.Rule && k.Start < h.End && h.Start < k.End {
			return
		}
	}
	r.hits = append(r.hits, h)
}

// lowerASCII appends a text with its ASCII letters in lower case.
func lowerASCII(b []byte, text string) []byte {
	b = append(b, text...)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return b
}

// rot13 appends lower-case words with each letter turned by half the alphabet.
func rot13(b, words []byte) []byte {
	b = append(b, words...)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = 'a' + (c-'a'+13)%26
		}
	}
	return b
}

// reversed appends words from their end to their beginning.
func reversed(b, words []byte) []byte {
	for len(words) > 0 {
		_, n := utf8.DecodeLastRune(words)
		b = append(b, words[len(words)-n:]...)
		words = words[:len(words)-n]
	}
	return bytes.TrimSpace(b)
}
