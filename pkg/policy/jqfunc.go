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

// A compiledJQCondition is a compiled condition with the meter of its current run. It is used by one run at a time.
type compiledJQCondition struct {
	*conditionWorkMeter
	code    *gojq.Code
	regexps map[[2]string]*compiledRegexp
}

func compileJQCondition(expr string) (*compiledJQCondition, error) {
	q, err := parseWhen(expr)
	if err != nil {
		return nil, fmt.Errorf("jq: %w", err)
	}
	p := &compiledJQCondition{regexps: map[[2]string]*compiledRegexp{}}
	if p.code, err = gojq.Compile(q, p.meteringFunctionOptions()...); err != nil {
		return nil, fmt.Errorf("jq: %w", err)
	}
	return p, nil
}

// meteringFunctionOptions returns the Go functions that the metering code in a compiled jq condition calls, such
// as _paid.
func (p *compiledJQCondition) meteringFunctionOptions() []gojq.CompilerOption {
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
		return errors.Join(p.chargeValueWork(args[0], 1), p.chargeValueWork(args[1], 1))
	}
	compare := func(_ any, args []any) error { return p.chargeCompareWork(args[0], args[1]) }
	opts := []gojq.CompilerOption{
		gojq.WithFunction("_paid", 1, 1, input(func(v any, args []any) error { return p.chargeValueWork(v, args[0].(int)) })),
		gojq.WithFunction("_sorting", 0, 0, input(func(v any, _ []any) error { return p.chargeSortWork(v) })),
		gojq.WithFunction("_product", 1, 1, input(func(v any, args []any) error { return p.chargeProductWork(v, args[0]) })),
		gojq.WithFunction("_joining", 1, 1, input(func(v any, args []any) error { return p.chargeJoinWork(v, args[0]) })),
		gojq.WithFunction("_key", 0, 0, input(func(v any, _ []any) error { return rejectArrayAsIndex(v) })),
		gojq.WithFunction("_short", 0, 0, input(func(v any, _ []any) error { return p.checkNumberLengths(v) })),
		gojq.WithFunction("_texts", 1, 1, func(v any, args []any) any { return isText(v) && isText(args[0]) }),
		gojq.WithFunction("_positions", 1, 1, func(v any, args []any) any { return p.substringPositions(v.(string), args[0].(string)) }),
		gojq.WithFunction("_find", 3, 3, func(v any, args []any) any { return p.findMatches(v, args[0], args[1], args[2] == true) }),
		gojq.WithFunction("_parts", 2, 2, func(v any, args []any) any { return p.splitAtMatches(v, args[0], args[1]) }),
		gojq.WithFunction("_before_subtract", 2, 2, input(func(_ any, args []any) error { return p.chargeProductWork(args[0], args[1]) })),
		gojq.WithFunction("_before_multiply", 2, 2, input(func(_ any, args []any) error { return p.chargeRepeatWork(args[0], args[1]) })),
		gojq.WithFunction("_before_divide", 2, 2, input(func(_ any, args []any) error {
			return errors.Join(p.chargeValueWork(args[0], 8), p.chargeValueWork(args[1], 1))
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

func (p *compiledJQCondition) chargeJoinWork(v, separator any) error {
	_, nodes := p.measureJSONValue(v)
	text, _ := separator.(string)
	return errors.Join(p.chargeValueWork(v, 1), p.chargeWorkBytes(multiplyCapped(nodes, len(text))))
}

// rejectArrayAsIndex returns an error if a key is a list: jq would search for the list as a sublist.
func rejectArrayAsIndex(v any) error {
	if _, list := v.([]any); list {
		return errors.New("a condition cannot use a list as a key; use a string or a number")
	}
	return nil
}

// maxNumberLength is the maximum length of a number in characters. jq parses longer numbers in more than linear
// time, and again for each use.
const maxNumberLength = 100

// checkNumberLengths returns an error for values with a number that is too long, and for texts that would be parsed as
// one.
func (p *compiledJQCondition) checkNumberLengths(v any) error {
	switch v := v.(type) {
	case json.Number:
		if len(v) > maxNumberLength {
			return p.workExceededError()
		}
	case string:
		if len(v) > maxNumberLength && strings.Trim(v, "+-.0123456789eE") == "" {
			return p.workExceededError()
		}
	case []any:
		for _, e := range v {
			if err := p.checkNumberLengths(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := p.checkNumberLengths(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *compiledJQCondition) workExceededError() error {
	return p.chargeWorkBytes(maxConditionWorkBytes + 1)
}

// substringPositions returns the positions of one text in another, in characters, like jq's indices but in linear time
// (Knuth, Morris and Pratt).
func (p *compiledJQCondition) substringPositions(s, x string) any {
	if err := p.chargeWorkBytes(4*len(x) + 4*len(s)); err != nil {
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
	at, runes := 0, 0 // runes is the number of characters in s[:at]
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

// A compiledRegexp is a regular expression that can be searched from any position of a text in linear time.
type compiledRegexp struct {
	*regexp.Regexp
	regexpPrecededByContextRune *regexp.Regexp // one character, any text, and the expression as group 1: finds matches after the start of a text
	workPerByte                 int            // work that is charged for each byte of the searched text, or twice for each character; grows with the expression
}

const (
	maxRegexpBytes   = 4 << 10 // bytes of an expression
	maxCachedRegexps = 64      // expressions that stay compiled
	workPerMatch     = 64      // work for the description of one match
)

// compileRegexp returns the compiled regular expression of a condition. The work that it charges grows with the
// size of the expression, which may come from the agent's action.
func (p *compiledJQCondition) compileRegexp(re, flags string) (*compiledRegexp, error) {
	key := [2]string{re, flags}
	if r := p.regexps[key]; r != nil {
		return r, nil
	}
	if strings.Trim(flags, "gim") != "" {
		return nil, fmt.Errorf("unsupported regular expression flag: %q; use g, i, n or x", flags)
	}
	if len(re) > maxRegexpBytes {
		return nil, p.workExceededError()
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
	if err := p.chargeWorkBytes(multiplyCapped(size, 64)); err != nil {
		return nil, err
	}
	r := &compiledRegexp{workPerByte: 1 + size/16}
	if r.Regexp, err = regexp.Compile(re); err == nil {
		r.regexpPrecededByContextRune, err = regexp.Compile(`\A(?s:.)(?s:.*?)(` + re + `)`)
	}
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression %.80q: %w", re, err)
	}
	if len(p.regexps) >= maxCachedRegexps {
		p.regexps = map[[2]string]*compiledRegexp{}
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
		n = multiplyCapped(n, max(re.Min, re.Max, 1))
	}
	return n
}

// parseTextFlagsAndRegexp checks the arguments of a regular expression function.
func (p *compiledJQCondition) parseTextFlagsAndRegexp(v, re, flags any) (string, string, *compiledRegexp, error) {
	text, ok := v.(string)
	expr, rok := re.(string)
	given, fok := flags.(string)
	if !ok || !rok || !fok && flags != nil {
		return "", "", nil, fmt.Errorf("jq functions for regular expressions, such as test, need strings; the text is of type %s, the expression %s, the flags %s; convert them with tostring", gojq.TypeOf(v), gojq.TypeOf(re), gojq.TypeOf(flags))
	}
	r, err := p.compileRegexp(expr, given)
	return text, given, r, err
}

// findMatches implements jq's internal function _match.
func (p *compiledJQCondition) findMatches(v, re, flags any, testing bool) any {
	text, given, r, err := p.parseTextFlagsAndRegexp(v, re, flags)
	if err != nil {
		return err
	}
	if testing {
		if err := p.chargeWorkBytes(multiplyCapped(len(text)+1, r.workPerByte)); err != nil {
			return err
		}
		return r.MatchString(text)
	}
	found := []any{}
	err = p.eachMatch(text, r, strings.Contains(given, "g"), func(m regexpMatch) error {
		found = append(found, map[string]any{
			"offset": m.startRune, "length": utf8.RuneCountInString(text[m.byteRange[0]:m.byteRange[1]]), "string": text[m.byteRange[0]:m.byteRange[1]],
			"captures": m.captures,
		})
		return nil
	})
	if err != nil {
		return err
	}
	return found
}

// splitAtMatches splits a text at the matches of an expression. It returns, for each match, the text before it and its
// captures, and finally the rest.
func (p *compiledJQCondition) splitAtMatches(v, re, flags any) any {
	text, given, r, err := p.parseTextFlagsAndRegexp(v, re, flags)
	if err != nil {
		return err
	}
	parts, end := []any{}, 0
	err = p.eachMatch(text, r, strings.Contains(given, "g"), func(m regexpMatch) error {
		parts = append(parts, map[string]any{"before": text[end:m.byteRange[0]], "captures": m.captures})
		end = m.byteRange[1]
		return nil
	})
	if err != nil {
		return err
	}
	return map[string]any{"parts": parts, "rest": text[end:]}
}

// A regexpMatch is one match of an expression.
type regexpMatch struct {
	byteRange [2]int // in bytes
	startRune int    // start of the match in the text, in characters
	captures  []any  // groups as jq's match returns them: offset, length, string, name
}

// eachMatch calls do for the first match of an expression, or for all matches.
func (p *compiledJQCondition) eachMatch(text string, r *compiledRegexp, all bool, do func(regexpMatch) error) error {
	names := r.SubexpNames()
	runes, counted := 0, 0 // runes is the number of characters in text[:counted]
	for pos := 0; pos <= len(text); {
		at, err := p.matchFrom(text, r, pos)
		if at == nil || err != nil {
			return err
		}
		if err := p.chargeWorkBytes(workPerMatch + (len(at)/2-1)*(workPerMatch+at[1]-at[0])); err != nil {
			return err
		}
		runes += utf8.RuneCountInString(text[counted:at[0]])
		counted = at[0]
		m := regexpMatch{byteRange: [2]int{at[0], at[1]}, startRune: runes, captures: make([]any, len(at)/2-1)}
		for i := range m.captures {
			m.captures[i] = captureGroupValue(text, names[i+1], at[2*i+2], at[2*i+3], at[0], runes)
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

// captureGroupValue describes one capture group of a match, as jq's match function does. The match
// starts at byte matchStart of text, which is character matchStartRune.
func captureGroupValue(text, groupName string, groupStart, groupEnd, matchStart, matchStartRune int) map[string]any {
	c := map[string]any{"name": nil, "offset": -1, "length": 0, "string": nil}
	if groupName != "" {
		c["name"] = groupName
	}
	if groupStart >= 0 {
		c["offset"] = matchStartRune + utf8.RuneCountInString(text[matchStart:groupStart])
		c["length"] = utf8.RuneCountInString(text[groupStart:groupEnd])
		c["string"] = text[groupStart:groupEnd]
	}
	return c
}

// matchFrom returns the first match at or after pos, like [regexp.Regexp.FindSubmatchIndex], or nil. ^ and \b take
// the text before pos into account.
func (p *compiledJQCondition) matchFrom(text string, r *compiledRegexp, pos int) ([]int, error) {
	if pos == 0 {
		// Each of many matches may read the whole text, so the bytes read are paid for.
		in := &workMeteredReader{program: p, workPerByte: r.workPerByte, text: text}
		return r.FindReaderSubmatchIndex(in), p.exceededLimit
	}
	_, n := utf8.DecodeLastRuneInString(text[:pos])
	in := &workMeteredReader{program: p, workPerByte: r.workPerByte, text: text, offset: pos - n}
	at := r.regexpPrecededByContextRune.FindReaderSubmatchIndex(in)
	if at == nil || p.exceededLimit != nil {
		return nil, p.exceededLimit
	}
	for i := range at {
		if at[i] >= 0 {
			at[i] += pos - n
		}
	}
	return at[2:], nil
}

// workMeteredReader reads a text and pays for the bytes.
type workMeteredReader struct {
	program     *compiledJQCondition
	workPerByte int
	text        string
	offset      int
}

// ReadRune implements [io.RuneReader].
func (m *workMeteredReader) ReadRune() (rune, int, error) {
	if m.offset >= len(m.text) {
		return 0, 0, io.EOF
	}
	if err := m.program.chargeWorkBytes(2 * m.workPerByte); err != nil {
		return 0, 0, err
	}
	r, n := utf8.DecodeRuneInString(m.text[m.offset:])
	m.offset += n
	return r, n, nil
}
