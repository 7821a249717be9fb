package decode

import (
	"slices"
	"strings"
)

// rot13OrReversedEncodingName returns the encoding of a text, "rot13" or "reversed"; "" if it is neither. Decoding must
// give three frequent words, and more than the text has itself; two are enough if it has none.
func rot13OrReversedEncodingName(s string) string {
	var plain, rot, rev int
	var buf [maxWordBytes]byte
	for i := 0; i < len(s); {
		if !isLetter(s[i]) {
			i++
			continue
		}
		j := i
		for j < len(s) && isLetter(s[j]) {
			j++
		}
		word := s[i:j]
		i = j
		if len(word) < 2 || len(word) > len(buf) {
			continue
		}
		n, first, last := len(word), letterIndex(word[0]), letterIndex(word[len(word)-1])
		if mayBeFrequentWord(n, first, last) && isFrequentWord(string(lowerInto(buf[:n], word))) {
			plain++
			continue
		}
		if mayBeFrequentWord(n, (first+13)%26, (last+13)%26) && isFrequentWord(string(rot13Into(buf[:n], word))) {
			rot++
		}
		if mayBeFrequentWord(n, last, first) && isFrequentWord(string(reverseInto(buf[:n], word))) {
			rev++
		}
	}
	enough := func(n int) bool { return n > plain && (n >= 3 || n == 2 && plain == 0) }
	switch {
	case enough(rot) && rot >= rev:
		return "rot13"
	case enough(rev):
		return "reversed"
	}
	return ""
}

// maxWordBytes is the maximum length of a word to examine.
const maxWordBytes = 16

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func lowerInto(dst []byte, s string) []byte {
	for i := range dst {
		dst[i] = s[i] | 0x20
	}
	return dst
}

func rot13Into(dst []byte, s string) []byte {
	for i := range dst {
		dst[i] = byte(rot13(rune(s[i] | 0x20)))
	}
	return dst
}

func reverseInto(dst []byte, s string) []byte {
	for i := range dst {
		dst[i] = s[len(s)-1-i] | 0x20
	}
	return dst
}

func rot13(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z':
		return 'a' + (r-'a'+13)%26
	case 'A' <= r && r <= 'Z':
		return 'A' + (r-'A'+13)%26
	}
	return r
}

// Reverse returns a text reversed.
func Reverse(s string) string {
	if IsASCII(s) {
		b := []byte(s)
		slices.Reverse(b)
		return string(b)
	}
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return strings.ToValidUTF8(string(r), "")
}

// frequentWordText are words frequent in sentences or commands, without those whose rot13 or reversal is also
// a frequent word.
const frequentWordText = `
rm rf cp mv sh dd nc ls wget curl bash sudo chmod chown echo cat grep find eval exec python perl ruby node http https
com etc passwd shadow root home tmp usr dev null ssh tcp key keys token secret password credentials admin system shell
evil base exfil upload download the and you your all ignore previous instructions instruction prompt forget disregard
override bypass rules now are send delete read write file files run execute command data user with from this that have
will not for to in is of it must should please do me my into about what which print powershell cmd invoke expression
format shutdown kill reboot crontab import open output reveal allow safe`

// frequentWords are the words of frequentWordText. frequentWordLastLetters has a bit for each of
// their last letters, by word length and first letter, so that most other words are skipped quickly.
var frequentWords, frequentWordLastLetters = func() (set map[string]bool, ends [maxWordBytes + 1][26]uint32) {
	set = make(map[string]bool, 160)
	for w := range strings.FieldsSeq(frequentWordText) {
		set[w] = true
		ends[len(w)][letterIndex(w[0])] |= 1 << letterIndex(w[len(w)-1])
	}
	return set, ends
}()

// Rot13AndReversed returns a text in rot13 and reversed, without checking the result, to search for known
// phrases.
func Rot13AndReversed(s string) (rotated, backwards string) {
	b := []byte(s)
	for i, c := range b {
		b[i] = rot13Table[c]
	}
	return string(b), Reverse(s)
}

var rot13Table = func() (to [256]byte) {
	for i := range to {
		to[i] = byte(rot13(rune(i)))
	}
	return to
}()

func isFrequentWord(w string) bool { return frequentWords[w] }

// mayBeFrequentWord reports whether a frequent word has this length, first and last letter.
func mayBeFrequentWord(n int, first, last byte) bool {
	return frequentWordLastLetters[n][first]&(1<<last) != 0
}

// letterIndex returns the number of a letter, from 0.
func letterIndex(c byte) byte { return c&0x1f - 1 }
