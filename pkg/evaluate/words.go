package evaluate

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/shieldcli/shield/pkg/analysis"
)

// payloadText returns all text of an action in one: its type, then keys and
// values, each on a line of its own.
func payloadText(c *analysis.Case) string {
	var b strings.Builder
	b.WriteString(c.Action.Type)
	eachText(c.Action.Payload, func(s string) bool {
		b.WriteByte('\n')
		b.WriteString(s)
		return true
	})
	return b.String()
}

// payloadStrings returns the strings of a payload, keys and values, in the
// order of [payloadText].
func payloadStrings(c *analysis.Case) []string {
	var list []string
	eachText(c.Action.Payload, func(s string) bool {
		list = append(list, s)
		return true
	})
	return list
}

// seams returns texts with nothing between them. Of a long one only its two
// ends are there: what stands inside it crosses no seam.
func seams(texts []string) string {
	const end = 400
	var b strings.Builder
	for _, s := range texts {
		if len(s) <= 2*end {
			b.WriteString(s)
			continue
		}
		b.WriteString(strings.ToValidUTF8(s[:end], ""))
		b.WriteByte('\n')
		b.WriteString(strings.ToValidUTF8(s[len(s)-end:], ""))
	}
	return b.String()
}

// eachText calls f with each string in a payload value, keys in order and
// before their values, until f returns false. It reports whether f never did.
func eachText(v any, f func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for _, e := range v {
			if !eachText(e, f) {
				return false
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if !f(k) || !eachText(v[k], f) {
				return false
			}
		}
	}
	return true
}

// forms returns the forms of a text that rules read: itself in lower case; its
// words; and, where it differs, its words with digits and signs that are
// written for letters read as letters.
func forms(text string) []string {
	text = plainLatin(text)
	lower := strings.ToLower(text)
	list := []string{lower, words(lower)}
	if leet := unleet(lower); leet != lower {
		list = append(list, words(leet))
	}
	return list
}

// plainLatin returns a text in compatibility form, without invisible
// characters, and with Latin and Greek letters rid of their accents. Marks of
// other scripts stay: they are part of the letter there.
func plainLatin(s string) string {
	if isASCII(s) {
		return s
	}
	s = norm.NFKD.String(s)
	var b strings.Builder
	b.Grow(len(s))
	bare := false // the last letter takes no mark
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Cf, r):
			continue
		case unicode.Is(unicode.Mn, r):
			if bare {
				continue
			}
		default:
			bare = unicode.In(r, unicode.Latin, unicode.Greek) || r == 'ا'
		}
		switch r {
		case 'ı':
			r = 'i'
		case 'đ':
			r = 'd'
		case 'ł':
			r = 'l'
		case 'ø':
			r = 'o'
		case 'ß':
			b.WriteByte('s')
			r = 's'
		}
		b.WriteRune(r)
	}
	return norm.NFC.String(b.String())
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// words returns the words of a lower-case text with one space between them.
// Four or more letters that stand alone are one word: "i g n o r e".
func words(s string) string {
	b := make([]byte, 0, len(s))
	start, alone := 0, 0 // where the run of single letters starts in b, and how many they are
	in, letters := false, 0
	end := func() {
		if !in {
			return
		}
		in = false
		if letters != 1 {
			alone = 0
			return
		}
		if alone == 0 {
			start = len(b) - 1
		}
		alone++
		if alone == 4 {
			b = append(b[:start], strip(b[start:])...)
		} else if alone > 4 {
			b = append(b[:len(b)-2], b[len(b)-1])
		}
	}
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
			end()
			continue
		}
		if !in {
			in, letters = true, 0
			if len(b) > 0 {
				b = append(b, ' ')
			}
		}
		if letters++; r >= utf8.RuneSelf {
			letters = 2 // a character of Chinese is a word by itself
		}
		b = utf8.AppendRune(b, r)
	}
	end()
	return string(b)
}

// strip returns b without spaces, in new memory.
func strip(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c != ' ' {
			out = append(out, c)
		}
	}
	return out
}

// unleet reads digits and signs as the letters they look like, in words that
// also have letters.
func unleet(s string) string {
	const from, to = "0134578@$!|", "oieastbasil"
	if !strings.ContainsAny(s, from) {
		return s
	}
	b := []byte(s)
	isLetter := func(c byte) bool { return c >= 'a' && c <= 'z' }
	sign := func(c byte) int { return strings.IndexByte(from, c) }
	for i := 0; i < len(b); {
		if !isLetter(s[i]) && sign(s[i]) < 0 {
			i++
			continue
		}
		word, mixed := i, false
		for ; i < len(b) && (isLetter(s[i]) || sign(s[i]) >= 0); i++ {
			mixed = mixed || isLetter(s[i])
		}
		for j := word; mixed && j < i; j++ {
			if n := sign(s[j]); n >= 0 {
				b[j] = to[n]
			}
		}
	}
	return string(b)
}
