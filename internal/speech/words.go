package speech

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// NormalizedTextVariants returns the forms of a text that rules search: the text in lower case; its
// words; and, if the text has digits or signs that can replace letters, as in "1gn0re", its words
// with these replaced by the letters.
func NormalizedTextVariants(text string) []string {
	text = foldToUnaccentedLatin(text)
	lower := strings.ToLower(text)
	list := []string{lower, normalizeWords(lower)}
	if leet := decodeLeet(lower); leet != lower {
		list = append(list, normalizeWords(leet))
	}
	return list
}

// foldToUnaccentedLatin returns a text in compatibility form, without invisible characters, and with Latin and
// Greek letters and the Arabic alef rid of their accents. Marks of other letters stay: they are part of the
// letter there.
func foldToUnaccentedLatin(s string) string {
	if isASCII(s) {
		return s
	}
	s = norm.NFKD.String(s)
	var b strings.Builder
	b.Grow(len(s))
	bare := false // whether to remove the combining marks that follow the last letter
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

// normalizeWords returns the words of a lower-case text with one space between them.
// Four or more letters that are alone are one word: "i g n o r e".
func normalizeWords(s string) string {
	var f normalizedWordText
	f.readWords(s, func(r rune) string { return string(r) })
	return string(f.text)
}

// decodeLeet reads digits and signs as the letters they look like, in words that
// also have letters, of a text whose ASCII letters are lower case.
func decodeLeet(s string) string {
	var b []byte
	for i := 0; i < len(s); {
		if !isLetterOrLeetSign[s[i]] {
			i++
			continue
		}
		word, letters, signs := i, 0, 0
		for ; i < len(s) && isLetterOrLeetSign[s[i]]; i++ {
			if signs++; 'a' <= s[i] && s[i] <= 'z' {
				letters++
			}
		}
		if letters == 0 || letters == signs {
			continue
		}
		if b == nil {
			b = []byte(s)
		}
		for ; word < i; word++ {
			if n := strings.IndexByte(leetSigns, b[word]); n >= 0 {
				b[word] = leetLetters[n]
			}
		}
	}
	if b == nil {
		return s
	}
	return string(b)
}

// leetSigns are written for leetLetters.
const leetSigns, leetLetters = "0134578@$!|", "oieastbasil"

var isLetterOrLeetSign = func() (set [256]bool) {
	for c := 'a'; c <= 'z'; c++ {
		set[c] = true
	}
	for i := range len(leetSigns) {
		set[leetSigns[i]] = true
	}
	return set
}()
