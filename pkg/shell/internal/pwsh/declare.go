package pwsh

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// maxTypeNameBytes is the maximum length of a type name in bytes.
const maxTypeNameBytes = 512

// parseTypeName parses [name], which can be nested: [List[int]]. It returns the text in the brackets in lower case; ok
// is false if they are not closed.
func (p *analyzer) parseTypeName() (name string, ok bool) {
	end := p.findTypeEnd()
	if end < 0 {
		p.i = len(p.text)
		return "", false
	}
	name = strings.ToLower(strings.Trim(p.text[p.i:end+1], "[] "))
	p.i = end + 1
	return name, true
}

// findTypeEnd returns the index of the bracket that closes the one at the current position. If it
// finds none, it returns the index of the next closing bracket, or -1.
func (p *analyzer) findTypeEnd() int {
	open := 0
	for i := p.i; i < len(p.text) && i-p.i < maxTypeNameBytes; i++ {
		switch c := p.text[i]; {
		case c == '[':
			open++
		case c == ']':
			if open--; open == 0 {
				return i
			}
		case !plain.IsWordByte(c) && strings.IndexByte(".,+` ", c) < 0:
			i = len(p.text)
		}
	}
	end := strings.IndexByte(p.text[p.i:], ']')
	if end < 0 {
		return -1
	}
	return p.i + end
}

// parseAttribute parses [Name(…)] before a declaration, and walks the code in it.
func (p *analyzer) parseAttribute() bool {
	i := p.i + 1
	for i < len(p.text) && (plain.IsWordByte(p.text[i]) || p.text[i] == '.') {
		i++
	}
	if i == p.i+1 || i >= len(p.text) || p.text[i] != '(' {
		return false
	}
	p.i = i + 1
	for p.i < len(p.text) && !p.w.Ended() {
		p.skipChars(" \t\r\n,")
		if p.i >= len(p.text) || p.text[p.i] == ')' {
			p.i++
			break
		}
		start := p.i
		p.parseWord()
		p.skipChars(" \t")
		if p.i < len(p.text) && p.text[p.i] == '=' {
			p.i++
			p.skipChars(" \t")
		} else {
			p.i = start
		}
		p.parseConcatenation()
		if p.i == start {
			p.i++
		}
	}
	p.i = min(p.i, len(p.text))
	p.skipChars(" \t\r\n")
	if p.i < len(p.text) && p.text[p.i] == ']' {
		p.i++
	}
	return true
}

// parseWord parses letters, digits and underscores.
func (p *analyzer) parseWord() string {
	start := p.i
	for p.i < len(p.text) && plain.IsWordByte(p.text[p.i]) {
		p.i++
	}
	return p.text[start:p.i]
}

// parseDeclaration parses a class or enum after its keyword; it consumes nothing if there is none.
func (p *analyzer) parseDeclaration(keyword string) bool {
	mark := p.i
	p.skipChars(" \t")
	named := p.parseWord() != ""
	p.skipChars(" \t\r\n")
	if p.i < len(p.text) && p.text[p.i] == ':' { // base classes
		p.i += len(p.text[p.i:]) - len(strings.TrimLeft(p.text[p.i:], ":, \t\r\n.[]_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"))
	}
	if !named || p.i >= len(p.text) || p.text[p.i] != '{' || p.depth > maxNesting {
		p.i = mark
		return false
	}
	p.i++
	p.depth++
	defer func() { p.depth-- }()
	for p.w.Step(1) {
		p.skipChars(" \t\r\n;,")
		if p.i >= len(p.text) {
			break
		}
		if p.text[p.i] == '}' {
			p.i++
			break
		}
		start := p.i
		if keyword == "enum" {
			p.parseEnumerator()
		} else {
			p.parseClassMember()
		}
		if p.i == start {
			p.i++
		}
	}
	return true
}

// parseEnumerator parses a name of an enum, and its value.
func (p *analyzer) parseEnumerator() {
	if p.text[p.i] == '[' && p.parseAttribute() {
		return
	}
	if p.parseWord() == "" {
		p.parsePipeline('}')
		return
	}
	p.parseAssignedValue()
}

// parseAssignedValue parses the value after "=", if that comes next.
func (p *analyzer) parseAssignedValue() {
	p.skipChars(" \t")
	if p.i < len(p.text) && p.text[p.i] == '=' {
		p.i++
		p.parsePipeline('}')
	}
}

// parseClassMember parses the next element in the body of a class: an attribute or a type in
// brackets, a property with its value, or a method with its parameters and body.
func (p *analyzer) parseClassMember() {
	switch p.text[p.i] {
	case '[':
		if !p.parseAttribute() {
			p.parseTypeName()
		}
		return
	case '$':
		p.parseVariable()
		p.parseAssignedValue()
		return
	}
	start := p.i
	name := strings.ToLower(p.parseWord())
	if name == "hidden" || name == "static" {
		return
	}
	p.skipChars(" \t")
	if name == "" || p.i >= len(p.text) || p.text[p.i] != '(' {
		p.i = start
		p.parsePipeline('}')
		return
	}
	p.i++
	p.parseBlock(')')
	p.skipChars(" \t\r\n")
	if p.i < len(p.text) && p.text[p.i] == ':' { // the call of the base class constructor
		p.i++
		p.skipChars(" \t\r\n")
		p.parseWord()
		p.skipChars(" \t")
		if p.i < len(p.text) && p.text[p.i] == '(' {
			p.i++
			p.parseBlock(')')
		}
		p.skipChars(" \t\r\n")
	}
	if p.i < len(p.text) && p.text[p.i] == '{' {
		p.i++
		p.parseBlock('}')
	}
}

// recordAddType records the effects of Add-Type: it runs the named files, or unknown code unless it loads system assemblies
// by name.
func (p *analyzer) recordAddType(c *cmdlet, args []psArg) {
	loads := false
	for _, a := range args {
		switch {
		case a.param == "path" || a.param == "literalpath":
			p.w.RunFile(abstract.WindowsGlob(a.val), "code", p.at)
			loads = true
		case a.param == "assemblyname" && areSystemAssemblies(a.val):
			loads = true
		case a.param == "passthru" || a.param == "erroraction" || a.param == "ignorewarnings":
		default:
			p.w.Dynamic(effect.CauseUnanalysedCode, c.name, p.at)
			return
		}
	}
	if !loads {
		p.w.Dynamic(effect.CauseUnanalysedCode, c.name, p.at)
	}
}

// areSystemAssemblies reports whether all names in a list are assemblies of the system.
func areSystemAssemblies(v abstract.Value) bool {
	if !v.Known() || v.Text == "" {
		return false
	}
	name, _, _ := strings.Cut(strings.ToLower(v.Text), ",") // version and key follow the name
	for f := range strings.FieldsSeq(name) {
		if !isAssembly(f) {
			return false
		}
	}
	return strings.TrimSpace(name) != ""
}

// skipErrorPosition skips the position line in a PowerShell error message, "At line:1 char:4".
func (p *analyzer) skipErrorPosition() bool {
	rest, ok := strings.CutPrefix(p.text[p.i:], "At line:")
	rest = strings.TrimLeft(rest, "0123456789")
	rest, char := strings.CutPrefix(rest, " char:")
	rest = strings.TrimLeft(strings.TrimLeft(rest, "0123456789"), " \t\r")
	if !ok || !char || rest != "" && rest[0] != '\n' {
		return false
	}
	p.i = len(p.text) - len(rest)
	return true
}

// blockFollows reports whether a script block in braces comes next.
func (p *analyzer) blockFollows() bool {
	return strings.HasPrefix(strings.TrimLeft(p.text[p.i:], " \t\r\n"), "{")
}

// backtickEscapes maps the letter after a backtick in a quoted text to its character.
var backtickEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", 'e': "\x1b", '0': ""}

// parseExpansion parses an escape, a variable or a subexpression in a text that PowerShell expands. It returns false for
// all other text.
func (p *analyzer) parseExpansion(b *abstract.Builder) bool {
	if p.i+1 >= len(p.text) {
		return false
	}
	next := p.text[p.i+1]
	switch c := p.text[p.i]; {
	case c == '`':
		text, ok := backtickEscapes[next]
		if !ok {
			text = p.text[p.i+1 : p.i+2]
		}
		b.AddLiteral(text)
		p.i += 2
	case c == '$' && next == '(':
		p.i += 2
		b.Add(p.parseBlock(')'))
	case c == '$' && (plain.IsWordByte(next) || next == '{'):
		b.Add(p.parseVariable())
	default:
		return false
	}
	return true
}

// parseHereString parses @'…'@ or @"…"@; PowerShell expands only the second.
func (p *analyzer) parseHereString() abstract.Value {
	q := p.text[p.i+1]
	closing := "\n" + string(q) + "@"
	p.i += 2
	if q == '\'' {
		body, _, ok := strings.Cut(p.text[p.i:], closing)
		p.i += len(body)
		if ok {
			p.i += len(closing)
		}
		return abstract.Value{Text: strings.TrimLeft(body, "\r\n"), From: p.at}
	}
	for p.i < len(p.text) && (p.text[p.i] == '\r' || p.text[p.i] == '\n') && !strings.HasPrefix(p.text[p.i:], closing) {
		p.i++
	}
	var b abstract.Builder
	for p.i < len(p.text) && !p.w.Ended() {
		if strings.HasPrefix(p.text[p.i:], closing) {
			p.i += len(closing)
			break
		}
		if !p.parseExpansion(&b) {
			b.AddLiteral(p.text[p.i : p.i+1])
			p.i++
		}
	}
	v := b.Value()
	v.From = p.at
	return v
}
