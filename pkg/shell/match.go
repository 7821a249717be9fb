package shell

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// maxMatch bounds the text that glob operators of parameter expansions work on,
// since each tries every cut of it.
const maxMatch = 2048

// trim is ${x#p}, ${x##p}, ${x%p} and ${x%%p}.
func (s *state) trim(v, pat value, op syntax.ParExpOperator, show string) value {
	prefix := op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix
	glob := pat.asPattern()
	if !v.known() {
		if op == syntax.RemLargePrefix && glob == "*/" {
			return value{text: "*", show: show, pattern: true, taint: v.taint}
		}
		return unknown(show, v.taint)
	}
	if pat.bare || len(v.text) > maxMatch || !s.step(1+len(v.text)*len(glob)/256) {
		return unknown(show, v.taint)
	}
	if pat.known() { // no globs: at most one cut
		if prefix {
			v.text = strings.TrimPrefix(v.text, pat.text)
		} else {
			v.text = strings.TrimSuffix(v.text, pat.text)
		}
		return v
	}
	n := len(v.text)
	for i := 0; i <= n; i++ {
		switch op {
		case syntax.RemSmallPrefix:
			if match(glob, v.text[:i]) {
				v.text = v.text[i:]
				return v
			}
		case syntax.RemLargePrefix:
			if match(glob, v.text[:n-i]) {
				v.text = v.text[n-i:]
				return v
			}
		case syntax.RemSmallSuffix:
			if match(glob, v.text[n-i:]) {
				v.text = v.text[:n-i]
				return v
			}
		default:
			if match(glob, v.text[i:]) {
				v.text = v.text[:i]
				return v
			}
		}
	}
	return v
}

// replace is ${x/o/w} and ${x//o/w}; a leading # or % anchors.
func (s *state) replace(v, orig, with value, all bool, show string) value {
	v.taint |= with.taint
	if !v.known() || orig.bare || len(v.text) > maxMatch || !s.step(1+len(v.text)/16) {
		return unknown(show, v.taint)
	}
	glob := orig.asPattern()
	if glob == "" {
		return v
	}
	anchor := glob[0]
	if !all && len(glob) > 1 && (anchor == '#' || anchor == '%') {
		op := syntax.RemLargePrefix
		if anchor == '%' {
			op = syntax.RemLargeSuffix
		}
		pat := orig
		pat.text = orig.text[1:]
		rest := s.trim(v, pat, op, show)
		if rest.text == v.text && rest.known() {
			return v
		}
		if anchor == '#' {
			return concat(with, rest)
		}
		return concat(rest, with)
	}
	if orig.known() && with.known() {
		n := 1
		if all {
			n = -1
		}
		v.text = strings.Replace(v.text, orig.text, with.text, n)
		return v
	}
	if !s.step(len(v.text) * len(glob) / 16) {
		return unknown(show, v.taint)
	}
	return replaceGlob(v, glob, with, all)
}

func replaceGlob(v value, glob string, with value, all bool) value {
	const longest = 256
	var b builder
	b.taint = v.taint
	text := v.text
	for i := 0; i < len(text); {
		end := -1
		for j := min(len(text), i+longest); j > i; j-- {
			if match(glob, text[i:j]) {
				end = j
				break
			}
		}
		if end < 0 {
			b.literal(text[i : i+1])
			i++
			continue
		}
		b.add(with)
		i = end
		if !all {
			b.literal(text[i:])
			break
		}
	}
	return b.value()
}

// match reports whether a shell glob matches a whole text. It goes back to the
// last star only, so its time is at most the product of both lengths.
func match(glob, text string) bool {
	g, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		if g < len(glob) && glob[g] == '*' {
			star, mark = g, t
			g++
			continue
		}
		if n, ok := matchOne(glob[min(g, len(glob)):], text[t]); ok {
			g += n
			t++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		g, t = star+1, mark
	}
	return strings.Trim(glob[min(g, len(glob)):], "*") == ""
}

// matchOne matches the first element of a glob with a byte and returns the
// element's length.
func matchOne(glob string, c byte) (int, bool) {
	if glob == "" {
		return 0, false
	}
	switch glob[0] {
	case '?':
		return 1, true
	case '\\':
		if len(glob) > 1 {
			return 2, glob[1] == c
		}
	case '[':
		end := strings.IndexByte(glob[1:], ']')
		if end <= 0 {
			break
		}
		return end + 2, matchSet(glob[1:end+1], c)
	}
	return 1, glob[0] == c
}

func matchSet(set string, c byte) bool {
	not := set[0] == '!' || set[0] == '^'
	if not {
		set = set[1:]
	}
	in := false
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			in = in || set[i] <= c && c <= set[i+2]
			i += 2
			continue
		}
		in = in || set[i] == c
	}
	return in != not && c < utf8.RuneSelf
}
