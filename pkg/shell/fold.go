package shell

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// printf computes the output of the shell's printf.
func (s *analysisState) printf(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	words := argv[1:]
	if len(words) > 0 && words[0].IsLiteral() && len(words[0].Text) > 2 && strings.HasPrefix(words[0].Text, "-v") {
		name := words[0]
		name.Text = name.Text[2:]
		words = append([]abstract.Value{abstract.Lit("-v"), name}, words[1:]...)
	}
	if len(words) > 1 && words[0].Text == "-v" {
		v := s.formatPrintf(words[2:])
		s.assignByNameWord(words[1], v)
		return abstract.Value{}
	}
	if len(words) > 0 && words[0].Text == "--" {
		words = words[1:]
	}
	return s.formatPrintf(words)
}

// formatPrintf returns the output of printf.
func (s *analysisState) formatPrintf(words []abstract.Value) abstract.Value {
	if len(words) == 0 {
		return abstract.Value{}
	}
	if !words[0].IsLiteral() {
		return abstract.JoinWithSpaces(words)
	}
	form, args := words[0].Text, words[1:]
	if len(args) == 1 && args[0].IsGlobPattern && args[0].Origin == 0 && !args[0].FullyUnknown && oneWordPerLinePrintfFormats[form] { // printf prints each path that the glob matches on a line of its own
		args[0].HasPathPerLine = true
		return args[0]
	}
	var b abstract.Builder
	b.Taint = words[0].Taint
	for range abstract.MaxExpandedWords {
		used := 0
		for i := 0; i < len(form); i++ {
			switch {
			case form[i] == '\\' && i+1 < len(form):
				n := leadingEscapeSequenceLen(form[i:])
				b.AddLiteral(plain.UnescapeANSIC(form[i : i+n]))
				i += n - 1
			case form[i] != '%':
				end := i + 1
				for end < len(form) && form[end] != '\\' && form[end] != '%' {
					end++
				}
				b.AddLiteral(form[i:end])
				i = end - 1
			case strings.HasPrefix(form[i:], "%%"):
				b.AddLiteral("%")
				i++
			default:
				end := i + 1
				for end < len(form) && strings.IndexByte("-+ #0123456789.'", form[end]) >= 0 {
					end++
				}
				if end == len(form) {
					b.AddLiteral(form[i:])
					i = end
					break
				}
				arg := abstract.Value{}
				if used < len(args) {
					arg = args[used]
				}
				used++
				b.Add(formatVerb(form[end], form[i+1:end], arg))
				i = end
			}
		}
		args = args[min(used, len(args)):]
		if used == 0 || len(args) == 0 || !s.spendSteps(1) {
			break
		}
	}
	return b.Value()
}

// leadingEscapeSequenceLen returns the length in bytes of the escape sequence at the start of s.
func leadingEscapeSequenceLen(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch c := s[1]; {
	case c >= '0' && c <= '7':
		return 1 + plain.CountLeadingDigits(s[1:], 8, 3)
	case c == 'x':
		return 2 + plain.CountLeadingDigits(s[2:], 16, 2)
	case c == 'u':
		return 2 + plain.CountLeadingDigits(s[2:], 16, 4)
	case c == 'U':
		return 2 + plain.CountLeadingDigits(s[2:], 16, 8)
	}
	return 2
}

// printfUnquotedCharacters are the characters that printf %q does not quote.
const printfUnquotedCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:./-"

// formatVerb formats one argument of printf.
func formatVerb(c byte, flags string, arg abstract.Value) abstract.Value {
	if !arg.IsLiteral() {
		return arg
	}
	switch c {
	case 'q':
		if arg.Text == "" || strings.Trim(arg.Text, printfUnquotedCharacters) != "" {
			return unknownValueWithTaintsOf("%q", arg)
		}
		return arg
	case 's':
		if _, precision, ok := strings.Cut(flags, "."); ok {
			if n, err := strconv.Atoi(precision); err == nil && n < len(arg.Text) {
				arg.Text = arg.Text[:n]
			}
		}
		return arg
	case 'b':
		text, ended := plain.UnescapeEcho(arg.Text)
		if ended { // output ends here
			return abstract.UnknownOutput("printf", arg.Taint)
		}
		arg.Text = text
		return arg
	case 'c':
		arg.Text = arg.Text[:min(1, len(arg.Text))]
		return arg
	}
	n, err := strconv.ParseInt(arg.Text, 0, 64)
	if len(arg.Text) > 1 && (arg.Text[0] == '\'' || arg.Text[0] == '"') {
		n, err = int64([]rune(arg.Text[1:])[0]), nil
	}
	if err != nil && arg.Text != "" {
		return abstract.Value{Text: "*", Display: arg.Text, IsGlobPattern: true, Taint: arg.Taint}
	}
	switch c {
	case 'd', 'i', 'u':
		arg.Text = strconv.FormatInt(n, 10)
	case 'x':
		arg.Text = strconv.FormatInt(n, 16)
	case 'X':
		arg.Text = strings.ToUpper(strconv.FormatInt(n, 16))
	case 'o':
		arg.Text = strconv.FormatInt(n, 8)
	default:
		return abstract.Value{Text: "*", Display: arg.Text, IsGlobPattern: true, Taint: arg.Taint}
	}
	width := strings.TrimLeft(flags, "-+ #'")
	if w, err := strconv.Atoi(width); err == nil && w < 64 && len(arg.Text) < w && strings.HasPrefix(width, "0") {
		arg.Text = strings.Repeat("0", w-len(arg.Text)) + arg.Text
	}
	return arg
}

// computeProgramOutput returns the output of a program and true if it can compute the output, as for filters and
// decoders of known text. For a program such as date, and for one of textFilters whose output for known text
// cannot be computed, it returns an unknown value and true. In all other cases it returns false.
func (s *analysisState) computeProgramOutput(programBaseName string, argv []abstract.Value, stdin abstract.Value, f programIO) (abstract.Value, bool) {
	if (programBaseName == "dirname" || programBaseName == "basename") && len(argv) > 1 && argv[1].IsGlobPattern {
		return computeGlobBasenameOrDirname(programBaseName, argv[1:])
	}
	if pathListingPrograms[programBaseName] {
		if v, ok := s.pathsListedByProgram(programBaseName, argv, f); ok || programBaseName == "git" {
			return v, ok
		}
	}
	var flags []string
	var operands []abstract.Value
	for _, v := range argv[1:] {
		if !v.IsLiteral() {
			return abstract.Value{}, false
		}
		if strings.HasPrefix(v.Text, "-") && len(v.Text) > 1 {
			flags = append(flags, v.Text)
		} else {
			operands = append(operands, v)
		}
	}
	switch programBaseName {
	case "echo":
		return s.echo(argv, abstract.Streams{}), true
	case "printf":
		return s.formatPrintf(argv[1:]), true
	case "basename", "dirname", "seq":
		return computeBasenameDirnameOrSeq(programBaseName, flags, operands)
	case "mktemp":
		return abstract.Value{Text: "/tmp/tmp.*", Display: "$(mktemp)", IsGlobPattern: true}.WithOrigin(abstract.OriginCommandOutput), true
	case "date", "nproc", "whoami", "id", "uname", "hostname", "arch", "tty", "wc", "uuidgen", "logname":
		return abstract.UnknownTextWithoutSlash("$("+programBaseName+")", abstract.OriginCommandOutput), true
	case "which":
		if len(operands) == 1 {
			return computeWhichOutput(operands[0]), true
		}
	case "cat", "tee", "tac", "sort", "uniq", "head", "tail", "rev", "tr", "sed", "cut", "xxd", "base64", "gbase64", "base32", "openssl", "gzip", "gunzip", "zcat", "uudecode", "hexdump", "od", "nl", "fold", "paste", "dd", "pv", "sponge", "perl", "awk", "python3", "grep", "egrep", "fgrep", "rg", "shuf":
	default:
		return abstract.Value{}, false
	}
	text := stdin
	if f.readFileCount > 0 {
		text = f.readContent
	}
	if text.HasPathPerLine && selectsInputLines(programBaseName, flags, operands, f) {
		return text, true
	}
	if !text.IsLiteral() || len(text.Text) > abstract.MaxValueBytes || !s.spendSteps(1+len(text.Text)/512) {
		return abstract.Value{}, false
	}
	if isDecoderCommand(programBaseName, flags) {
		text.Taint |= abstract.TaintDecoded
	}
	out, ok := plain.ComputeFilterOutput(programBaseName, flags, literalOrPatternTexts(operands), text.Text)
	if !ok {
		return unknownValueWithTaintsOf("$("+programBaseName+")", text).WithOrigin(abstract.OriginUnanalysedComputation | abstract.OriginCommandOutput), textFilters[programBaseName]
	}
	text.Text = out
	return text, true
}

// textFilters are the programs that output their input in another form, which can hide a literal text.
var textFilters = map[string]bool{"tac": true, "sort": true, "uniq": true, "head": true, "tail": true, "rev": true, "tr": true, "sed": true, "cut": true, "xxd": true, "base64": true, "gbase64": true, "base32": true, "nl": true, "fold": true, "paste": true, "awk": true, "shuf": true}

// printsShellCodeForEval reports whether a program outputs shell settings that are meant for eval, as in
// eval "$(ssh-agent -s)": variables, aliases and completions. isProgramKnown says that the program
// is known.
func printsShellCodeForEval(programBaseName string, argv []abstract.Value, isProgramKnown bool) bool {
	first := ""
	if len(argv) > 1 {
		first = argv[1].Text
	}
	if command.ShellSetup[programBaseName+"/"+first] {
		return true
	}
	return isProgramKnown && len(argv) > 2 && (first == "completion" || first == "completions") &&
		(argv[2].Text == "bash" || argv[2].Text == "zsh" || argv[2].Text == "fish")
}

func isDecoderCommand(base string, flags []string) bool {
	switch base {
	case "base64", "gbase64", "base32", "xxd", "openssl", "gunzip", "zcat", "gzip", "rev", "uudecode":
		return len(flags) > 0 || base == "rev" || base == "zcat" || base == "gunzip"
	case "tr":
		return true
	}
	return false
}

// computeBasenameDirnameOrSeq computes basename, dirname and seq.
func computeBasenameDirnameOrSeq(base string, flags []string, operands []abstract.Value) (abstract.Value, bool) {
	if len(operands) == 0 || len(flags) > 0 {
		return abstract.Value{}, false
	}
	v := operands[0]
	v.SourceSpan.Start, v.SourceSpan.End = 0, 0
	i := strings.LastIndexByte(strings.TrimRight(v.Text, "/"), '/')
	switch base {
	case "basename":
		v.Text = v.Text[i+1:]
		if len(operands) > 1 {
			v.Text = strings.TrimSuffix(v.Text, operands[1].Text)
		}
	case "dirname":
		switch {
		case i < 0:
			v.Text = "."
		case i == 0:
			v.Text = "/"
		default:
			v.Text = v.Text[:i]
		}
	default:
		return computeSeq(operands)
	}
	v.Text += "\n"
	return v, true
}

func computeSeq(operands []abstract.Value) (abstract.Value, bool) {
	from, to := 1, 0
	var err error
	if to, err = strconv.Atoi(operands[len(operands)-1].Text); err != nil || len(operands) > 2 {
		return abstract.Value{}, false
	}
	if len(operands) == 2 {
		if from, err = strconv.Atoi(operands[0].Text); err != nil {
			return abstract.Value{}, false
		}
	}
	if to-from > abstract.MaxExpandedWords/2 {
		return abstract.UnknownTextWithoutSlash("$(seq)", abstract.OriginCommandOutput), true
	}
	var b strings.Builder
	for i := from; i <= to; i++ {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	return abstract.Lit(b.String()), true
}

func literalOrPatternTexts(values []abstract.Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.Text
	}
	return out
}
