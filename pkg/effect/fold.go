package effect

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// foldPath returns a path as file systems that ignore case compare it. It
// allocates only for paths that change. Beside case, HFS+ ignores characters
// that cannot be seen (the attack on git of 2014: ".g\u200cit"), and both
// Apple file systems take composed and decomposed letters for the same.
func foldPath(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf {
			return foldUnicode(s)
		} else if 'A' <= c && c <= 'Z' {
			return lowerASCII(s)
		}
	}
	return s
}

func lowerASCII(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return foldUnicode(s)
		}
	}
	return strings.ToLower(s)
}

func foldUnicode(s string) string {
	s = norm.NFC.String(s)
	return strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return foldRune(r)
	}, s)
}

// foldRune returns the least letter that differs from r in case only, so that
// the Kelvin sign becomes k and the long s becomes s.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return unicode.ToLower(least)
}
