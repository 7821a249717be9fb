package pwsh

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// maxTypeNameBytes is the maximum length of a type name in bytes.
const maxTypeNameBytes = 512

// parseTypeName parses [name], which can be nested: [List[int]]. It returns the text in lower case without the
// brackets and spaces at its ends: list[int for [List[int]]. ok is false if the text has no closing bracket.
func (p *analyzer) parseTypeName() (name string, ok bool) {
	end := p.findTypeEnd()
	if end < 0 {
		p.pos = len(p.text)
		return "", false
	}
	name = strings.ToLower(strings.Trim(p.text[p.pos:end+1], "[] "))
	p.pos = end + 1
	return name, true
}

// findTypeEnd returns the index of the bracket that closes the one at the current position. If it
// finds none, it returns the index of the next closing bracket, or -1.
func (p *analyzer) findTypeEnd() int {
	open := 0
	for i := p.pos; i < len(p.text) && i-p.pos < maxTypeNameBytes; i++ {
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
	end := strings.IndexByte(p.text[p.pos:], ']')
	if end < 0 {
		return -1
	}
	return p.pos + end
}

// parseAttribute parses [Name(…)] before a declaration, and walks the code in it.
func (p *analyzer) parseAttribute() bool {
	i := p.pos + 1
	for i < len(p.text) && (plain.IsWordByte(p.text[i]) || p.text[i] == '.') {
		i++
	}
	if i == p.pos+1 || i >= len(p.text) || p.text[i] != '(' {
		return false
	}
	p.pos = i + 1
	for p.pos < len(p.text) && !p.analysisContext.IsAnalysisAborted() {
		p.skipCharSetAndComments(" \t\r\n,")
		if p.pos >= len(p.text) || p.text[p.pos] == ')' {
			p.pos++
			break
		}
		start := p.pos
		p.parseWord()
		p.skipCharSetAndComments(" \t")
		if p.pos < len(p.text) && p.text[p.pos] == '=' {
			p.pos++
			p.skipCharSetAndComments(" \t")
		} else {
			p.pos = start
		}
		p.parseConcatenation()
		if p.pos == start {
			p.pos++
		}
	}
	p.pos = min(p.pos, len(p.text))
	p.skipCharSetAndComments(" \t\r\n")
	if p.pos < len(p.text) && p.text[p.pos] == ']' {
		p.pos++
	}
	return true
}

// parseWord parses letters, digits and underscores.
func (p *analyzer) parseWord() string {
	start := p.pos
	for p.pos < len(p.text) && plain.IsWordByte(p.text[p.pos]) {
		p.pos++
	}
	return p.text[start:p.pos]
}

// parseDeclaration parses a class or enum after its keyword; it consumes nothing if there is none.
func (p *analyzer) parseDeclaration(keyword string) bool {
	mark := p.pos
	p.skipCharSetAndComments(" \t")
	named := p.parseWord() != ""
	p.skipCharSetAndComments(" \t\r\n")
	if p.pos < len(p.text) && p.text[p.pos] == ':' { // base classes
		p.pos += len(p.text[p.pos:]) - len(strings.TrimLeft(p.text[p.pos:], ":, \t\r\n.[]_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"))
	}
	if !named || p.pos >= len(p.text) || p.text[p.pos] != '{' || p.expressionNestingDepth > maxExpressionNesting {
		p.pos = mark
		return false
	}
	p.pos++
	p.expressionNestingDepth++
	defer func() { p.expressionNestingDepth-- }()
	for p.analysisContext.SpendSteps(1) {
		p.skipCharSetAndComments(" \t\r\n;,")
		if p.pos >= len(p.text) {
			break
		}
		if p.text[p.pos] == '}' {
			p.pos++
			break
		}
		start := p.pos
		if keyword == "enum" {
			p.parseEnumMember()
		} else {
			p.parseClassMember()
		}
		if p.pos == start {
			p.pos++
		}
	}
	return true
}

// parseEnumMember parses a name of an enum, and its value.
func (p *analyzer) parseEnumMember() {
	if p.text[p.pos] == '[' && p.parseAttribute() {
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
	p.skipCharSetAndComments(" \t")
	if p.pos < len(p.text) && p.text[p.pos] == '=' {
		p.pos++
		p.parsePipeline('}')
	}
}

// parseClassMember parses the next element in the body of a class: an attribute or a type in
// brackets, a property with its value, or a method with its parameters and body.
func (p *analyzer) parseClassMember() {
	switch p.text[p.pos] {
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
	start := p.pos
	name := strings.ToLower(p.parseWord())
	if name == "hidden" || name == "static" {
		return
	}
	p.skipCharSetAndComments(" \t")
	if name == "" || p.pos >= len(p.text) || p.text[p.pos] != '(' {
		p.pos = start
		p.parsePipeline('}')
		return
	}
	p.pos++
	p.parseBlock(')')
	p.skipCharSetAndComments(" \t\r\n")
	if p.pos < len(p.text) && p.text[p.pos] == ':' { // the call of the base class constructor
		p.pos++
		p.skipCharSetAndComments(" \t\r\n")
		p.parseWord()
		p.skipCharSetAndComments(" \t")
		if p.pos < len(p.text) && p.text[p.pos] == '(' {
			p.pos++
			p.parseBlock(')')
		}
		p.skipCharSetAndComments(" \t\r\n")
	}
	if p.pos < len(p.text) && p.text[p.pos] == '{' {
		p.pos++
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
			p.analysisContext.WalkCodeFile(abstract.PatternFromWindowsGlob(a.val), "code", p.textSpanInCommand)
			loads = true
		case a.param == "assemblyname" && areSystemAssemblies(a.val):
			loads = true
		case a.param == "passthru" || a.param == "erroraction" || a.param == "ignorewarnings":
		default:
			p.analysisContext.RecordUnknownEffect(effect.CauseUnanalysedCode, c.name, p.textSpanInCommand)
			return
		}
	}
	if !loads {
		p.analysisContext.RecordUnknownEffect(effect.CauseUnanalysedCode, c.name, p.textSpanInCommand)
	}
}

// areSystemAssemblies reports whether all names in a list are assemblies of the system.
func areSystemAssemblies(v abstract.Value) bool {
	if !v.IsLiteral() || v.Text == "" {
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

// skipErrorMessagePositionLine skips the position line in a PowerShell error message, "At line:1 char:4".
func (p *analyzer) skipErrorMessagePositionLine() bool {
	rest, ok := strings.CutPrefix(p.text[p.pos:], "At line:")
	rest = strings.TrimLeft(rest, "0123456789")
	rest, char := strings.CutPrefix(rest, " char:")
	rest = strings.TrimLeft(strings.TrimLeft(rest, "0123456789"), " \t\r")
	if !ok || !char || rest != "" && rest[0] != '\n' {
		return false
	}
	p.pos = len(p.text) - len(rest)
	return true
}

// blockFollows reports whether a script block in braces comes next.
func (p *analyzer) blockFollows() bool {
	return strings.HasPrefix(strings.TrimLeft(p.text[p.pos:], " \t\r\n"), "{")
}

// backtickEscapes maps the letter after a backtick in a quoted text to its character.
var backtickEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", 'e': "\x1b", '0': ""}

// parseExpansion parses an escape, a variable or a subexpression in a text that PowerShell expands. It returns false for
// all other text.
func (p *analyzer) parseExpansion(b *abstract.Builder) bool {
	if p.pos+1 >= len(p.text) {
		return false
	}
	next := p.text[p.pos+1]
	switch c := p.text[p.pos]; {
	case c == '`':
		text, ok := backtickEscapes[next]
		if !ok {
			text = p.text[p.pos+1 : p.pos+2]
		}
		b.AddLiteral(text)
		p.pos += 2
	case c == '$' && next == '(':
		p.pos += 2
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
	q := p.text[p.pos+1]
	closing := "\n" + string(q) + "@"
	p.pos += 2
	if q == '\'' {
		body, _, ok := strings.Cut(p.text[p.pos:], closing)
		p.pos += len(body)
		if ok {
			p.pos += len(closing)
		}
		return abstract.Value{Text: strings.TrimLeft(body, "\r\n"), SourceSpan: p.textSpanInCommand}
	}
	for p.pos < len(p.text) && (p.text[p.pos] == '\r' || p.text[p.pos] == '\n') && !strings.HasPrefix(p.text[p.pos:], closing) {
		p.pos++
	}
	var b abstract.Builder
	for p.pos < len(p.text) && !p.analysisContext.IsAnalysisAborted() {
		if strings.HasPrefix(p.text[p.pos:], closing) {
			p.pos += len(closing)
			break
		}
		if !p.parseExpansion(&b) {
			b.AddLiteral(p.text[p.pos : p.pos+1])
			p.pos++
		}
	}
	v := b.Value()
	v.SourceSpan = p.textSpanInCommand
	return v
}
