package dialect

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/parse"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// ConvertFishToPOSIX returns POSIX shell text with the effects of a line of fish. Commands joined by "and" or "or" become
// separate statements, since either may run. It returns false if the two shells could differ: then the text must
// be reviewed.
func ConvertFishToPOSIX(text string) (string, bool) {
	if parse.ExceededLimitReason(text) != "" || strings.ContainsAny(text, "\x00\r") {
		return "", false
	}
	f := &fishParser{text: text, expectsCommandName: true}
	if !f.parseList(0) {
		return "", false
	}
	out := f.out.String()
	// a=1 echo $a prints 1 in fish alone.
	if f.hasAssignmentPrefix && strings.Contains(out, "$") {
		return "", false
	}
	return out, true
}

// A fishParser translates a line of fish to POSIX shell text, in one pass.
type fishParser struct {
	text                string
	offset              int
	out                 strings.Builder
	expectsCommandName  bool // the next word is a command's name
	hasAssignmentPrefix bool // a command has assignments before it
	blocks              []fishBlock
}

// A fishBlock is an open block. openKeyword is the keyword to write after its first statement (""
// once it is written), and closeKeyword is the keyword that closes the block.
type fishBlock struct{ openKeyword, closeKeyword string }

// untranslatableFishCommands are names with a different meaning in fish than in POSIX shells, or commands that run text as fish
// code.
const untranslatableFishCommands = " function switch case alias abbr argparse bind complete eval source . trap read fish " +
	"then do done fi elif esac until select coproc [[ declare typeset local readonly let unset shift getopts mapfile readarray print "

// parseList parses statements up to the end of the text or, inside a command substitution, up to
// its closing parenthesis.
func (f *fishParser) parseList(depth int) bool {
	outer := len(f.blocks)
	for f.offset < len(f.text) {
		switch c := f.text[f.offset]; c {
		case ')':
			return depth > 0 && len(f.blocks) == outer
		case ' ', '\t':
			f.copyBytes(1)
		case '\n', ';':
			f.offset++
			f.endStatement(outer)
		case '#':
			if i := strings.IndexByte(f.text[f.offset:], '\n'); i >= 0 {
				f.offset += i
			} else {
				f.offset = len(f.text)
			}
		case '|', '&', '<', '>':
			if !f.parseOperator() {
				return false
			}
		default:
			start := f.offset
			word, ok := f.parseWord(depth)
			if !ok || !f.writeWordIfTranslatable(f.text[start:f.offset], word, outer) {
				return false
			}
		}
	}
	return depth == 0 && len(f.blocks) == outer
}

func (f *fishParser) copyBytes(n int) {
	f.out.WriteString(f.text[f.offset : f.offset+n])
	f.offset += n
}

// endStatement writes the line break after a statement. If the statement is the head of an open if, while or
// for, it also writes then or do, which begins the body. Blocks before index outerBlockCount are outside the
// current command substitution and stay unchanged.
func (f *fishParser) endStatement(outerBlockCount int) {
	f.out.WriteByte('\n')
	if n := len(f.blocks); n > outerBlockCount && f.blocks[n-1].openKeyword != "" {
		f.out.WriteString(f.blocks[n-1].openKeyword + "\n")
		f.blocks[n-1].openKeyword = ""
	}
	f.expectsCommandName = true
}

// parseOperator parses one of | || && & and the redirections with the same meaning in all shells.
func (f *fishParser) parseOperator() bool {
	for _, op := range [...]string{"||", "&&", "&>>", "&>", ">>", ">&", "<&", "|", "&", ">", "<"} {
		rest, ok := strings.CutPrefix(f.text[f.offset:], op)
		if !ok {
			continue
		}
		next := byte('\n')
		if rest != "" {
			next = rest[0]
		}
		switch op {
		case "&": // inside a word, & is a plain character
			if !strings.ContainsRune(" \t\n;)", rune(next)) {
				return false
			}
			f.expectsCommandName = true
		case "|", "||", "&&":
			if strings.ContainsRune("|&>", rune(next)) {
				return false
			}
			f.expectsCommandName = true
		case ">&", "<&":
			if next != '-' && (next < '0' || next > '9') {
				return false
			}
		default:
			if f.expectsCommandName || strings.ContainsRune("|&?!<>", rune(next)) {
				return false
			}
		}
		f.copyBytes(len(op))
		return true
	}
	return false
}

// writeWordIfTranslatable writes a word, which is given as fish text (raw) and as POSIX text (word). An unquoted
// keyword of fish at the start of a command is translated. The function returns false if the word cannot be
// translated. outerBlockCount is as in endStatement.
func (f *fishParser) writeWordIfTranslatable(raw, word string, outerBlockCount int) bool {
	if !f.expectsCommandName {
		f.out.WriteString(word)
		return true
	}
	if strings.Contains(untranslatableFishCommands, " "+raw+" ") {
		return false
	}
	n := len(f.blocks)
	switch raw {
	case "and", "or":
		return true
	case "not":
		f.out.WriteByte('!')
		return true
	case "!", "command", "builtin", "exec", "time":
		f.out.WriteString(raw)
		return true
	case "begin":
		f.out.WriteString("{\n")
		f.blocks = append(f.blocks, fishBlock{"", "}"})
		return true
	case "if":
		f.out.WriteString("if")
		f.blocks = append(f.blocks, fishBlock{"then", "fi"})
		return true
	case "while":
		f.out.WriteString("while")
		f.blocks = append(f.blocks, fishBlock{"do", "done"})
		return true
	case "for":
		f.out.WriteString("for")
		f.blocks = append(f.blocks, fishBlock{"do", "done"})
	case "else":
		if n == outerBlockCount || f.blocks[n-1] != (fishBlock{"", "fi"}) {
			return false
		}
		if rest := strings.TrimLeft(f.text[f.offset:], " \t"); strings.HasPrefix(rest, "if ") {
			f.offset = len(f.text) - len(rest) + len("if")
			f.out.WriteString("elif")
			f.blocks[n-1].openKeyword = "then"
			return true
		}
		f.out.WriteString("else")
		return true
	case "end":
		if n == outerBlockCount || f.blocks[n-1].openKeyword != "" {
			return false
		}
		f.out.WriteString(f.blocks[n-1].closeKeyword)
		f.blocks = f.blocks[:n-1]
	case "set":
		return f.parseSet()
	default:
		if name, _, ok := strings.Cut(raw, "="); ok && syntax.ValidName(name) {
			f.hasAssignmentPrefix = true
			f.out.WriteString(word)
			return true
		}
		f.out.WriteString(word)
	}
	f.expectsCommandName = false
	return true
}

// parseSet parses the rest of set [-gx] NAME VALUE.
func (f *fishParser) parseSet() bool {
	name := ""
	for name == "" {
		rest := strings.TrimLeft(f.text[f.offset:], " \t")
		end := strings.IndexAny(rest+"\n", " \t\n;|&<>)")
		name, f.offset = rest[:end], len(f.text)-len(rest)+end
		switch {
		case name == "--global", name == "--export", name == "--local", name == "--universal", name == "--function",
			len(name) > 1 && name[0] == '-' && strings.Trim(name[1:], "gxlUf") == "":
			name = ""
		case !syntax.ValidName(name):
			return false
		}
	}
	f.out.WriteString("export " + name + "=")
	for f.offset < len(f.text) && (f.text[f.offset] == ' ' || f.text[f.offset] == '\t') {
		f.offset++
	}
	if f.offset < len(f.text) && !strings.ContainsRune("\n;|&<>)#", rune(f.text[f.offset])) {
		value, ok := f.parseWord(0)
		if !ok {
			return false
		}
		f.out.WriteString(value)
	}
	f.expectsCommandName = false
	rest := strings.TrimLeft(f.text[f.offset:], " \t")
	return rest == "" || strings.ContainsRune("\n;#", rune(rest[0])) // set NAME A B makes a list, which a POSIX variable cannot hold
}

// parseWord returns the word at f.offset in POSIX quoting.
func (f *fishParser) parseWord(depth int) (string, bool) {
	var b strings.Builder
	for start := f.offset; f.offset < len(f.text); {
		c := f.text[f.offset]
		switch c {
		case ' ', '\t', '\n', ';', '|', '<', '>', ')':
			return b.String(), true
		case '&':
			// fish reads a&b as one word. Here the word ends at &, and parseOperator then rejects
			// the text.
			return b.String(), true
		case '\'':
			text, ok := f.parseSingleQuoted()
			if !ok {
				return "", false
			}
			b.WriteString(text)
			continue
		case '"':
			if !f.parseDoubleQuoted(&b, depth) {
				return "", false
			}
			continue
		case '$':
			if !f.parseDollar(&b, depth) {
				return "", false
			}
			continue
		case '(':
			if !f.parseSubstitution(&b, depth) {
				return "", false
			}
			continue
		case '{':
			end := strings.IndexByte(f.text[f.offset:], '}')
			list := f.text[f.offset:max(f.offset, f.offset+end+1)]
			switch {
			case list == "{}":
				b.WriteString("'{}'")
			case strings.Contains(list, ",") && strings.Trim(list[1:len(list)-1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/,-") == "":
				b.WriteString(list)
			default:
				return "", false
			}
			f.offset += len(list)
			continue
		case '\\':
			if f.offset+1 == len(f.text) || plain.IsWordByte(f.text[f.offset+1]) || f.text[f.offset+1] == '\n' || f.text[f.offset+1] >= 0x80 {
				return "", false // escapes of fish, such as \x41 and \n, have another meaning in POSIX shells
			}
			b.WriteString(f.text[f.offset : f.offset+2])
			f.offset += 2
			continue
		case '[', ']', '`':
			if alone := strings.IndexByte(" \t\n;", (f.text + "\n")[f.offset+1]) >= 0; c == '`' || f.offset > start || !alone {
				b.WriteByte('\\')
			}
		case '}':
			return "", false
		case '%':
			if f.offset == start {
				return "", false // %self
			}
		case '*':
			if strings.HasPrefix(f.text[f.offset:], "**") {
				return "", false
			}
		default:
			if c < ' ' || c == 0x7f {
				return "", false
			}
		}
		b.WriteByte(c)
		f.offset++
	}
	return b.String(), true
}

// parseSingleQuoted parses '…', in which \' and \\ are escapes.
func (f *fishParser) parseSingleQuoted() (string, bool) {
	var b strings.Builder
	b.WriteByte('\'')
	for f.offset++; f.offset < len(f.text); f.offset++ {
		c := f.text[f.offset]
		if c == '\'' {
			f.offset++
			return b.String() + "'", true
		}
		if c == '\\' && f.offset+1 < len(f.text) && (f.text[f.offset+1] == '\'' || f.text[f.offset+1] == '\\') {
			f.offset++
			c = f.text[f.offset]
		}
		if c == '\'' {
			b.WriteString(`'\''`)
		} else {
			b.WriteByte(c)
		}
	}
	return "", false
}

// parseDoubleQuoted parses "…".
func (f *fishParser) parseDoubleQuoted(b *strings.Builder, depth int) bool {
	b.WriteByte('"')
	for f.offset++; f.offset < len(f.text); {
		switch c := f.text[f.offset]; c {
		case '"':
			b.WriteByte('"')
			f.offset++
			return true
		case '$':
			if !f.parseDollar(b, depth) {
				return false
			}
		case '\\':
			if f.offset+1 == len(f.text) {
				return false
			}
			if next := f.text[f.offset+1]; next == '`' {
				b.WriteString("\\\\\\`")
			} else {
				b.WriteString(f.text[f.offset : f.offset+2])
			}
			f.offset += 2
		case '`':
			b.WriteString("\\`")
			f.offset++
		default:
			b.WriteByte(c)
			f.offset++
		}
	}
	return false
}

// parseDollar parses $NAME or $(…).
func (f *fishParser) parseDollar(b *strings.Builder, depth int) bool {
	f.offset++
	if strings.HasPrefix(f.text[f.offset:], "(") {
		return f.parseSubstitution(b, depth)
	}
	end := f.offset
	for end < len(f.text) && plain.IsWordByte(f.text[end]) {
		end++
	}
	name := f.text[f.offset:end]
	if !syntax.ValidName(name) || name == "_" || strings.HasPrefix(f.text[end:], "[") {
		return false
	}
	b.WriteString("${" + name + "}")
	f.offset = end
	return true
}

// parseSubstitution parses (…).
func (f *fishParser) parseSubstitution(b *strings.Builder, depth int) bool {
	if depth == parse.MaxBracketNesting {
		return false
	}
	inner := &fishParser{text: f.text, offset: f.offset + 1, expectsCommandName: true}
	if !inner.parseList(depth+1) || inner.offset == len(f.text) || strings.HasPrefix(f.text[inner.offset+1:], "[") {
		return false
	}
	f.hasAssignmentPrefix = f.hasAssignmentPrefix || inner.hasAssignmentPrefix
	f.offset = inner.offset + 1
	b.WriteString("$(" + inner.out.String() + "\n)")
	return true
}
