package abstract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Match reports whether a shell glob matches a whole text. It backtracks only to the last star, so its time is at
// most the product of both lengths.
func Match(glob, text string) bool {
	g, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		if g < len(glob) && glob[g] == '*' {
			star, mark = g, t
			g++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[t:])
		if n, ok := matchFirstGlobElement(glob[min(g, len(glob)):], r); ok {
			g += n
			t += size
			continue
		}
		if star < 0 {
			return false
		}
		_, size = utf8.DecodeRuneInString(text[mark:])
		mark += size
		g, t = star+1, mark
	}
	return strings.Trim(glob[min(g, len(glob)):], "*") == ""
}

// matchFirstGlobElement matches the first element of a glob with a character and returns the element's length in bytes.
func matchFirstGlobElement(glob string, r rune) (int, bool) {
	if glob == "" {
		return 0, false
	}
	switch glob[0] {
	case '?':
		return 1, true
	case '\\':
		if len(glob) > 1 {
			first, size := utf8.DecodeRuneInString(glob[1:])
			return 1 + size, first == r
		}
	case '[':
		if end := bracketEnd(glob); end > 0 {
			return end + 1, matchSet(glob[1:end], r)
		}
	}
	first, size := utf8.DecodeRuneInString(glob)
	return size, first == r
}

// bracketEnd returns the index at which the bracket expression at the start of a glob ends, or -1. A "]" at its start
// is a member, and named classes are skipped.
func bracketEnd(glob string) int {
	i := 1
	if i < len(glob) && (glob[i] == '!' || glob[i] == '^') {
		i++
	}
	for first := i; i < len(glob); i++ {
		switch {
		case glob[i] == ']' && i > first:
			return i
		case glob[i] == '\\':
			i++
		case strings.HasPrefix(glob[i:], "[:"):
			if end := strings.Index(glob[i:], ":]"); end > 0 {
				i += end + 1
			}
		}
	}
	return -1
}

// characterClasses are the named classes of bracket expressions, for ASCII.
var characterClasses = map[string]func(r rune) bool{
	"alpha":  unicode.IsLetter,
	"digit":  func(r rune) bool { return r >= '0' && r <= '9' },
	"alnum":  func(r rune) bool { return unicode.IsLetter(r) || r >= '0' && r <= '9' },
	"upper":  unicode.IsUpper,
	"lower":  unicode.IsLower,
	"space":  unicode.IsSpace,
	"blank":  func(r rune) bool { return r == ' ' || r == '\t' },
	"punct":  func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) },
	"cntrl":  unicode.IsControl,
	"print":  unicode.IsPrint,
	"graph":  func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) },
	"xdigit": func(r rune) bool { return r < 0x80 && strings.ContainsRune("0123456789abcdefABCDEF", r) },
	"word":   func(r rune) bool { return r == '_' || unicode.IsLetter(r) || r >= '0' && r <= '9' },
}

func matchSet(set string, r rune) bool {
	not := set[0] == '!' || set[0] == '^'
	if not {
		set = set[1:]
	}
	in := false
	for set != "" {
		if name, ok := strings.CutPrefix(set, "[:"); ok {
			if class, rest, ok := strings.Cut(name, ":]"); ok {
				is := characterClasses[class]
				in = in || is != nil && is(r)
				set = rest
				continue
			}
		}
		var lo, hi rune
		lo, set = cutFirstBracketRune(set)
		if hi = lo; len(set) > 1 && set[0] == '-' {
			hi, set = cutFirstBracketRune(set[1:])
		}
		in = in || lo <= r && r <= hi
	}
	return in != not
}

// cutFirstBracketRune splits the first character off a bracket expression.
func cutFirstBracketRune(bracketExpr string) (r rune, rest string) {
	if bracketExpr[0] == '\\' && len(bracketExpr) > 1 {
		bracketExpr = bracketExpr[1:]
	}
	r, size := utf8.DecodeRuneInString(bracketExpr)
	return r, bracketExpr[size:]
}

// EffectPathPatternFromShellGlob converts a shell glob to a pattern as in effect.Overlap.
func EffectPathPatternFromShellGlob(glob string) string {
	if !strings.Contains(glob, "[!") {
		return glob
	}
	return strings.ReplaceAll(glob, "[!", "[^")
}

func JoinWithSpaces(vs []Value) Value {
	var b Builder
	for i, v := range vs {
		if i > 0 {
			b.AddLiteral(" ")
		}
		b.Add(v)
	}
	return b.Value()
}

// PatternFromWindowsGlob converts a path with glob characters to a pattern, because Windows programs expand globs themselves.
func PatternFromWindowsGlob(v Value) Value {
	switch {
	case v.IsLiteral() && strings.ContainsAny(v.Text, "*?"):
		v.IsGlobPattern, v.Display, v.Text = true, v.Text, strings.ReplaceAll(v.Text, `\`, "/")
	case v.IsGlobPattern && strings.Contains(v.Text, `\`):
		v.Text = patternWithForwardSlashes(v.Text)
	}
	return v
}

// patternWithForwardSlashes replaces the backslashes of a pattern by slashes. It removes a backslash before a
// wildcard, which stays a wildcard: Windows file names cannot contain wildcard characters.
func patternWithForwardSlashes(pattern string) string {
	out := []byte(pattern)[:0:0]
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c == '\\' {
			next := pattern[i+1:]
			if next != "" && strings.IndexByte("*?[", next[0]) >= 0 && !strings.HasPrefix(next, "**") {
				continue
			}
			c = '/'
		}
		out = append(out, c)
	}
	return string(out)
}
