package plain

import (
	"strings"
)

// Translate folds tr.
func Translate(flags []string, operands []string, text string) (string, bool) {
	remove, complement := false, false
	for _, f := range flags {
		remove = remove || strings.Contains(f, "d") && !strings.HasPrefix(f, "--") || f == "--delete"
		complement = complement || strings.ContainsAny(f, "cC")
		if strings.ContainsAny(f, "st") && !remove {
			return "", false
		}
	}
	if complement || len(operands) == 0 {
		return "", false
	}
	for _, set := range operands {
		if strings.ContainsFunc(set, func(r rune) bool { return r >= 0x80 }) || strings.Contains(set, `\-`) || strings.Contains(set, "[=") || strings.Contains(set, "*]") {
			return "", false // bytes of letters, and forms that are not worked out
		}
	}
	from := trSet(operands[0])
	if remove {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(from, r) {
				return -1
			}
			return r
		}, text), true
	}
	if len(operands) < 2 {
		return "", false
	}
	to := []rune(trSet(operands[1]))
	if len(to) == 0 {
		return "", false
	}
	table := map[rune]rune{}
	for i, r := range []rune(from) {
		table[r] = to[min(i, len(to)-1)] // of a character that is there twice, the later counts
	}
	return strings.Map(func(r rune) rune {
		if o, ok := table[r]; ok {
			return o
		}
		return r
	}, text), true
}

// trSet expands the ranges and classes of one set of tr.
func trSet(s string) string {
	for _, class := range [...][2]string{
		{"[:upper:]", "A-Z"}, {"[:lower:]", "a-z"}, {"[:digit:]", "0-9"}, {"[:alpha:]", "A-Za-z"}, {"[:alnum:]", "0-9A-Za-z"},
		{"[:space:]", " \t\n\r\v\f"}, {"[:blank:]", " \t"}, {"[:punct:]", "!\"#$%&'()*+,./:;<=>?@[]^_`{|}~-"},
	} {
		s = strings.ReplaceAll(s, class[0], class[1])
	}
	s = ANSIC(s)
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i+2 < len(s) && s[i+1] == '-' && s[i] <= s[i+2] {
			for c := int(s[i]); c <= int(s[i+2]); c++ {
				b.WriteByte(byte(c))
			}
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
