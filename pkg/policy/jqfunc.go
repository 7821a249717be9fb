package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// A program is a compiled condition with the meter of its current run. It is used by one run at a time.
type program struct {
	*meter
	code    *gojq.Code
	regexps map[[2]string]*pattern
}

func newProgram(expr string) (*program, error) {
	q, err := parseWhen(expr)
	if err != nil {
		return nil, fmt.Errorf("jq: %w", err)
	}
	p := &program{regexps: map[[2]string]*pattern{}}
	if p.code, err = gojq.Compile(q, p.functions()...); err != nil {
		return nil, fmt.Errorf("jq: %w", err)
	}
	return p, nil
}

// functions returns the Go functions that the prelude calls.
func (p *program) functions() []gojq.CompilerOption {
	// input returns a function's input unchanged if pay succeeds.
	input := func(pay func(v any, args []any) error) func(any, []any) any {
		return func(v any, args []any) any {
			if err := pay(v, args); err != nil {
				return err
			}
			return v
		}
	}
	both := func(v any, args []any) error {
		return errors.Join(p.value(args[0], 1), p.value(args[1], 1))
	}
	compare := func(_ any, args []any) error { return p.compare(args[0], args[1]) }
	opts := []gojq.CompilerOption{
		gojq.WithFunction("_paid", 1, 1, input(func(v any, args []any) error { return p.value(v, args[0].(int)) })),
		gojq.WithFunction("_sorting", 0, 0, input(func(v any, _ []any) error { return p.sorting(v) })),
		gojq.WithFunction("_product", 1, 1, input(func(v any, args []any) error { return p.product(v, args[0]) })),
		gojq.WithFunction("_joining", 1, 1, input(func(v any, args []any) error { return p.joining(v, args[0]) })),
		gojq.WithFunction("_key", 0, 0, input(func(v any, _ []any) error { return plainKey(v) })),
		gojq.WithFunction("_short", 0, 0, input(func(v any, _ []any) error { return p.short(v) })),
		gojq.WithFunction("_texts", 1, 1, func(v any, args []any) any { return isText(v) && isText(args[0]) }),
		gojq.WithFunction("_positions", 1, 1, func(v any, args []any) any { return p.positions(v.(string), args[0].(string)) }),
		gojq.WithFunction("_find", 3, 3, func(v any, args []any) any { return p.find(v, args[0], args[1], args[2] == true) }),
		gojq.WithFunction("_parts", 2, 2, func(v any, args []any) any { return p.parts(v, args[0], args[1]) }),
		gojq.WithFunction("_before_subtract", 2, 2, input(func(_ any, args []any) error { return p.product(args[0], args[1]) })),
		gojq.WithFunction("_before_multiply", 2, 2, input(func(_ any, args []any) error { return p.repeated(args[0], args[1]) })),
		gojq.WithFunction("_before_divide", 2, 2, input(func(_ any, args []any) error {
			return errors.Join(p.value(args[0], 8), p.value(args[1], 1))
		})),
	}
	for _, name := range []string{"add", "modulo"} {
		opts = append(opts, gojq.WithFunction("_before_"+name, 2, 2, input(both)))
	}
	for _, name := range []string{"equal", "notequal", "greater", "less", "greatereq", "lesseq"} {
		opts = append(opts, gojq.WithFunction("_before_"+name, 2, 2, input(compare)))
	}
	return opts
}

func (p *program) joining(v, separator any) error {
	_, nodes := p.measure(v)
	text, _ := separator.(string)
	return errors.Join(p.value(v, 1), p.pay(times(nodes, len(text))))
}

// plainKey returns an error if a key is a list: jq would search for the list as a sublist.
func plainKey(v any) error {
	if _, list := v.([]any); list {
		return errors.New("a list as a key" + notHere)
	}
	return nil
}

// maxNumber is the maximum length of a number in characters. jq parses longer numbers in more than linear
// time, and again for each use.
const maxNumber = 100

// short returns an error for values with a number that is too long, and for texts that would be parsed as
// one.
func (p *program) short(v any) error {
	switch v := v.(type) {
	case json.Number:
		if len(v) > maxNumber {
			return p.tooMuch()
		}
	case string:
		if len(v) > maxNumber && strings.Trim(v, "+-.0123456789eE") == "" {
			return p.tooMuch()
		}
	case []any:
		for _, e := range v {
			if err := p.short(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := p.short(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *program) tooMuch() error { return p.pay(whenMaxWork + 1) }

// positions returns the positions of one text in another, in characters, like jq's indices but in linear time
// (Knuth, Morris and Pratt).
func (p *program) positions(s, x string) any {
	if err := p.pay(4*len(x) + 4*len(s)); err != nil {
		return err
	}
	found := []any{}
	if x == "" {
		return found
	}
	back := make([]int, len(x))
	for i, k := 1, 0; i < len(x); i++ {
		for k > 0 && x[i] != x[k] {
			k = back[k-1]
		}
		if x[i] == x[k] {
			k++
		}
		back[i] = k
	}
	at, runes := 0, 0 // runes is the number of characters before byte at
	for i, k := 0, 0; i < len(s); i++ {
		for k > 0 && s[i] != x[k] {
			k = back[k-1]
		}
		if s[i] == x[k] {
			k++
		}
		if k == len(x) {
			start := i - len(x) + 1
			runes += utf8.RuneCountInString(s[at:start])
			at, k = start, back[k-1]
			found = append(found, runes)
		}
	}
	return found
}

// A pattern is a regular expression that can be searched from any position of a text in linear time.
type pattern struct {
	*regexp.Regexp
	after  *regexp.Regexp // the expression as group 1, anywhere after the first character
	weight int            // work for one byte
}

const (
	maxPattern  = 4 << 10 // bytes of an expression
	maxPatterns = 64      // expressions that stay compiled
	matchCost   = 64      // work for the description of one match
)

// compile returns the compiled expression. Large expressions cost more, because they may come from the agent.
func (p *program) compile(re, flags string) (*pattern, error) {
	key := [2]string{re, flags}
	if r := p.regexps[key]; r != nil {
		return r, nil
	}
	if strings.Trim(flags, "gim") != "" {
		return nil, fmt.Errorf("unsupported regular expression flag: %q; use g, i, n or x", flags)
	}
	if len(re) > maxPattern {
		return nil, p.tooMuch()
	}
	for flag, inline := range map[string]string{"i": "(?i)", "m": "(?s)"} {
		if strings.Contains(flags, flag) {
			re = inline + re
		}
	}
	tree, err := syntax.Parse(re, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression %.80q: %w", re, err)
	}
	size := treeSize(tree)
	if err := p.pay(times(size, 64)); err != nil {
		return nil, err
	}
	r := &pattern{weight: 1 + size/16}
	if r.Regexp, err = regexp.Compile(re); err == nil {
		r.after, err = regexp.Compile(`\A(?s:.)(?s:.*?)(` + re + `)`)
	}
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression %.80q: %w", re, err)
	}
	if len(p.regexps) >= maxPatterns {
		p.regexps = map[[2]string]*pattern{}
	}
	p.regexps[key] = r
	return r, nil
}

// treeSize returns the approximate number of instructions of an expression.
func treeSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += treeSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n = times(n, max(re.Min, re.Max, 1))
	}
	return n
}

// arguments checks the arguments of a regular expression function.
func (p *program) arguments(v, re, flags any) (string, string, *pattern, error) {
	text, ok := v.(string)
	expr, rok := re.(string)
	given, fok := flags.(string)
	if !ok || !rok || !fok && flags != nil {
		return "", "", nil, fmt.Errorf("cannot match a %s with a %s and flags of type %s; use strings", gojq.TypeOf(v), gojq.TypeOf(re), gojq.TypeOf(flags))
	}
	r, err := p.compile(expr, given)
	return text, given, r, err
}

// find implements jq's internal function _match.
func (p *program) find(v, re, flags any, testing bool) any {
	text, given, r, err := p.arguments(v, re, flags)
	if err != nil {
		return err
	}
	if testing {
		if err := p.pay(times(len(text)+1, r.weight)); err != nil {
			return err
		}
		return r.MatchString(text)
	}
	found := []any{}
	err = p.each(text, r, strings.Contains(given, "g"), func(m match) error {
		found = append(found, map[string]any{
			"offset": m.runes, "length": utf8.RuneCountInString(text[m.at[0]:m.at[1]]), "string": text[m.at[0]:m.at[1]],
			"captures": m.captures,
		})
		return nil
	})
	if err != nil {
		return err
	}
	return found
}

// parts splits a text at the matches of an expression. It returns, for each match, the text before it and its
// captures, and finally the rest.
func (p *program) parts(v, re, flags any) any {
	text, given, r, err := p.arguments(v, re, flags)
	if err != nil {
		return err
	}
	parts, end := []any{}, 0
	err = p.each(text, r, strings.Contains(given, "g"), func(m match) error {
		parts = append(parts, map[string]any{"before": text[end:m.at[0]], "captures": m.captures})
		end = m.at[1]
		return nil
	})
	if err != nil {
		return err
	}
	return map[string]any{"parts": parts, "rest": text[end:]}
}

// A match is one match of an expression.
type match struct {
	at       [2]int // in bytes
	runes    int    // where it starts, in characters
	captures []any  // groups as jq's match returns them: offset, length, string, name
}

// each calls do for the first match of an expression, or for all matches.
func (p *program) each(text string, r *pattern, all bool, do func(match) error) error {
	names := r.SubexpNames()
	runes, counted := 0, 0 // runes is the number of characters before byte counted
	for pos := 0; pos <= len(text); {
		at, err := p.from(text, r, pos)
		if at == nil || err != nil {
			return err
		}
		if err := p.pay(matchCost + (len(at)/2-1)*(matchCost+at[1]-at[0])); err != nil {
			return err
		}
		runes += utf8.RuneCountInString(text[counted:at[0]])
		counted = at[0]
		m := match{at: [2]int{at[0], at[1]}, runes: runes, captures: make([]any, len(at)/2-1)}
		for i := range m.captures {
			m.captures[i] = capture(text, names[i+1], at[2*i+2], at[2*i+3], at[0], runes)
		}
		if err := do(m); err != nil || !all {
			return err
		}
		if pos = at[1]; at[0] == at[1] {
			_, n := utf8.DecodeRuneInString(text[pos:])
			pos += max(n, 1)
		}
	}
	return nil
}

// capture describes one group of a match as jq's match does. The match starts at byte start, which is
// character runes.
func capture(text, name string, from, to, start, runes int) map[string]any {
	c := map[string]any{"name": nil, "offset": -1, "length": 0, "string": nil}
	if name != "" {
		c["name"] = name
	}
	if from >= 0 {
		c["offset"] = runes + utf8.RuneCountInString(text[start:from])
		c["length"] = utf8.RuneCountInString(text[from:to])
		c["string"] = text[from:to]
	}
	return c
}

// from returns the first match at or after pos, like [regexp.Regexp.FindSubmatchIndex], or nil. ^ and \b take
// the text before pos into account.
func (p *program) from(text string, r *pattern, pos int) ([]int, error) {
	if pos == 0 {
		// Each of many matches may read the whole text, so the bytes read are paid for.
		in := &metered{p: p, weight: r.weight, text: text}
		return r.FindReaderSubmatchIndex(in), p.over
	}
	_, n := utf8.DecodeLastRuneInString(text[:pos])
	in := &metered{p: p, weight: r.weight, text: text, at: pos - n}
	at := r.after.FindReaderSubmatchIndex(in)
	if at == nil || p.over != nil {
		return nil, p.over
	}
	for i := range at {
		if at[i] >= 0 {
			at[i] += pos - n
		}
	}
	return at[2:], nil
}

// metered reads a text and pays for the bytes.
type metered struct {
	p      *program
	weight int
	text   string
	at     int
}

// ReadRune implements [io.RuneReader].
func (m *metered) ReadRune() (rune, int, error) {
	if m.at >= len(m.text) {
		return 0, 0, io.EOF
	}
	if err := m.p.pay(2 * m.weight); err != nil {
		return 0, 0, err
	}
	r, n := utf8.DecodeRuneInString(m.text[m.at:])
	m.at += n
	return r, n, nil
}
