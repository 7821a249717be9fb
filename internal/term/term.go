// Package term opens the user's terminal device, which need not be standard input, and escapes text
// so that control characters and invisible characters cannot change what the user sees.
package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// EscapeControlAndInvisible returns s with every character made visible that a terminal or a page
// would obey, hide, or use to reorder what stands around it: controls, escape
// sequences, bidirectional and zero-width characters, blanks that are not a
// space, and bytes that are not UTF-8. They stand as <U+202E> or <0xFF>.
// Applied twice it changes nothing more.
func EscapeControlAndInvisible(s string) string {
	plain := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	marks := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if unicode.IsMark(r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<0x%02X>", s[i])
		// A stack of combining marks covers the lines around it.
		case needsEscape(r), marks > maxCombiningMarksPerLetter, marks > 0 && i == 0:
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// maxCombiningMarksPerLetter is how many combining marks a letter may carry, as Vietnamese and
// Hebrew need them.
const maxCombiningMarksPerLetter = 3

// needsEscape reports whether a character is unprintable or invisible.
func needsEscape(r rune) bool {
	switch {
	case !unicode.IsPrint(r):
		return true
	case r < 0x300:
		return false
	case unicode.Is(unicode.Variation_Selector, r),
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r),
		r == '\u2800': // a Braille pattern without dots
		return true
	default:
		return false
	}
}

// Width returns how many columns an escaped text takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.IsMark(r):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// WrapLines returns s, with control characters made visible, as at least one line of at most columns
// columns. A newline of s ends a line. Lines are broken at blanks, of which one is left out; a word
// is split only if it is longer than a line.
func WrapLines(s string, columns int) []string {
	columns = max(columns, 2)
	var lines []string
	for text := range strings.SplitSeq(s, "\n") {
		lines = appendWrapped(lines, EscapeControlAndInvisible(text), columns)
	}
	return lines
}

// appendWrapped appends the lines of one escaped text.
func appendWrapped(lines []string, text string, columns int) []string {
	start, used := 0, 0
	gap, behind := -1, 0 // gap: last blank after a word in this line, -1 for none; behind: columns up to the end of this blank
	word := false
	for i, r := range text {
		w := runeWidth(r)
		if used+w > columns {
			switch {
			case r == ' ' && word:
				lines = append(lines, text[start:i])
				start, used, gap, word = i+1, 0, -1, false
				continue
			case gap >= 0:
				lines = append(lines, text[start:gap])
				start, used = gap+1, used-behind
			default:
				lines = append(lines, text[start:i])
				start, used = i, 0
			}
			gap = -1
		}
		used += w
		if r != ' ' {
			word = true
		} else if word {
			gap, behind = i, used
		}
	}
	return append(lines, text[start:])
}

// TruncateWithEllipsis returns s, made visible, on one line of at most columns columns; what is
// left out stands as an ellipsis.
func TruncateWithEllipsis(s string, columns int) string {
	s = EscapeControlAndInvisible(s)
	if Width(s) <= columns {
		return s
	}
	used := 0
	for i, r := range s {
		if used += runeWidth(r); used > columns-1 {
			return s[:i] + "…"
		}
	}
	return s
}
