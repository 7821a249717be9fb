package speech

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/shieldcli/shield/internal/decode"
)

// A form is the words of a text, in lower case with one space between them. Four
// or more letters that are alone are one word: "i g n o r e".
type form struct {
	text  []byte
	marks []mark // of each word
}

// A mark says where a word comes from.
type mark struct{ at, origin int32 }

// wordByte holds the ASCII characters of words in lower case, 0 for all others.
var wordByte = func() (table [256]byte) {
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

// read takes the words of a text, in which other characters than those of ASCII
// are read as spell says. It reports whether there are none of these.
func (f *form) read(text string, spell func(rune) string) (ascii bool) {
	f.text, f.marks = f.text[:0], f.marks[:0]
	w := wordState{form: f}
	ascii = true
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c = wordByte[c]; c != 0 {
				w.begin(i)
				f.text = append(f.text, c)
				w.letters++
			} else {
				w.end()
			}
			i++
			continue
		}
		ascii = false
		r, n := utf8.DecodeRuneInString(text[i:])
		for _, r := range spell(r) {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
				w.end()
				continue
			}
			w.begin(i)
			if w.letters++; r >= utf8.RuneSelf {
				w.letters = 2 // a character of Chinese is a word by itself
			}
			f.text = utf8.AppendRune(f.text, r)
		}
		i += n
	}
	w.end()
	return ascii
}

// wordState is the state of reading words.
type wordState struct {
	*form
	in      bool // a word has begun
	letters int  // in it
	start   int  // of the run of single letters, in text
	alone   int  // how many they are
}

func (w *wordState) begin(origin int) {
	if w.in {
		return
	}
	w.in, w.letters = true, 0
	if len(w.text) > 0 {
		w.text = append(w.text, ' ')
	}
	w.marks = append(w.marks, mark{int32(len(w.text)), int32(origin)})
}

func (w *wordState) end() {
	if !w.in {
		return
	}
	w.in = false
	if w.letters != 1 {
		w.alone = 0
		return
	}
	if w.alone == 0 {
		w.start = len(w.text) - 1
	}
	switch w.alone++; {
	case w.alone == 4: // "a b c d" from start on
		for i := 1; i < 4; i++ {
			w.text[w.start+i] = w.text[w.start+2*i]
		}
		w.text, w.marks = w.text[:w.start+4], w.marks[:len(w.marks)-3]
	case w.alone > 4:
		n := len(w.text)
		w.text[n-2] = w.text[n-1]
		w.text, w.marks = w.text[:n-1], w.marks[:len(w.marks)-1]
	}
}

// origin returns the byte of the text that byte i of the form comes from: exactly
// at the beginning of words, and nearly within them.
func (f *form) origin(i int) int {
	n := sort.Search(len(f.marks), func(n int) bool { return int(f.marks[n].at) > i }) - 1
	if n < 0 {
		return 0
	}
	at := int(f.marks[n].origin) + i - int(f.marks[n].at)
	if n+1 < len(f.marks) {
		at = min(at, int(f.marks[n+1].origin))
	}
	return at
}

// latin reads a character in compatibility form, and a Latin or Greek letter
// without its accents. Invisible characters are nothing, and so is a mark that
// is alone.
func latin(r rune) string {
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
	return strings.ToLower(plainLatin(string(parts)))
}

// folded reads a character that looks like a Latin letter as that.
func folded(r rune) string { return strings.ToLower(decode.Fold(string(r))) }

// A spelling remembers how characters were read.
type spelling struct {
	spell func(rune) string
	known [512]struct {
		r    rune
		text string
	}
}

func (s *spelling) of(r rune) string {
	k := &s.known[int(r)%len(s.known)]
	if k.r != r {
		k.r, k.text = r, s.spell(r)
	}
	return k.text
}
