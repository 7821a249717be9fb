package grants

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// ErrUnread is the error for a file that is valid, but whose values cannot be determined exactly.
var ErrUnread = errors.New("the file contains an expression or a character that cannot be read")

var errTerraformSyntax = errors.New("invalid Terraform syntax")

// maxTerraformDepth bounds the recursion of the parser: blocks, brackets, operators and templates.
const maxTerraformDepth = 4 * maxDepth

// A terraformBody is the content of a file or a block. Attribute names are unique.
type terraformBody struct {
	attributes []terraformAttribute
	blocks     []terraformBlock
}

type terraformAttribute struct {
	name  string
	value terraformExpression
}

type terraformBlock struct {
	path []string // its type and its labels
	body terraformBody
}

type expressionKind int

const (
	leafExpression        expressionKind = iota
	listExpression                       // operands are the items
	objectExpression                     // operands are keys and values in turn
	callExpression                       // operands are the arguments
	conditionalExpression                // operands are the two results
	groupExpression                      // the operand is in parentheses
)

// A constancy says what the evaluation of an expression without variables and functions gives.
type constancy int

const (
	unreadValue  constancy = iota // not determined
	textValue                     // a text, exactly
	scalarValue                   // no text, but a number or bool, or an error; text is how a template shows it, "" if not determined
	nonTextValue                  // null, a list, an object or an error: an error in a template
	noValue                       // an error, or unknown: it depends on a variable or function
)

// A terraformExpression is an expression at a range of bytes of the file.
type terraformExpression struct {
	kind       expressionKind
	start, end int
	operands   []terraformExpression
	constancy  constancy
	text       string // in Unicode normal form C
}

// A terraformToken is an operator, a newline "\n", a quote, "ident", "number", "<<" with the rest of a
// heredoc's first line, "invalid", or "" at the end of the file.
type terraformToken struct {
	kind       string
	start, end int
}

// A terraformParser reads the syntax that HCL 2 specifies. After an error it is at the end of the file.
type terraformParser struct {
	text             string
	at               int
	newlinesAreSpace bool // in brackets
	depth            int
	err              error
}

// parseTerraform returns the content of a file. Errors are [ErrUnread], and others for invalid syntax.
func parseTerraform(text string) (terraformBody, error) {
	p := &terraformParser{text: text}
	if !utf8.ValidString(text) {
		p.fail(ErrUnread)
	}
	if strings.HasPrefix(text, "\ufeff") {
		p.at = len("\ufeff")
	}
	body := p.parseBody("")
	return body, p.err
}

func (p *terraformParser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.at = len(p.text)
}

// enter counts a level of nesting, until the function that it returns is called.
func (p *terraformParser) enter() func() {
	if p.depth++; p.depth > maxTerraformDepth {
		p.fail(ErrUnread)
	}
	return func() { p.depth-- }
}

// withNewlinesAsSpace says whether newlines are space until the function that it returns is called.
func (p *terraformParser) withNewlinesAsSpace(space bool) func() {
	was := p.newlinesAreSpace
	p.newlinesAreSpace = space
	return func() { p.newlinesAreSpace = was }
}

var terraformOperators = []string{"...", "==", "!=", ">=", "<=", "&&", "||", "::", "=>", "~}"}

// peek returns the next token without reading it.
func (p *terraformParser) peek() terraformToken {
	for i := p.at; i < len(p.text); {
		rest := p.text[i:]
		switch c := rest[0]; {
		case c == ' ' || c == '\t':
			i++
		case c == '\n' || strings.HasPrefix(rest, "\r\n"), c == '#', strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n') + 1
			if end == 0 {
				return terraformToken{"", len(p.text), len(p.text)}
			}
			if !p.newlinesAreSpace {
				return terraformToken{"\n", i, i + end}
			}
			i += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return terraformToken{"invalid", i, i}
			}
			i += end + 4
		case c >= utf8.RuneSelf: // a letter of a name, or invalid
			p.fail(ErrUnread)
			return terraformToken{"", i, i}
		case isNameByte(c) && (c < '0' || c > '9') && c != '-':
			return terraformToken{"ident", i, i + nameLength(rest)}
		case c >= '0' && c <= '9':
			return terraformToken{"number", i, i + numberLength(rest)}
		default:
			for _, operator := range terraformOperators {
				if strings.HasPrefix(rest, operator) {
					return terraformToken{operator, i, i + len(operator)}
				}
			}
			if length := heredocStartLength(rest); length > 0 {
				return terraformToken{"<<", i, i + length}
			}
			if strings.IndexByte("[](){}.,*/%+-=<>!?:\"", c) < 0 {
				return terraformToken{"invalid", i, i}
			}
			return terraformToken{rest[:1], i, i + 1}
		}
	}
	return terraformToken{"", len(p.text), len(p.text)}
}

func isNameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func nameLength(text string) int {
	i := 0
	for i < len(text) && isNameByte(text[i]) {
		i++
	}
	return i
}

// numberLength returns the length of a number, valid or not: it may contain dots, but not end with one.
func numberLength(text string) int {
	length := 1
	for i := 1; i < len(text); {
		digitAt := i
		if text[i]|0x20 == 'e' {
			if digitAt++; digitAt < len(text) && (text[digitAt] == '+' || text[digitAt] == '-') {
				digitAt++
			}
		} else if text[i] == '.' {
			i++
			continue
		}
		if digitAt >= len(text) || text[digitAt] < '0' || text[digitAt] > '9' {
			break
		}
		i = digitAt + 1
		length = i
	}
	return length
}

// heredocStartLength returns the length of <<NAME or <<-NAME with the newline, 0 if there is none.
func heredocStartLength(text string) int {
	rest, found := strings.CutPrefix(text, "<<")
	if !found {
		return 0
	}
	rest = strings.TrimPrefix(rest, "-")
	length := nameLength(rest)
	if length == 0 || rest[0] == '-' || rest[0] >= '0' && rest[0] <= '9' {
		return 0
	}
	rest = strings.TrimPrefix(rest[length:], "\r")
	if !strings.HasPrefix(rest, "\n") {
		return 0
	}
	return len(text) - len(rest) + 1
}

func (p *terraformParser) source(t terraformToken) string { return p.text[t.start:t.end] }

// read returns the next token and reads it.
func (p *terraformParser) read() terraformToken {
	t := p.peek()
	if p.err == nil {
		p.at = t.end
	}
	return t
}

// accept reads the next token if it is of a kind.
func (p *terraformParser) accept(kind string) bool {
	if p.err != nil || p.peek().kind != kind {
		return false
	}
	p.read()
	return p.err == nil
}

// expect reads a token of a kind and returns its end.
func (p *terraformParser) expect(kind string) int {
	if !p.accept(kind) {
		p.fail(errTerraformSyntax)
	}
	return p.at
}

// acceptWord reads the next token if it is a word.
func (p *terraformParser) acceptWord(word string) bool {
	if t := p.peek(); t.kind != "ident" || p.source(t) != word {
		return false
	}
	p.read()
	return true
}

// parseBody reads attributes and blocks up to the given token, "}" or the end of the file.
func (p *terraformParser) parseBody(end string) (body terraformBody) {
	defer p.enter()()
	names := map[string]bool{}
	for p.err == nil {
		t := p.read()
		switch t.kind {
		case end:
			return body
		case "\n":
			continue
		case "ident":
		default:
			p.fail(errTerraformSyntax)
			return body
		}
		if name := p.source(t); p.accept("=") {
			if names[name] {
				p.fail(errTerraformSyntax)
			}
			names[name] = true
			body.attributes = append(body.attributes, terraformAttribute{name, p.parseExpression()})
		} else {
			body.blocks = append(body.blocks, p.parseBlock(name))
		}
		if p.peek().kind != "" {
			p.expect("\n")
		}
	}
	return body
}

// parseBlock reads the labels and the content of a block.
func (p *terraformParser) parseBlock(blockType string) terraformBlock {
	block := terraformBlock{path: []string{blockType}}
	for p.err == nil && !p.accept("{") {
		switch t := p.read(); t.kind {
		case "ident":
			block.path = append(block.path, p.source(t))
		case `"`:
			parts := p.parseTemplateParts("", false)
			label := ""
			for _, part := range parts {
				if part.kind != literalPart {
					p.fail(errTerraformSyntax)
				}
				label += part.text
			}
			block.path = append(block.path, label)
		default:
			p.fail(errTerraformSyntax)
		}
	}
	if t := p.peek(); t.kind != "ident" {
		block.body = p.parseBody("}")
		return block
	}
	name := p.source(p.read()) // a single attribute on the line
	p.expect("=")
	block.body.attributes = []terraformAttribute{{name, p.parseExpression()}}
	p.expect("}")
	return block
}

func (p *terraformParser) parseExpression() terraformExpression {
	defer p.enter()()
	condition := p.parseBinary(1)
	if p.err != nil || !p.accept("?") {
		return condition
	}
	whenTrue := p.parseExpression()
	p.expect(":")
	whenFalse := p.parseExpression()
	e := terraformExpression{kind: conditionalExpression, start: condition.start, end: whenFalse.end, operands: []terraformExpression{whenTrue, whenFalse}}
	e.constancy = conditionalConstancy(condition, whenTrue, whenFalse)
	return e
}

// conditionalConstancy: a result that is not chosen may be invalid.
func conditionalConstancy(condition, whenTrue, whenFalse terraformExpression) constancy {
	if condition.constancy == noValue || whenTrue.constancy == noValue && whenFalse.constancy == noValue {
		return noValue
	}
	return unreadValue
}

// binaryPrecedence returns how strongly an operator binds, and 0 for what is none.
func binaryPrecedence(operator string) int {
	switch operator {
	case "||":
		return 1
	case "&&":
		return 2
	case "==", "!=":
		return 3
	case ">", ">=", "<", "<=":
		return 4
	case "+", "-":
		return 5
	case "*", "/", "%":
		return 6
	}
	return 0
}

// parseBinary reads operands with the operators that bind at least as strongly as a precedence.
func (p *terraformParser) parseBinary(precedence int) terraformExpression {
	left := p.parseUnary()
	for p.err == nil {
		operator := p.peek().kind
		level := binaryPrecedence(operator)
		if level < precedence {
			break
		}
		p.read()
		right := p.parseBinary(level + 1)
		e := terraformExpression{start: left.start, end: right.end, constancy: scalarValue}
		switch {
		case operator == "&&" && (mayDecide(left, "true") || mayDecide(right, "true")):
		case operator == "||" && (mayDecide(left, "false") || mayDecide(right, "false")):
		case left.constancy == noValue || right.constancy == noValue:
			e.constancy = noValue
		}
		left = e
	}
	return left
}

// mayDecide reports whether an operand of && or || may give the result alone. One that is neutral does not.
func mayDecide(operand terraformExpression, neutral string) bool {
	return operand.constancy != noValue && (operand.constancy != scalarValue || operand.text != neutral)
}

func (p *terraformParser) parseUnary() terraformExpression {
	t := p.peek()
	if t.kind != "-" && t.kind != "!" {
		return p.parseTraversals(p.parseTerm())
	}
	defer p.enter()()
	p.read()
	e := p.parseUnary()
	if e = (terraformExpression{start: t.start, end: e.end, constancy: e.constancy}); e.constancy != noValue {
		e.constancy = scalarValue
	}
	return e
}

// parseTraversals reads the attributes, indexes and splats behind an expression.
func (p *terraformParser) parseTraversals(e terraformExpression) terraformExpression {
	for p.err == nil {
		step := terraformExpression{start: e.start, constancy: unreadValue}
		if e.constancy == noValue {
			step.constancy = noValue
		}
		switch {
		case p.accept("."):
			switch t := p.read(); t.kind {
			case "ident":
			case "number":
				p.checkNumber(t)
				if strings.Contains(p.source(t), ".") {
					p.fail(errTerraformSyntax)
				}
			case "*":
				if step.constancy != noValue {
					step.constancy = nonTextValue
				}
				p.parseSplatAttributes()
			default:
				p.fail(errTerraformSyntax)
			}
		case p.accept("["):
			if p.accept("*") {
				p.expect("]")
				if step.constancy != noValue {
					step.constancy = nonTextValue
				}
				p.parseTraversals(terraformExpression{}) // they apply to each item
				step.end = p.at
				return step
			}
			restore := p.withNewlinesAsSpace(true)
			if key := p.parseExpression(); key.constancy == noValue {
				step.constancy = noValue
			}
			p.expect("]")
			restore()
		default:
			return e
		}
		step.end = p.at
		e = step
	}
	return e
}

// parseSplatAttributes reads the attributes and indexes that apply to each item of ".*".
func (p *terraformParser) parseSplatAttributes() {
	for p.accept(".") {
		switch t := p.read(); t.kind {
		case "ident":
		case "number":
			p.checkNumber(t)
			if strings.Contains(p.source(t), ".") {
				p.fail(errTerraformSyntax)
			}
		default:
			p.fail(errTerraformSyntax)
		}
	}
}

// plainNumber matches the numbers that are certainly valid.
var plainNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$`) })

func (p *terraformParser) checkNumber(t terraformToken) {
	if !plainNumber().MatchString(p.source(t)) {
		p.fail(ErrUnread)
	}
}

func (p *terraformParser) parseTerm() terraformExpression {
	t := p.read()
	e := terraformExpression{start: t.start, end: t.end}
	switch t.kind {
	case "(":
		defer p.withNewlinesAsSpace(true)()
		inner := p.parseExpression()
		e.kind, e.operands, e.constancy, e.text = groupExpression, []terraformExpression{inner}, inner.constancy, inner.text
		e.end = p.expect(")")
	case "number":
		p.checkNumber(t)
		e.constancy = scalarValue
		if number, err := strconv.Atoi(p.source(t)); err == nil && len(p.source(t)) < 16 && strconv.Itoa(number) == p.source(t) {
			e.text = p.source(t)
		}
	case "ident":
		name := p.source(t)
		if next := p.peek().kind; next == "(" || next == "::" {
			return p.parseCall(t)
		}
		switch name {
		case "true", "false":
			e.constancy, e.text = scalarValue, name
		case "null":
			e.constancy = nonTextValue
		default:
			e.constancy = noValue
		}
	case `"`, "<<":
		heredoc := strings.TrimPrefix(strings.TrimSpace(p.source(t)), "<<")
		if t.kind == `"` {
			heredoc = ""
		}
		marker, flush := strings.CutPrefix(heredoc, "-")
		e.constancy, e.text = p.templateValue(p.parseTemplateParts(marker, flush))
		e.end = p.at
	case "[", "{":
		return p.parseCollection(t)
	default:
		p.fail(errTerraformSyntax)
	}
	return e
}

// parseCall reads a function call, after the first part of the function's name.
func (p *terraformParser) parseCall(name terraformToken) terraformExpression {
	e := terraformExpression{kind: callExpression, start: name.start, constancy: noValue}
	for p.accept("::") {
		p.expect("ident")
	}
	p.expect("(")
	defer p.withNewlinesAsSpace(true)()
	for p.err == nil && !p.accept(")") {
		e.operands = append(e.operands, p.parseExpression())
		if p.accept("...") {
			p.expect(")")
			break
		}
		if p.peek().kind != ")" {
			p.expect(",")
		}
	}
	e.end = p.at
	return e
}

// parseCollection reads a list or an object, after its bracket.
func (p *terraformParser) parseCollection(open terraformToken) terraformExpression {
	e := terraformExpression{kind: listExpression, start: open.start, constancy: nonTextValue}
	restore := p.withNewlinesAsSpace(true)
	defer restore()
	if p.acceptWord("for") {
		return p.parseFor(open)
	}
	end := "]"
	if open.kind == "{" {
		e.kind, end, p.newlinesAreSpace = objectExpression, "}", false
	}
	for p.err == nil {
		if open.kind == "{" && p.accept("\n") {
			continue
		}
		if p.accept(end) {
			break
		}
		item := p.parseExpression()
		e.operands = append(e.operands, item)
		if open.kind == "{" {
			if !p.accept("=") {
				p.expect(":")
			}
			item = p.parseExpression()
			e.operands = append(e.operands, item)
		}
		if item.constancy == noValue {
			e.constancy = noValue
		}
		if p.peek().kind != end && (open.kind == "[" || !p.accept("\n")) {
			p.expect(",")
		}
	}
	e.end = p.at
	return e
}

// parseFor reads a for expression, after "for". What it gives is a list or an object.
func (p *terraformParser) parseFor(open terraformToken) terraformExpression {
	e := terraformExpression{start: open.start, constancy: nonTextValue}
	if p.parseForVariables().constancy == noValue {
		e.constancy = noValue
	}
	p.expect(":")
	p.parseExpression()
	end := "]"
	if open.kind == "{" {
		end = "}"
		p.expect("=>")
		p.parseExpression()
		p.accept("...")
	}
	if p.acceptWord("if") {
		p.parseExpression()
	}
	e.end = p.expect(end)
	return e
}

// parseForVariables reads "KEY, VALUE in COLLECTION" and returns the collection.
func (p *terraformParser) parseForVariables() terraformExpression {
	p.expect("ident")
	if p.accept(",") {
		p.expect("ident")
	}
	if !p.acceptWord("in") {
		p.fail(errTerraformSyntax)
	}
	return p.parseExpression()
}

type templatePartKind int

const (
	literalPart       templatePartKind = iota
	interpolationPart                  // ${value}
	ifPart                             // %{if value}
	forPart                            // %{for x in value}
	elsePart
	endIfPart
	endForPart
)

// A templatePart is a part of a quoted text or heredoc. A literal ends at a newline at the latest.
type templatePart struct {
	kind  templatePartKind
	text  string
	value terraformExpression
}

// parseTemplateParts reads a quoted text, or a heredoc that ends with a marker, behind its beginning.
// flush says that the indentation of the heredoc is removed.
func (p *terraformParser) parseTemplateParts(marker string, flush bool) []templatePart {
	defer p.enter()()
	var parts []templatePart
	trimNext := false
	lineStart := true
	for p.err == nil {
		if marker != "" && lineStart {
			line, _, found := strings.Cut(p.text[p.at:], "\n")
			if !found {
				p.fail(errTerraformSyntax)
				break
			}
			if line = strings.TrimSuffix(line, "\r"); strings.TrimSpace(line) == marker && !strings.Contains(line, "\r") {
				p.at += len(line)
				break
			}
		}
		lineStart = false
		rest := p.text[p.at:]
		switch {
		case rest == "":
			p.fail(errTerraformSyntax)
		case marker == "" && rest[0] == '"':
			p.at++
			return parts
		case strings.HasPrefix(rest, "${"), strings.HasPrefix(rest, "%{"):
			p.at += 2
			if strings.HasPrefix(p.text[p.at:], "~") {
				p.at++
				if last := len(parts) - 1; last >= 0 && parts[last].kind == literalPart {
					parts[last].text = strings.TrimRightFunc(parts[last].text, unicode.IsSpace)
				}
			}
			restore := p.withNewlinesAsSpace(true)
			part := templatePart{kind: interpolationPart}
			if rest[0] == '$' {
				part.value = p.parseExpression()
			} else {
				part = p.parseDirective()
			}
			if trimNext = p.accept("~}"); !trimNext {
				p.expect("}")
			}
			restore()
			parts = append(parts, part)
		default:
			text := p.readLiteral(marker != "")
			lineStart = strings.HasSuffix(text, "\n") && marker != ""
			if trimNext {
				text = strings.TrimLeftFunc(text, unicode.IsSpace)
			}
			trimNext = false
			parts = append(parts, templatePart{kind: literalPart, text: text})
		}
	}
	if flush {
		p.removeIndentation(parts)
	}
	return parts
}

// parseDirective reads what is in %{...}.
func (p *terraformParser) parseDirective() templatePart {
	switch {
	case p.acceptWord("if"):
		return templatePart{kind: ifPart, value: p.parseExpression()}
	case p.acceptWord("for"):
		return templatePart{kind: forPart, value: p.parseForVariables()}
	case p.acceptWord("else"):
		return templatePart{kind: elsePart}
	case p.acceptWord("endif"):
		return templatePart{kind: endIfPart}
	case p.acceptWord("endfor"):
		return templatePart{kind: endForPart}
	}
	p.fail(errTerraformSyntax)
	return templatePart{}
}

// readLiteral reads literal text up to a template sequence, the end of the line (which it includes in a
// heredoc) or the closing quote, and resolves its escapes.
func (p *terraformParser) readLiteral(heredoc bool) string {
	var out strings.Builder
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		c := rest[0]
		length, literal := 1, rest[:1]
		switch {
		case strings.HasPrefix(rest, "${"), strings.HasPrefix(rest, "%{"), c == '"' && !heredoc:
			return out.String()
		case strings.HasPrefix(rest, "$${"), strings.HasPrefix(rest, "%%{"):
			length, literal = 3, rest[1:3]
		case c == '\\' && !heredoc:
			length, literal = unescape(rest)
		case c == '\n' && heredoc, strings.HasPrefix(rest, "\r\n") && heredoc:
			end := strings.IndexByte(rest, '\n') + 1
			p.at += end
			return out.String() + rest[:end]
		case c == '\r', c == '\n' && strings.IndexByte("$%", p.text[p.at-1]) >= 0: // some are accepted
			p.fail(ErrUnread)
			return ""
		case c == '\n':
			length = 0
		}
		if length == 0 {
			p.fail(errTerraformSyntax)
			break
		}
		out.WriteString(literal)
		p.at += length
	}
	return out.String()
}

// unescape returns the length of the escape sequence that a text begins with, and what it stands for.
// The length of an invalid one is 0.
func unescape(text string) (int, string) {
	if len(text) < 2 {
		return 0, ""
	}
	digits := 0
	switch text[1] {
	case 'n':
		return 2, "\n"
	case 'r':
		return 2, "\r"
	case 't':
		return 2, "\t"
	case '"', '\\':
		return 2, text[1:2]
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits == 0 || len(text) < 2+digits {
		return 0, ""
	}
	code, err := strconv.ParseUint(text[2:2+digits], 16, 32)
	if err != nil || code > unicode.MaxRune || !utf8.ValidRune(rune(code)) {
		return 0, ""
	}
	return 2 + digits, string(rune(code))
}

// removeIndentation removes the least indentation of all lines that are not blank from these lines.
func (p *terraformParser) removeIndentation(parts []templatePart) {
	least := -1
	var indented []*templatePart
	lineStart := true
	for i := range parts {
		part := &parts[i]
		if lineStart {
			trimmed := strings.TrimLeftFunc(part.text, unicode.IsSpace)
			if part.kind != literalPart {
				least = 0
			} else if trimmed != "" || !strings.HasSuffix(part.text, "\n") {
				count := utf8.RuneCountInString(part.text) - utf8.RuneCountInString(trimmed)
				if least < 0 || count < least {
					least = count
				}
				indented = append(indented, part)
				if next, _ := utf8.DecodeRuneInString(trimmed); count > 0 && mayExtendSpace(next) || strings.Contains(part.text[:len(part.text)-len(trimmed)], "\r") {
					p.fail(ErrUnread)
				}
			}
		}
		lineStart = part.kind == literalPart && strings.HasSuffix(part.text, "\n")
	}
	for _, part := range indented {
		for range least {
			_, size := utf8.DecodeRuneInString(part.text)
			part.text = part.text[size:]
		}
	}
}

// mayExtendSpace reports whether a rune may combine with a space before it to a single character.
func mayExtendSpace(r rune) bool {
	return r >= utf8.RuneSelf && (!unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) || unicode.In(r, unicode.Lm, unicode.Sk, unicode.Other_Grapheme_Extend) || r == 0x0e33 || r == 0x0eb3)
}

// templateValue returns the value of a template.
func (p *terraformParser) templateValue(parts []templatePart) (constancy, string) {
	if len(parts) == 1 && parts[0].kind == interpolationPart {
		return parts[0].value.constancy, parts[0].value.text // of any type
	}
	rest := parts
	whole := p.templateSequence(&rest)
	if len(rest) > 0 {
		p.fail(errTerraformSyntax) // the end of what did not begin
	}
	return whole.constancy, whole.text
}

// templateSequence returns the value of parts up to the end of the directive that they are in.
func (p *terraformParser) templateSequence(parts *[]templatePart) terraformExpression {
	defer p.enter()()
	result := terraformExpression{constancy: textValue}
	var text, literal strings.Builder
	endLiteral := func() {
		text.WriteString(norm.NFC.String(literal.String()))
		literal.Reset()
	}
	for p.err == nil && len(*parts) > 0 && (*parts)[0].kind < elsePart {
		part := (*parts)[0]
		*parts = (*parts)[1:]
		value := part.value
		switch part.kind {
		case literalPart:
			literal.WriteString(part.text)
			continue
		case ifPart:
			whenTrue := p.templateSequence(parts)
			whenFalse := terraformExpression{constancy: textValue}
			if p.acceptPart(parts, elsePart) {
				whenFalse = p.templateSequence(parts)
			}
			if !p.acceptPart(parts, endIfPart) {
				p.fail(errTerraformSyntax)
			}
			value = terraformExpression{constancy: conditionalConstancy(value, whenTrue, whenFalse)}
		case forPart:
			p.templateSequence(parts)
			if !p.acceptPart(parts, endForPart) {
				p.fail(errTerraformSyntax)
			}
			if value.constancy != noValue {
				value = terraformExpression{constancy: unreadValue}
			}
		}
		endLiteral()
		text.WriteString(value.text)
		switch {
		case value.constancy == noValue || value.constancy == nonTextValue:
			result.constancy = noValue
		case result.constancy == textValue && (value.constancy == unreadValue || value.constancy == scalarValue && value.text == ""):
			result.constancy = unreadValue
		}
	}
	endLiteral()
	result.text = norm.NFC.String(text.String())
	return result
}

// acceptPart removes the first of some parts if it is of a kind.
func (p *terraformParser) acceptPart(parts *[]templatePart, kind templatePartKind) bool {
	if len(*parts) == 0 || (*parts)[0].kind != kind {
		return false
	}
	*parts = (*parts)[1:]
	return true
}

// addTerraform adds the blocks of Terraform: TYPE/LABEL/LABEL, with what is in them.
func (b *objectBuilder) addTerraform(text string) error {
	if tooDeep(text) {
		b.limitReached = true
		return ErrLimit
	}
	body, err := parseTerraform(text)
	if err != nil {
		return err
	}
	return b.addTerraformBody(valuePosition{}, body, text)
}

func (b *objectBuilder) addTerraformBody(p valuePosition, body terraformBody, text string) error {
	inner, ok := b.addObject(p)
	if !ok {
		return nil
	}
	for _, a := range body.attributes {
		if err := b.addTerraformExpression(inner.atKey(a.name), a.value, text); err != nil {
			return err
		}
	}
	for _, block := range body.blocks {
		at := inner
		for _, name := range block.path {
			at = at.atKey(name)
		}
		if err := b.addTerraformBody(at, block.body, text); err != nil {
			return err
		}
	}
	return nil
}

// addTerraformExpression adds an expression: its value if that is a text, else its source text.
func (b *objectBuilder) addTerraformExpression(p valuePosition, e terraformExpression, text string) error {
	if p.depth++; b.limitReached || p.depth > 4*maxDepth {
		b.limitReached = true
		return nil
	}
	switch {
	case e.kind == objectExpression:
		inner, ok := b.addObject(p)
		if !ok {
			return nil
		}
		for item := range slices.Chunk(e.operands, 2) {
			key := strings.Trim(text[item[0].start:item[0].end], `"() `)
			if err := b.addTerraformExpression(inner.atKey(key), item[1], text); err != nil {
				return err
			}
		}
	case e.kind != leafExpression:
		for _, operand := range e.operands {
			if err := b.addTerraformExpression(p, operand, text); err != nil {
				return err
			}
		}
	case e.constancy == unreadValue:
		return ErrUnread
	case e.constancy == textValue:
		b.addText(p, e.text)
		b.addEmbeddedJSON(p, e.text)
	default:
		b.addText(p, strings.Trim(text[e.start:e.end], `" `))
	}
	return nil
}
