package effect

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/shieldcli/shield/internal/decode"
)

// foldPath returns a path in the form in which file systems that ignore case
// compare it. It allocates only for paths that change. In addition to case, HFS+
// ignores invisible characters (used to attack git in 2014: ".g\u200cit"), and both
// Apple file systems treat composed and decomposed letters as equal.
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
		if decode.Invisible(r) {
			return -1
		}
		return foldRune(r)
	}, s)
}

// foldRune returns the smallest letter that equals r except for case, in lower case, so that the Kelvin sign
// becomes k and the long s becomes s.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return unicode.ToLower(least)
}
