package shell

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// maxGlobTextBytes is the maximum length in bytes of text for glob operators in parameter expansions: each operator tries
// every position.
const maxGlobTextBytes = 2048

// mayBeExtendedGlob reports whether a pattern may have a special meaning here because of shell options such as extglob.
func (s *analysisState) mayBeExtendedGlob(pat abstract.Value) bool {
	return strings.ContainsAny(pat.Text, "(|") && (strings.Contains(s.analyzedText, "glob") || s.readsAsZsh()) || strings.ContainsAny(pat.Text, "#^~") && s.dialect.zshOptionsChanged
}

// hasGlobCharacters reports whether a known text has glob characters. They match literally if the text was quoted, which
// is not recorded.
func hasGlobCharacters(pat abstract.Value) bool {
	return pat.IsLiteral() && strings.ContainsAny(pat.Text, "*?[\\")
}

// trimExpansion computes ${x#p}, ${x##p}, ${x%p} and ${x%%p}.
func (s *analysisState) trimExpansion(v, pat abstract.Value, op syntax.ParExpOperator, messageText string) abstract.Value {
	prefix := op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix
	glob := pat.AsPattern()
	if !v.IsLiteral() {
		if cut, ok := trimPathPatternExpansion(v, pat, op); ok {
			return cut
		}
		if op == syntax.RemLargePrefix && glob == "*/" {
			short := unknownValueWithTaintsOf(messageText, v)
			short.Text, short.FullyUnknown = "*", false
			return short
		}
		return unknownValueWithTaintsOf(messageText, v)
	}
	if pat.FullyUnknown || pat.Origin != 0 || hasGlobCharacters(pat) || len(v.Text) > maxGlobTextBytes || s.mayBeExtendedGlob(pat) || !s.spendSteps(1+len(v.Text)*len(glob)/256) {
		return unknownValueWithTaintsOf(messageText, v)
	}
	if pat.IsLiteral() { // no glob: at most one match
		if prefix {
			v.Text = strings.TrimPrefix(v.Text, pat.Text)
		} else {
			v.Text = strings.TrimSuffix(v.Text, pat.Text)
		}
		return v
	}
	n := len(v.Text)
	for i := 0; i <= n; i++ {
		cut := i
		if op == syntax.RemLargePrefix || op == syntax.RemSmallSuffix {
			cut = n - i
		}
		if cut < n && !utf8.RuneStart(v.Text[cut]) {
			continue // inside a UTF-8 character
		}
		switch op {
		case syntax.RemSmallPrefix:
			if abstract.Match(glob, v.Text[:i]) {
				v.Text = v.Text[i:]
				return v
			}
		case syntax.RemLargePrefix:
			if abstract.Match(glob, v.Text[:n-i]) {
				v.Text = v.Text[n-i:]
				return v
			}
		case syntax.RemSmallSuffix:
			if abstract.Match(glob, v.Text[n-i:]) {
				v.Text = v.Text[:n-i]
				return v
			}
		default:
			if abstract.Match(glob, v.Text[i:]) {
				v.Text = v.Text[:i]
				return v
			}
		}
	}
	return v
}

// replaceExpansion computes ${x/o/w} and ${x//o/w}; a leading # or % in o anchors it.
func (s *analysisState) replaceExpansion(v, orig, with abstract.Value, all bool, messageText string) abstract.Value {
	v.Taint |= with.Taint
	v.Origin |= with.Origin
	if changed, ok := replaceInGlob(v, orig, with); ok {
		return changed
	}
	if !v.IsLiteral() || orig.FullyUnknown || orig.Origin != 0 || hasGlobCharacters(orig) || len(v.Text) > maxGlobTextBytes || strings.Contains(with.Text, "&") || s.mayBeExtendedGlob(orig) || !s.spendSteps(1+len(v.Text)/16) {
		return unknownValueWithTaintsOf(messageText, v) // bash may replace & with the matched text
	}
	glob := orig.AsPattern()
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
		pat.Text = orig.Text[1:]
		rest := s.trimExpansion(v, pat, op, messageText)
		if rest.Text == v.Text && rest.IsLiteral() {
			return v
		}
		if anchor == '#' {
			return abstract.Concat(with, rest)
		}
		return abstract.Concat(rest, with)
	}
	if orig.IsLiteral() && with.IsLiteral() {
		n := 1
		if all {
			n = -1
		}
		v.Text = strings.Replace(v.Text, orig.Text, with.Text, n)
		return v
	}
	return unknownValueWithTaintsOf(messageText, v)
}
