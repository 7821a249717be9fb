package script

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// awkJoins reports whether the next word is concatenated with the text before it: awk concatenates adjacent
// values.
func (p *script) awkJoins(left operand) bool {
	t := p.tokens[p.i]
	if p.language != "awk" || t.newline || t.kind == punctToken || left.name != "" || left.isList {
		return false
	}
	if p.i+1 < len(p.tokens) {
		if next := p.tokens[p.i+1].text; next == "=" || next == "+=" {
			return false // a separate statement
		}
	}
	switch t.text {
	case "in", "getline", "next", "nextfile", "if", "else", "while", "for", "do", "print", "printf", "delete", "exit", "return", "function", "break", "continue":
		return t.kind == stringToken
	}
	return true
}

// runAwkPipe handles print | "cmd" and "cmd" | getline.
func (p *script) runAwkPipe(left operand) operand {
	p.i++
	if p.i < len(p.tokens) && p.tokens[p.i].text == "&" {
		p.i++
	}
	if p.i < len(p.tokens) && p.tokens[p.i].text == "getline" {
		p.i++
		if left.Known() && strings.HasPrefix(left.Text, "/inet") {
			p.opensConnection = true
			return operand{}
		}
		p.runShell(left.Value)
		return operand{isConsumed: true}
	}
	o := p.parseOperand()
	if o.Known() && strings.HasPrefix(o.Text, "/inet") {
		p.opensConnection = true
		return operand{}
	}
	in := left.Value
	if left.name != "" || !in.Known() || in.Text == "" {
		in = abstract.Unknown("what awk prints", p.w.Input().Taint|abstract.UnknownText)
	}
	if o.Known() && o.name == "" {
		p.w.Pipe(o.Text, p.at, in)
	} else {
		p.runShell(o.Value)
	}
	return operand{isConsumed: true}
}
