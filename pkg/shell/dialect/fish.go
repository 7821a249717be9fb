package dialect

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/parse"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// FromFish returns POSIX shell text with the effects of a line of fish. Commands joined by "and" or "or" become
// separate statements, since either may run. It returns false if the two shells could differ: then the text must
// be reviewed.
func FromFish(text string) (string, bool) {
	if parse.TooDeep(text) != "" || strings.ContainsAny(text, "\x00\r") {
		return "", false
	}
	f := &fish{text: text, command: true}
	if !f.list(0) {
		return "", false
	}
	out := f.out.String()
	// a=1 echo $a prints 1 in fish alone.
	if f.assigned && strings.Contains(out, "$") {
		return "", false
	}
	return out, true
}

// A fish is a line being parsed, in one pass.
type fish struct {
	text     string
	at       int
	out      strings.Builder
	command  bool // the next word is a command's name
	assigned bool // a command has assignments before it
	blocks   []fishBlock
}

// A fishBlock is an open block: head is the keyword to write after its first statement ("" once it is written),
// end the keyword that closes it.
type fishBlock struct{ head, end string }

// fishDiffers are names with a different meaning in fish than in POSIX shells, or commands that run text as fish
// code.
const fishDiffers = " function switch case alias abbr argparse bind complete eval source . trap read fish " +
	"then do done fi elif esac until select coproc [[ declare typeset local readonly let unset shift getopts mapfile readarray print "

// list parses to the end of the text, or to the parenthesis that closes it.
func (f *fish) list(depth int) bool {
	outer := len(f.blocks)
	for f.at < len(f.text) {
		switch c := f.text[f.at]; c {
		case ')':
			return depth > 0 && len(f.blocks) == outer
		case ' ', '\t':
			f.copy(1)
		case '\n', ';':
			f.at++
			f.separate(outer)
		case '#':
			if i := strings.IndexByte(f.text[f.at:], '\n'); i >= 0 {
				f.at += i
			} else {
				f.at = len(f.text)
			}
		case '|', '&', '<', '>':
			if !f.operator() {
				return false
			}
		default:
			start := f.at
			word, ok := f.word(depth)
			if !ok || !f.place(f.text[start:f.at], word, outer) {
				return false
			}
		}
	}
	return depth == 0 && len(f.blocks) == outer
}

func (f *fish) copy(n int) {
	f.out.WriteString(f.text[f.at : f.at+n])
	f.at += n
}

// separate ends a statement.
func (f *fish) separate(outer int) {
	f.out.WriteByte('\n')
	if n := len(f.blocks); n > outer && f.blocks[n-1].head != "" {
		f.out.WriteString(f.blocks[n-1].head + "\n")
		f.blocks[n-1].head = ""
	}
	f.command = true
}

// operator parses one of | || && & and the redirections with the same meaning in all shells.
func (f *fish) operator() bool {
	for _, op := range [...]string{"||", "&&", "&>>", "&>", ">>", ">&", "<&", "|", "&", ">", "<"} {
		rest, ok := strings.CutPrefix(f.text[f.at:], op)
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
			f.command = true
		case "|", "||", "&&":
			if strings.ContainsRune("|&>", rune(next)) {
				return false
			}
			f.command = true
		case ">&", "<&":
			if next != '-' && (next < '0' || next > '9') {
				return false
			}
		default:
			if f.command || strings.ContainsRune("|&?!<>", rune(next)) {
				return false
			}
		}
		f.copy(len(op))
		return true
	}
	return false
}

// place writes a word. A keyword is an unquoted word at the start of a command.
func (f *fish) place(raw, word string, outer int) bool {
	if !f.command {
		f.out.WriteString(word)
		return true
	}
	if strings.Contains(fishDiffers, " "+raw+" ") {
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
		if n == outer || f.blocks[n-1] != (fishBlock{"", "fi"}) {
			return false
		}
		if rest := strings.TrimLeft(f.text[f.at:], " \t"); strings.HasPrefix(rest, "if ") {
			f.at = len(f.text) - len(rest) + len("if")
			f.out.WriteString("elif")
			f.blocks[n-1].head = "then"
			return true
		}
		f.out.WriteString("else")
		return true
	case "end":
		if n == outer || f.blocks[n-1].head != "" {
			return false
		}
		f.out.WriteString(f.blocks[n-1].end)
		f.blocks = f.blocks[:n-1]
	case "set":
		return f.set()
	default:
		if name, _, ok := strings.Cut(raw, "="); ok && syntax.ValidName(name) {
			f.assigned = true
			f.out.WriteString(word)
			return true
		}
		f.out.WriteString(word)
	}
	f.command = false
	return true
}

// set parses the rest of set [-gx] NAME VALUE.
func (f *fish) set() bool {
	name := ""
	for name == "" {
		rest := strings.TrimLeft(f.text[f.at:], " \t")
		end := strings.IndexAny(rest+"\n", " \t\n;|&<>)")
		name, f.at = rest[:end], len(f.text)-len(rest)+end
		switch {
		case name == "--global", name == "--export", name == "--local", name == "--universal", name == "--function",
			len(name) > 1 && name[0] == '-' && strings.Trim(name[1:], "gxlUf") == "":
			name = ""
		case !syntax.ValidName(name):
			return false
		}
	}
	f.out.WriteString("export " + name + "=")
	for f.at < len(f.text) && (f.text[f.at] == ' ' || f.text[f.at] == '\t') {
		f.at++
	}
	if f.at < len(f.text) && !strings.ContainsRune("\n;|&<>)#", rune(f.text[f.at])) {
		value, ok := f.word(0)
		if !ok {
			return false
		}
		f.out.WriteString(value)
	}
	f.command = false
	rest := strings.TrimLeft(f.text[f.at:], " \t")
	return rest == "" || strings.ContainsRune("\n;#", rune(rest[0])) // a list of values cannot be translated
}

// word returns the word at f.at in POSIX quoting.
func (f *fish) word(depth int) (string, bool) {
	var b strings.Builder
	for start := f.at; f.at < len(f.text); {
		c := f.text[f.at]
		switch c {
		case ' ', '\t', '\n', ';', '|', '<', '>', ')':
			return b.String(), true
		case '&':
			// fish reads a&b as one word, which operator rejects.
			return b.String(), true
		case '\'':
			text, ok := f.single()
			if !ok {
				return "", false
			}
			b.WriteString(text)
			continue
		case '"':
			if !f.double(&b, depth) {
				return "", false
			}
			continue
		case '$':
			if !f.dollar(&b, depth) {
				return "", false
			}
			continue
		case '(':
			if !f.substitution(&b, depth) {
				return "", false
			}
			continue
		case '{':
			end := strings.IndexByte(f.text[f.at:], '}')
			list := f.text[f.at:max(f.at, f.at+end+1)]
			switch {
			case list == "{}":
				b.WriteString("'{}'")
			case strings.Contains(list, ",") && strings.Trim(list[1:len(list)-1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/,-") == "":
				b.WriteString(list)
			default:
				return "", false
			}
			f.at += len(list)
			continue
		case '\\':
			if f.at+1 == len(f.text) || plain.WordByte(f.text[f.at+1]) || f.text[f.at+1] == '\n' || f.text[f.at+1] >= 0x80 {
				return "", false // \x41, \n, …
			}
			b.WriteString(f.text[f.at : f.at+2])
			f.at += 2
			continue
		case '[', ']', '`':
			if alone := strings.IndexByte(" \t\n;", (f.text + "\n")[f.at+1]) >= 0; c == '`' || f.at > start || !alone {
				b.WriteByte('\\')
			}
		case '}':
			return "", false
		case '%':
			if f.at == start {
				return "", false // %self
			}
		case '*':
			if strings.HasPrefix(f.text[f.at:], "**") {
				return "", false
			}
		default:
			if c < ' ' || c == 0x7f {
				return "", false
			}
		}
		b.WriteByte(c)
		f.at++
	}
	return b.String(), true
}

// single parses '…', in which \' and \\ are escapes.
func (f *fish) single() (string, bool) {
	var b strings.Builder
	b.WriteByte('\'')
	for f.at++; f.at < len(f.text); f.at++ {
		c := f.text[f.at]
		if c == '\'' {
			f.at++
			return b.String() + "'", true
		}
		if c == '\\' && f.at+1 < len(f.text) && (f.text[f.at+1] == '\'' || f.text[f.at+1] == '\\') {
			f.at++
			c = f.text[f.at]
		}
		if c == '\'' {
			b.WriteString(`'\''`)
		} else {
			b.WriteByte(c)
		}
	}
	return "", false
}

// double parses "…".
func (f *fish) double(b *strings.Builder, depth int) bool {
	b.WriteByte('"')
	for f.at++; f.at < len(f.text); {
		switch c := f.text[f.at]; c {
		case '"':
			b.WriteByte('"')
			f.at++
			return true
		case '$':
			if !f.dollar(b, depth) {
				return false
			}
		case '\\':
			if f.at+1 == len(f.text) {
				return false
			}
			if next := f.text[f.at+1]; next == '`' {
				b.WriteString("\\\\\\`")
			} else {
				b.WriteString(f.text[f.at : f.at+2])
			}
			f.at += 2
		case '`':
			b.WriteString("\\`")
			f.at++
		default:
			b.WriteByte(c)
			f.at++
		}
	}
	return false
}

// dollar parses $NAME or $(…).
func (f *fish) dollar(b *strings.Builder, depth int) bool {
	f.at++
	if strings.HasPrefix(f.text[f.at:], "(") {
		return f.substitution(b, depth)
	}
	end := f.at
	for end < len(f.text) && plain.WordByte(f.text[end]) {
		end++
	}
	name := f.text[f.at:end]
	if !syntax.ValidName(name) || name == "_" || strings.HasPrefix(f.text[end:], "[") {
		return false
	}
	b.WriteString("${" + name + "}")
	f.at = end
	return true
}

// substitution parses (…).
func (f *fish) substitution(b *strings.Builder, depth int) bool {
	if depth == parse.MaxNesting {
		return false
	}
	inner := &fish{text: f.text, at: f.at + 1, command: true}
	if !inner.list(depth+1) || inner.at == len(f.text) || strings.HasPrefix(f.text[inner.at+1:], "[") {
		return false
	}
	f.assigned = f.assigned || inner.assigned
	f.at = inner.at + 1
	b.WriteString("$(" + inner.out.String() + "\n)")
	return true
}
