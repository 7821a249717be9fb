package script

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// awkConcatenatesNext reports whether the next word is concatenated with the text before it: awk concatenates adjacent
// values.
func (p *script) awkConcatenatesNext(left operand) bool {
	t := p.tokens[p.pos]
	if p.language != "awk" || t.hasNewlineBefore || t.kind == punctToken || left.dottedName != "" || left.isList {
		return false
	}
	if p.pos+1 < len(p.tokens) {
		if next := p.tokens[p.pos+1].text; next == "=" || next == "+=" {
			return false // the next word is assigned to, so a new statement begins
		}
	}
	switch t.text {
	case "in", "getline", "next", "nextfile", "if", "else", "while", "for", "do", "print", "printf", "delete", "exit", "return", "function", "break", "continue":
		return t.kind == stringToken
	}
	return true
}

// walkAwkPipe handles print | "cmd" and "cmd" | getline.
func (p *script) walkAwkPipe(left operand) operand {
	p.pos++
	if p.pos < len(p.tokens) && p.tokens[p.pos].text == "&" {
		p.pos++
	}
	if p.pos < len(p.tokens) && p.tokens[p.pos].text == "getline" {
		p.pos++
		if left.IsLiteral() && strings.HasPrefix(left.Text, "/inet") {
			p.opensConnection = true
			return operand{}
		}
		p.walkShellText(left.Value)
		return operand{isUsedByCall: true}
	}
	o := p.parseOperand()
	if o.IsLiteral() && strings.HasPrefix(o.Text, "/inet") {
		p.opensConnection = true
		return operand{}
	}
	in := left.Value
	if left.dottedName != "" || !in.IsLiteral() || in.Text == "" {
		in = abstract.Unknown("what awk prints", p.analysisContext.Stdin().Taint|abstract.TaintUnknownText)
	}
	if o.IsLiteral() && o.dottedName == "" {
		p.analysisContext.WalkShellTextWithStdin(o.Text, p.spanInAnalyzedText, in)
	} else {
		p.walkShellText(o.Value)
	}
	return operand{isUsedByCall: true}
}
