package speech

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/shieldcli/shield/internal/decode"
)

// A normalizedWordText is the words of a text, in lower case with one space between them. Four
// or more letters that are alone are one word: "i g n o r e".
type normalizedWordText struct {
	text        []byte
	wordOrigins []wordOrigin // origin of each word in the original text
}

// A wordOrigin says where a word comes from.
type wordOrigin struct{ normalizedTextOffset, originalTextOffset int32 }

// wordBytes holds the ASCII characters of words in lower case, 0 for all others.
var wordBytes = func() (table [256]byte) {
	for c := range byte(128) {
		switch {
		case '0' <= c && c <= '9' || 'a' <= c && c <= 'z':
			table[c] = c
		case 'A' <= c && c <= 'Z':
			table[c] = c | 0x20
		}
	}
	return table
}()

// readWords splits a text into words; spell returns the spelling of each character outside ASCII.
// It reports whether the text contains only ASCII characters.
func (f *normalizedWordText) readWords(text string, spell func(rune) string) (ascii bool) {
	f.text, f.wordOrigins = f.text[:0], f.wordOrigins[:0]
	w := wordReader{normalizedWordText: f}
	ascii = true
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c = wordBytes[c]; c != 0 {
				w.beginWord(i)
				f.text = append(f.text, c)
				w.wordLetterCount++
			} else {
				w.endWord()
			}
			i++
			continue
		}
		ascii = false
		r, n := utf8.DecodeRuneInString(text[i:])
		for _, r := range spell(r) {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
				w.endWord()
				continue
			}
			w.beginWord(i)
			if w.wordLetterCount++; r >= utf8.RuneSelf {
				w.wordLetterCount = 2 // at least 2: a single Chinese character is a whole word, not a letter of a spaced-out word
			}
			f.text = utf8.AppendRune(f.text, r)
		}
		i += n
	}
	w.endWord()
	return ascii
}

// wordReader is the state of reading words.
type wordReader struct {
	*normalizedWordText
	inWord                         bool // a word has begun
	wordLetterCount                int  // in it
	singleLetterRunNormalizedStart int  // offset in text of the first of several single letters in a row
	singleLetterRunLen             int  // how many single letters are in a row so far
}

func (w *wordReader) beginWord(origin int) {
	if w.inWord {
		return
	}
	w.inWord, w.wordLetterCount = true, 0
	if len(w.text) > 0 {
		w.text = append(w.text, ' ')
	}
	w.wordOrigins = append(w.wordOrigins, wordOrigin{int32(len(w.text)), int32(origin)})
}

func (w *wordReader) endWord() {
	if !w.inWord {
		return
	}
	w.inWord = false
	if w.wordLetterCount != 1 {
		w.singleLetterRunLen = 0
		return
	}
	if w.singleLetterRunLen == 0 {
		w.singleLetterRunNormalizedStart = len(w.text) - 1
	}
	switch w.singleLetterRunLen++; {
	case w.singleLetterRunLen == 4: // the text ends in four spaced letters, such as "a b c d": join them
		for i := 1; i < 4; i++ {
			w.text[w.singleLetterRunNormalizedStart+i] = w.text[w.singleLetterRunNormalizedStart+2*i]
		}
		w.text, w.wordOrigins = w.text[:w.singleLetterRunNormalizedStart+4], w.wordOrigins[:len(w.wordOrigins)-3]
	case w.singleLetterRunLen > 4:
		n := len(w.text)
		w.text[n-2] = w.text[n-1]
		w.text, w.wordOrigins = w.text[:n-1], w.wordOrigins[:len(w.wordOrigins)-1]
	}
}

// originalOffset returns the offset in the original text for byte i of f.text. It is exact at the
// beginning of words, and approximate within them.
func (f *normalizedWordText) originalOffset(i int) int {
	n := sort.Search(len(f.wordOrigins), func(n int) bool { return int(f.wordOrigins[n].normalizedTextOffset) > i }) - 1
	if n < 0 {
		return 0
	}
	at := int(f.wordOrigins[n].originalTextOffset) + i - int(f.wordOrigins[n].normalizedTextOffset)
	if n+1 < len(f.wordOrigins) {
		at = min(at, int(f.wordOrigins[n+1].originalTextOffset))
	}
	return at
}

// latinSpelling returns the spelling of a character in lower case. If the compatibility decomposition (NFKD) of
// the character begins with an ASCII, Latin or Greek character, the spelling is this decomposition without
// accents; otherwise it is the character itself. Invisible characters and combining accents become "".
func latinSpelling(r rune) string {
	if unicode.Is(unicode.Cf, r) || 0x300 <= r && r <= 0x36f {
		return ""
	}
	parts := norm.NFKD.PropertiesString(string(r)).Decomposition()
	if parts == nil {
		parts = []byte(string(r))
	}
	if first, _ := utf8.DecodeRune(parts); first >= utf8.RuneSelf && !unicode.In(first, unicode.Latin, unicode.Greek) {
		return string(unicode.ToLower(r))
	}
	return strings.ToLower(foldToUnaccentedLatin(string(parts)))
}

// lookalikeSpelling returns the spelling of a character in lower case. If the character looks like a Latin
// letter, its spelling is this letter.
func lookalikeSpelling(r rune) string {
	return strings.ToLower(decode.FoldUnicodeLookalikes(string(r)))
}

// A spellingCache caches the results of the function spell. A new character replaces the older character in the
// same slot.
type spellingCache struct {
	spell  func(rune) string
	cached [512]struct {
		r    rune
		text string
	}
}

func (s *spellingCache) spellingOf(r rune) string {
	k := &s.cached[int(r)%len(s.cached)]
	if k.r != r {
		k.r, k.text = r, s.spell(r)
	}
	return k.text
}
