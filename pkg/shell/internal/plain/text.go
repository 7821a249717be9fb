package plain

import (
	"strconv"
	"strings"
)

// ComputeTrOutput returns what the program tr writes for an input text. It returns false if the flags or
// operands have a form that it does not compute, such as a complement (-c) or multi-byte characters.
func ComputeTrOutput(flags []string, operands []string, text string) (string, bool) {
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
			return "", false // multi-byte characters, and forms that are not computed
		}
	}
	from := expandTrSet(operands[0])
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
	to := []rune(expandTrSet(operands[1]))
	if len(to) == 0 {
		return "", false
	}
	table := map[rune]rune{}
	for i, r := range []rune(from) {
		table[r] = to[min(i, len(to)-1)] // if a character occurs twice, the last one counts
	}
	return strings.Map(func(r rune) rune {
		if o, ok := table[r]; ok {
			return o
		}
		return r
	}, text), true
}

// expandTrSet expands the ranges and classes of a set of tr.
func expandTrSet(s string) string {
	for _, class := range [...][2]string{
		{"[:upper:]", "A-Z"}, {"[:lower:]", "a-z"}, {"[:digit:]", "0-9"}, {"[:alpha:]", "A-Za-z"}, {"[:alnum:]", "0-9A-Za-z"},
		{"[:space:]", " \t\n\r\v\f"}, {"[:blank:]", " \t"}, {"[:punct:]", "!\"#$%&'()*+,./:;<=>?@[]^_`{|}~-"},
	} {
		s = strings.ReplaceAll(s, class[0], class[1])
	}
	s = UnescapeANSIC(s)
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

// computeSed computes sed scripts of substitutions without regular expressions.
func computeSed(flags []string, operands []string, text string) (string, bool) {
	for _, f := range flags {
		if f != "-e" && f != "-E" && f != "-r" {
			return "", false
		}
	}
	if len(operands) != 1 {
		return "", false
	}
	script := strings.TrimSpace(operands[0])
	for script != "" {
		if script[0] != 's' || len(script) < 4 {
			return "", false
		}
		sep := script[1:2]
		parts := strings.SplitN(script[2:], sep, 3)
		if len(parts) < 3 || parts[0] == "" || strings.ContainsAny(parts[0], `\.*[]^$+?(){}|`) || strings.ContainsAny(parts[1], `\&`) {
			return "", false
		}
		opts, rest, _ := strings.Cut(parts[2], ";")
		switch strings.TrimSpace(opts) {
		case "":
			lines := strings.Split(text, "\n")
			for i := range lines {
				lines[i] = strings.Replace(lines[i], parts[0], parts[1], 1)
			}
			text = strings.Join(lines, "\n")
		case "g":
			if len(parts[1])*strings.Count(text, parts[0]) > maxSedSubstitutionBytes {
				return "", false
			}
			text = strings.ReplaceAll(text, parts[0], parts[1])
		default:
			return "", false
		}
		script = strings.TrimSpace(rest)
	}
	return text, true
}

// computeCut computes cut -c, -b and -d -f with one position or range.
func computeCut(flags []string, operands []string, lines []string) (string, bool) {
	delim, list, bytes := "\t", "", false
	next := 0
	operand := func() string {
		if next < len(operands) {
			next++
			return operands[next-1]
		}
		return ""
	}
	for _, f := range flags {
		if len(f) < 2 {
			return "", false
		}
		rest := f[2:]
		switch f[1] {
		case 'd':
			delim = rest
			if rest == "" {
				delim = operand()
			}
		case 'f', 'c', 'b':
			bytes = f[1] != 'f'
			list = rest
			if rest == "" {
				list = operand()
			}
		default:
			return "", false
		}
	}
	if list == "" || delim == "" || strings.Contains(list, ",") {
		return "", false
	}
	lo, hi, ranged := strings.Cut(list, "-")
	from, err := strconv.Atoi(lo)
	if lo == "" {
		from, err = 1, nil
	}
	to := from
	if ranged {
		to = 1 << 20
		if hi != "" {
			to, err = strconv.Atoi(hi)
		}
	}
	if err != nil || from < 1 || to < from {
		return "", false
	}
	var b strings.Builder
	for _, l := range lines {
		l, nl := strings.CutSuffix(l, "\n")
		parts, sep := strings.Split(l, delim), delim
		if bytes && strings.ContainsFunc(l, func(r rune) bool { return r >= 0x80 }) {
			return "", false
		}
		if bytes {
			parts, sep = strings.Split(l, ""), ""
		}
		if len(parts) > 1 || bytes {
			l = strings.Join(parts[min(from-1, len(parts)):min(to, len(parts))], sep)
		}
		b.WriteString(l)
		if nl {
			b.WriteByte('\n')
		}
	}
	return b.String(), true
}
