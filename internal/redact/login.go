package redact

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// Limits: the arguments of one program, the lines of its here-document, and all arguments in one text.
const (
	maxArgsPerProgram     = 128
	maxProgramArgsPerText = 8192
)

// A programArg is one argument: its text without enclosing quotes, and its position.
type programArg struct {
	text             string
	offset           int
	expandsVariables bool // not in single quotes, so that "$" starts a variable
}

// loginCommandsByProgram finds the entries of a program by its name.
var loginCommandsByProgram = sync.OnceValue(func() map[string][]*knowledge.ProgramSecretInput {
	byName := make(map[string][]*knowledge.ProgramSecretInput, 2*len(knowledge.ProgramSecretInputs))
	for i := range knowledge.ProgramSecretInputs {
		l := &knowledge.ProgramSecretInputs[i]
		for _, p := range l.Programs {
			byName[p] = append(byName[p], l)
		}
	}
	return byName
})

// A wordFirstTwoBytesSet is a set of the first two bytes of words, in any case.
type wordFirstTwoBytesSet [1 << 16 / 64]uint64

func firstTwoBytes(s string) uint16 { return uint16(s[0]|0x20)<<8 | uint16(s[1]|0x20) }

func (p *wordFirstTwoBytesSet) add(word string) {
	p[firstTwoBytes(word)/64] |= 1 << (firstTwoBytes(word) % 64)
}

// containsFirstTwoBytesOf reports whether s, which has at least two bytes, can begin with a word of the set.
func (p *wordFirstTwoBytesSet) containsFirstTwoBytesOf(s string) bool {
	return p[firstTwoBytes(s)/64]&(1<<(firstTwoBytes(s)%64)) != 0
}

// programNameFirstBytePairs are the first two bytes of the program names.
var programNameFirstBytePairs = sync.OnceValue(func() *wordFirstTwoBytesSet {
	set := new(wordFirstTwoBytesSet)
	for name := range loginCommandsByProgram() {
		set.add(name)
	}
	return set
})

// A nameLetterBitsets holds the second letters and the last letters of words, each as a bit set.
type nameLetterBitsets struct{ secondLetters, lastLetters uint32 }

// programNameLettersByLength holds the second and last letters of the program names in knowledge.ProgramSecretInputs, with
// and without ".exe". The index is the length of the name in bytes.
var programNameLettersByLength = sync.OnceValue(func() *[maxProgramNameBytes + 2]nameLetterBitsets {
	set := new([maxProgramNameBytes + 2]nameLetterBitsets)
	for name := range loginCommandsByProgram() {
		for _, n := range [...]string{name, name + ".exe"} {
			if len(n) < len(set) {
				set[len(n)].secondLetters |= 1 << (n[1] & 31)
				set[len(n)].lastLetters |= 1 << (n[len(n)-1] & 31)
			}
		}
	}
	return set
})

// maxProgramNameBytes is the maximum length of a program name, with ".exe".
const maxProgramNameBytes = 32

// findLoginCommandSecrets returns the secrets in the arguments and input of the programs named in s.
func findLoginCommandSecrets(s string, spans []secretSpan) []secretSpan {
	begin, lengths := programNameFirstBytePairs(), programNameLettersByLength()
	left := maxProgramArgsPerText
	for i := 0; i+1 < len(s); i++ {
		if i > 0 && isVariableOrProgramNameByte(s[i-1]) {
			continue
		}
		if !begin.containsFirstTwoBytesOf(s[i:]) {
			continue
		}
		end := i
		for end < len(s) && end-i <= maxProgramNameBytes && isVariableOrProgramNameByte(s[end]) {
			end++
		}
		if n := end - i; n < 2 || n < len(lengths) && (lengths[n].secondLetters&(1<<(s[i+1]&31)) == 0 || lengths[n].lastLetters&(1<<(s[end-1]&31)) == 0) {
			continue
		}
		found := loginCommandsByProgram()[normalizeProgramName(s[i:end])]
		if len(found) == 0 || end < len(s) && strings.IndexByte(" \t\n\r\"'\\;|&)<`", s[end]) < 0 {
			continue
		}
		if end < len(s) && (s[end] == '"' || s[end] == '\'') { // skip the closing quote after a quoted program path
			end++
		}
		args, after := parseArguments(s, end)
		if left -= 1 + len(args); left < 0 {
			return append(spans, newSpan(s, i, len(s), "unexamined text"))
		}
		for _, l := range found {
			spans = findArgSecrets(s, l, args, spans)
			if l.StdinSecretFormatName != "" && (l.RequiredOption == "" || hasOption(args, l.RequiredOption)) && argCountThroughSubcommand(args, l.SubcommandWords) >= 0 {
				spans = findStandardInputSecrets(s, i, after, args, l.StdinSecretFormatName, spans)
			}
		}
		i = end - 1
	}
	return spans
}

// normalizeProgramName returns the name of a program as it is written in the table of logins: in lower case,
// without .exe.
func normalizeProgramName(name string) string {
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}

// parseArguments returns the words after i up to the end of the command, and that end. A closing quote
// without an opening one ends it too: the command is inside a quoted text.
func parseArguments(s string, i int) (args []programArg, end int) {
	for len(args) < maxArgsPerProgram {
		for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\\' && i+1 < len(s) && s[i+1] == '\n') {
			if s[i] == '\\' {
				i++
			}
			i++
		}
		if i >= len(s) || strings.IndexByte("\n\r;|&()`", s[i]) >= 0 {
			break
		}
		end, whole := shellWordEndOffset(s, i)
		if end == i {
			break
		}
		args = append(args, unquoteArg(s, i, end))
		i = end
		if !whole {
			break
		}
	}
	return args, i
}

// shellWordEndOffset returns the end of the word at i, and whether the command continues.
func shellWordEndOffset(s string, i int) (end int, commandContinues bool) {
	for ; i < len(s); i++ {
		if s[i] == '[' && strings.HasPrefix(s[i:], redactionMarkPrefix) {
			mark := strings.IndexByte(s[i:], ']')
			if mark < 0 {
				return len(s), true
			}
			i += mark
			continue
		}
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r', ';', '|', '&', '(', ')', '`':
			return i, true
		case '\\':
			if i+1 < len(s) && s[i+1] != ' ' && s[i+1] != '\n' {
				i++
			}
		case '"', '\'':
			next := i + 1
			for next < len(s) && s[next] != c {
				if c == '"' && s[next] == '\\' {
					next++
				}
				next++
			}
			if next >= len(s) || i+1 < len(s) && strings.IndexByte(" \t\n;|&,)]}", s[i+1]) >= 0 && i > 0 && strings.IndexByte(" \t=", s[i-1]) < 0 {
				return i, false
			}
			i = next
		}
	}
	return i, true
}

// unquoteArg returns s[i:end] without enclosing quotes.
func unquoteArg(s string, i, end int) programArg {
	if end-i >= 2 && (s[i] == '\'' || s[i] == '"') && s[end-1] == s[i] {
		return programArg{s[i+1 : end-1], i + 1, s[i] == '"'}
	}
	return programArg{s[i:end], i, true}
}

// findArgSecrets returns the secrets in the arguments of a program.
func findArgSecrets(s string, l *knowledge.ProgramSecretInput, args []programArg, spans []secretSpan) []secretSpan {
	first := argCountThroughSubcommand(args, l.SubcommandWords)
	if first < 0 || l.RequiredOption != "" && !hasOption(args, l.RequiredOption) {
		return spans
	}
	put := func(a programArg, form string) { spans = addArgSecret(s, a, form, l.Separator, spans) }
	for i, a := range args {
		for _, o := range [...]struct {
			options  []string
			form     string
			attached bool
		}{{l.SecretValueOptions, "", false}, {l.AttachedSecretOptions, "", true}, {l.AccountAndSecretOptions, "account", false}, {l.AccountAndSecretOptions, "account", true}, {l.PassColonSecretOptions, "source", false}, {l.NameSecretPairOptions, "pairs", false}} {
			for _, option := range o.options {
				switch from, next := optionValueOffset(a.text, option, o.attached); {
				case from > 0:
					put(unquoteArgFrom(a, from), o.form)
				case next && i+1 < len(args):
					put(args[i+1], o.form)
				}
			}
		}
	}
	if l.SecretOperandIndex != 0 {
		for _, a := range selectOperands(args[first:], l.SecretOperandIndex, l.SecretOperandFormatName == "pairs") {
			put(a, l.SecretOperandFormatName)
		}
	}
	return spans
}

// optionValueOffset returns where the value of an option begins in a word, or 0, and whether the next word
// is the value.
func optionValueOffset(word, option string, valueIsAttached bool) (valueOffset int, valueIsNextWord bool) {
	slash := option[0] == '/'
	if len(word) < len(option) || word[:len(option)] != option && !(slash && hasPrefixFold(word, strings.ToLower(option))) {
		return 0, false
	}
	rest := word[len(option):]
	switch {
	case valueIsAttached:
		if rest == "" || rest[0] == '=' {
			return 0, false
		}
		return len(option), false
	case rest == "":
		return 0, !slash
	case rest[0] == '=' || rest[0] == ':' && slash:
		return len(option) + 1, false
	}
	return 0, false
}

// unquoteArgFrom returns the rest of a word without enclosing quotes.
func unquoteArgFrom(a programArg, from int) programArg {
	u := unquoteArg(a.text, from, len(a.text))
	return programArg{u.text, a.offset + u.offset, a.expandsVariables && u.expandsVariables}
}

// addArgSecret adds the secret in an argument.
func addArgSecret(s string, a programArg, secretFormat, accountSecretSeparator string, spans []secretSpan) []secretSpan {
	if accountSecretSeparator == "" {
		accountSecretSeparator = ":"
	}
	switch secretFormat {
	case "account":
		name, secret, ok := strings.Cut(a.text, accountSecretSeparator)
		if !ok {
			return spans
		}
		if at := strings.LastIndexByte(secret, '@'); accountSecretSeparator == "/" && at >= 0 { // user/secret@database
			secret = secret[:at]
		}
		a.offset += len(name) + len(accountSecretSeparator)
		a.text = secret
	case "source":
		secret, ok := strings.CutPrefix(a.text, "pass:")
		if !ok {
			return spans
		}
		a.offset += len("pass:")
		a.text = secret
	case "pairs":
		at := a.offset
		for pair := range strings.SplitSeq(a.text, ";") {
			if name, secret, ok := strings.Cut(pair, "="); ok {
				spans = appendPasswordSpan(s, programArg{secret, at + len(name) + 1, a.expandsVariables}, spans)
			}
			at += len(pair) + 1
		}
		return spans
	}
	return appendPasswordSpan(s, a, spans)
}

func appendPasswordSpan(s string, a programArg, spans []secretSpan) []secretSpan {
	if len(a.text) < minSecretArgumentBytes || isPlaceholder(a.text) && (a.expandsVariables || a.text[0] != '$') || a.text[0] == '-' || strings.HasPrefix(a.text, `\\`) {
		return spans
	}
	return append(spans, newSpan(s, a.offset, a.offset+len(a.text), "password"))
}

// minSecretArgumentBytes is the length of the shortest secret, in bytes.
const minSecretArgumentBytes = 3

// hasOption reports whether an option is among the arguments, alone or in a cluster such as -xp.
func hasOption(args []programArg, option string) bool {
	for _, a := range args {
		switch {
		case a.text == option:
			return true
		case len(option) == 2 && len(a.text) > 2 && a.text[0] == '-' && a.text[1] != '-' && len(a.text) < 6 && strings.Contains(a.text[1:], option[1:]):
			return true
		}
	}
	return false
}

// argCountThroughSubcommand returns how many arguments there are up to the last word of sub, or -1
// if these words are not among them in this order.
func argCountThroughSubcommand(args []programArg, sub []string) int {
	n := 0
	for i, a := range args {
		if n == len(sub) {
			return i
		}
		if strings.EqualFold(a.text, sub[n]) {
			n++
		}
	}
	if n < len(sub) {
		return -1
	}
	if len(sub) == 0 {
		return 0
	}
	return len(args)
}

// selectOperands returns the operand with the number operandNumber, the last one for -1, and also
// the operands after it if includeFollowing is set. Operands are the arguments that are neither
// options nor values of options with two dashes.
func selectOperands(args []programArg, operandNumber int, includeFollowing bool) []programArg {
	var words []programArg
	option := false
	for _, a := range args {
		if strings.HasPrefix(a.text, "<<") || strings.HasPrefix(a.text, ">") || a.text == "2>&1" {
			break
		}
		isOption := a.text == "" || a.text[0] == '-' || a.text[0] == '/' && strings.Count(a.text, "/") == 1
		if !isOption && !option {
			words = append(words, a)
		}
		option = strings.HasPrefix(a.text, "--") && !strings.Contains(a.text, "=")
	}
	switch {
	case operandNumber < 0 && len(words) > 0:
		return words[len(words)-1:]
	case operandNumber < 0 || operandNumber > len(words):
		return nil
	case includeFollowing:
		return words[operandNumber-1:]
	}
	return words[operandNumber-1 : operandNumber]
}

// findStandardInputSecrets returns the secrets in the standard input of the program whose command
// is between programOffset and argsEndOffset: a pipe, a here-string or a here-document.
func findStandardInputSecrets(s string, programOffset, argsEndOffset int, args []programArg, inputFormat string, spans []secretSpan) []secretSpan {
	line := func(a programArg) {
		if inputFormat == "account" && !strings.Contains(a.text, ":") {
			return
		}
		spans = addArgSecret(s, a, inputFormat, "", spans)
	}
	for i, a := range args {
		word, ok := strings.CutPrefix(a.text, "<<<")
		switch {
		case ok && word == "" && i+1 < len(args):
			line(args[i+1])
		case ok && word != "":
			line(unquoteArgFrom(a, 3))
		case strings.HasPrefix(a.text, "<<"):
			forEachHereDocLine(s, argsEndOffset, strings.Trim(strings.TrimPrefix(a.text[2:], "-"), `'"\`), line)
		}
	}
	forEachPipedEchoWord(s, programOffset, line)
	return spans
}

// forEachHereDocLine passes on the lines of the here-document that starts after i.
func forEachHereDocLine(s string, i int, end string, line func(programArg)) {
	for range maxArgsPerProgram {
		next := strings.IndexByte(s[i:], '\n')
		if next < 0 {
			return
		}
		i += next + 1
		stop := strings.IndexByte(s[i:], '\n')
		if stop += i; stop < i {
			stop = len(s)
		}
		text := strings.TrimSpace(s[i:stop])
		if text == end {
			return
		}
		if text != "" {
			line(programArg{text, i + strings.Index(s[i:stop], text), false})
		}
	}
}

// printingPrograms are programs that print their arguments.
const printingPrograms = " echo printf print write-output write-host yes "

// forEachPipedEchoWord calls visitWord for each operand of a command in printingPrograms, such as echo, whose
// output is piped into the program at programOffset. It leaves out the format string of printf.
func forEachPipedEchoWord(s string, programOffset int, visitWord func(programArg)) {
	from := max(0, programOffset-4<<10)
	pipe := strings.LastIndexByte(s[from:programOffset], '|')
	if pipe < 0 || strings.ContainsAny(s[from+pipe+1:programOffset], "\n;&") {
		return
	}
	pipe += from
	for start := pipe - 1; start >= from; start-- {
		if !isVariableOrProgramNameByte(s[start]) || start > 0 && isVariableOrProgramNameByte(s[start-1]) {
			continue
		}
		end := start
		for end < pipe && isVariableOrProgramNameByte(s[end]) {
			end++
		}
		if !strings.Contains(printingPrograms, " "+strings.ToLower(s[start:end])+" ") {
			continue
		}
		args, stop := parseArguments(s, end)
		if stop > pipe || strings.TrimSpace(s[stop:pipe]) != "" && !strings.ContainsAny(s[stop:pipe], "|)") {
			continue
		}
		words := selectOperands(args, 1, true)
		for i, w := range words {
			if i == 0 && len(words) > 1 && strings.ContainsRune(w.text, '%') {
				continue // the format string of printf, which is not a secret
			}
			if w.text = strings.TrimSuffix(w.text, `\n`); w.text != "" {
				visitWord(w)
			}
		}
		return
	}
}
