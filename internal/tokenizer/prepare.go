package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// NormalizeForShieldModels normalizes the training texts and the input of shield's own models. It
// works in one pass of linear time, and a second application changes nothing.
//
//   - It drops invalid UTF-8, control and format characters, private and
//     unassigned code points, and code points that Unicode calls ignorable:
//     "r\u200bm" becomes "rm". This includes tag characters; the caller decodes
//     text that they hide.
//   - It replaces compatibility forms by plain characters and upper-case letters
//     by lower-case letters, and removes combining marks without width:
//     "ＣＵＲＬ" and "cürl" become "curl".
//   - It puts spaces around Chinese and Japanese ideographs, symbols such as
//     emoji, and all characters above the basic plane. A model knows few of
//     them, and one unknown character makes the whole word unknown: "curl😀"
//     would hide curl.
//   - It replaces each run of white space by one space, and removes white space
//     at both ends.
func NormalizeForShieldModels(text string) string {
	i := alreadyNormalizedPrefixLen(text)
	if i == len(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	b.WriteString(text[:i])
	w := singleSpaceWriter{b: &b, endsWithSpace: i == 0 || text[i-1] == ' '}
	for ; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf {
			return finishNonASCIINormalization(text[i:], &w)
		}
		w.writeASCII(c)
	}
	return strings.TrimSuffix(b.String(), " ")
}

// alreadyNormalizedPrefixLen returns the length of the longest prefix of text that
// [NormalizeForShieldModels] leaves unchanged. The prefix ends before the first upper-case letter,
// control character, non-ASCII character or repeated space, and before a space at either end of
// text.
func alreadyNormalizedPrefixLen(text string) int {
	space := true
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == ' ' && (space || i+1 == len(text)) || c < ' ' || c >= 0x7f || 'A' <= c && c <= 'Z' {
			return i
		}
		space = c == ' '
	}
	return len(text)
}

// A singleSpaceWriter appends runes and at most one space between them.
type singleSpaceWriter struct {
	b             *strings.Builder
	endsWithSpace bool // the last byte is a space, or there is none yet
}

func (w *singleSpaceWriter) writeASCII(c byte) {
	switch {
	case c == ' ' || '\t' <= c && c <= '\r':
		w.writeSpace()
	case c < ' ' || c == 0x7f:
	default:
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		w.b.WriteByte(c)
		w.endsWithSpace = false
	}
}

func (w *singleSpaceWriter) writeSpace() {
	if !w.endsWithSpace {
		w.b.WriteByte(' ')
		w.endsWithSpace = true
	}
}

// finishNonASCIINormalization normalizes and writes the rest of a text, from its first non-ASCII character on,
// and returns the whole normalized text.
//
// Composing (NFC) is the last step, so that a second normalization changes nothing. It joins what NFKD has
// split: Hangul syllables, and the vowel signs of Indic scripts, which are not removed because they have a
// width.
func finishNonASCIINormalization(unnormalizedRest string, w *singleSpaceWriter) string {
	decomposed := norm.NFKD.String(strings.ToValidUTF8(unnormalizedRest, ""))
	for _, r := range decomposed {
		switch {
		case r < utf8.RuneSelf:
			w.writeASCII(byte(r))
		case unicode.IsSpace(r):
			w.writeSpace()
		case isRemovedByNormalization(r):
		case mustSurroundWithSpaces(r):
			w.writeSpace()
			w.b.WriteRune(unicode.ToLower(r))
			w.endsWithSpace = false
			w.writeSpace()
		default:
			w.b.WriteRune(unicode.ToLower(r))
			w.endsWithSpace = false
		}
	}
	return norm.NFC.String(strings.TrimSuffix(w.b.String(), " "))
}

// isRemovedByNormalization reports whether [NormalizeForShieldModels] removes a character that is not
// white space.
func isRemovedByNormalization(r rune) bool {
	if unicode.IsLetter(r) || unicode.IsPunct(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) {
		// Fillers are letters without ink.
		return r == '\u115F' || r == '\u1160' || r == '\u3164' || r == '\uFFA0' || r == utf8.RuneError
	}
	return !unicode.Is(unicode.Mc, r)
}

// mustSurroundWithSpaces reports whether [NormalizeForShieldModels] puts spaces around a character.
func mustSurroundWithSpaces(r rune) bool {
	return r > 0xFFFF || isIdeograph(r) || unicode.Is(unicode.So, r)
}

// isIdeograph reports whether HuggingFace's BERT tokenizer treats a character as Chinese. Like that
// tokenizer, it leaves out U+2B820 to U+2B91F.
func isIdeograph(r rune) bool {
	return r >= 0x3400 && (r <= 0x4DBF || 0x4E00 <= r && r <= 0x9FFF || 0xF900 <= r && r <= 0xFAFF ||
		0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF || 0x2F800 <= r && r <= 0x2FA1F)
}
