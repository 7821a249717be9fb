package decode

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// minQuotedPrintableEscapes is how many characters must be written in quoted-printable before
// a text counts as such: "timeout=20" is not.
const minQuotedPrintableEscapes = 3

// decodeQuotedPrintable decodes the escapes =XX of quoted-printable text, and removes its soft line
// breaks.
func decodeQuotedPrintable(s string) string {
	var b strings.Builder
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] == '=' && i+2 < len(s) {
			hi, lo := hexDigitValue(s[i+1]), hexDigitValue(s[i+2])
			if c := byte(hi<<4 | lo); hi >= 2 && lo >= 0 && c != 0x7f {
				b.WriteByte(c)
				i += 2
				n++
				continue
			}
		}
		if s[i] == '=' {
			if rest := strings.TrimLeft(s[i+1:], "\r"); strings.HasPrefix(rest, "\n") {
				i = len(s) - len(rest)
				n++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	if n < minQuotedPrintableEscapes {
		return s
	}
	return strings.ToValidUTF8(b.String(), "\n")
}

// replaceEnclosedLetterSymbols replaces symbols that show a letter by the letter, if Unicode compatibility
// normalization (NFKC) leaves them unchanged: regional indicators, and letters on dark circles and
// squares.
func replaceEnclosedLetterSymbols(s string) string {
	if IsASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		for _, first := range [...]rune{0x1f1e6, 0x1f150, 0x1f170} {
			if first <= r && r < first+26 {
				return 'A' + r - first
			}
		}
		return r
	}, s)
}

// stringLiteralJoinPattern is what joins two literals in programs: nothing, or a sign.
var stringLiteralJoinPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("[\"'`][\\s+.,&|\\\\]{0,32}[\"'`]")
})

// joinStringLiterals joins the literals of a text that are beside each other:
// 'ig'+'nore', "ig" "nore", ["ig", "nore"].
func joinStringLiterals(s string) string {
	if !strings.ContainsAny(s, "\"'`") {
		return s
	}
	return stringLiteralJoinPattern().ReplaceAllLiteralString(s, "")
}

// maxPrintfBytes is how many bytes of the arguments of one printf command are read.
const maxPrintfBytes = 4 << 10

// expandPrintf replaces each printf command in a text by the text that it prints.
func expandPrintf(s string) string {
	const name = "printf"
	if !strings.Contains(s, name) {
		return s
	}
	var b strings.Builder
	for {
		i := strings.Index(s, name)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i+len(name):]
		args, rest := cutCommandArgs(s)
		for len(args) > 1 && strings.HasPrefix(args[0], "-") {
			args = args[1:]
		}
		if len(args) > 0 {
			b.WriteString(fillFormat(args[0], args[1:]))
		}
		s = rest
	}
}

// cutCommandArgs returns the arguments at the start of s, without quotes, and the text after the
// end of the command.
func cutCommandArgs(s string) (args []string, rest string) {
	var word strings.Builder
	quote, in := byte(0), false
	end := func() {
		if in {
			args = append(args, word.String())
			word.Reset()
			in = false
		}
	}
	i := 0
	for ; i < min(len(s), maxPrintfBytes); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, in = c, true
		case quote == 0 && strings.IndexByte(";|&\n)`", c) >= 0:
			end()
			return args, s[i:]
		case quote == 0 && (unicode.IsSpace(rune(c)) || c == ',' || c == '('):
			end()
		default:
			word.WriteByte(c)
			in = true
		}
	}
	end()
	return args, s[i:]
}

// fillFormat returns what the command printf prints for a format and its arguments: it repeats the
// format until all arguments are used. It treats every conversion as %s.
func fillFormat(format string, args []string) string {
	format, _ = Unescape(strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(format), NumericBackslashEscapes, nil)
	var b strings.Builder
	for {
		left := len(args)
		for i := 0; i < len(format); i++ {
			if format[i] != '%' {
				b.WriteByte(format[i])
				continue
			}
			for i++; i < len(format) && !isLetter(format[i]) && format[i] != '%'; i++ {
			}
			if i < len(format) && format[i] == '%' {
				b.WriteByte('%')
			} else if len(args) > 0 {
				text, _ := Unescape(args[0], NumericBackslashEscapes, nil)
				b.WriteString(text)
				args = args[1:]
			}
		}
		if len(args) == 0 || len(args) == left {
			return b.String()
		}
	}
}
