package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A pwsh is PowerShell text being walked. The reader is tolerant: control flow
// is ignored, every command and every call in the text counts as done.
type pwsh struct {
	s     *state
	text  string
	i     int
	at    effect.Span
	depth int

	connects bool // it opens a TCP connection
	runs     bool // it evaluates text or starts a shell
}

// powershell walks PowerShell text.
func (s *state) powershell(text string) value {
	if len(text) > maxText {
		s.dynamic("the command is longer than 64 KiB", s.span(0, len(s.text)))
		return unknown("…", foreign)
	}
	if !s.enter(effect.Span{}) {
		return unknown("…", foreign)
	}
	defer s.leave()
	p := &pwsh{s: s, text: text, at: s.span(0, len(text))}
	out := p.block(0)
	if p.connects && p.runs {
		s.once(effect.Effect{Kind: effect.RemoteShell, Program: "powershell", Reason: "runs what a network connection sends", From: p.at})
	}
	return out
}

// block walks statements up to a closing bracket.
func (p *pwsh) block(until byte) value {
	out := value{}
	for !p.s.gaveUp {
		p.skip(" \t\r\n;,")
		if p.i >= len(p.text) {
			return out
		}
		if c := p.text[p.i]; c == until {
			p.i++
			return out
		}
		start := p.i
		out = p.pipeline(until)
		if p.i == start {
			p.i++
		}
	}
	return out
}

func (p *pwsh) skip(chars string) {
	for p.i < len(p.text) {
		switch {
		case strings.IndexByte(chars, p.text[p.i]) >= 0:
			p.i++
		case p.text[p.i] == '`' && p.i+1 < len(p.text) && (p.text[p.i+1] == '\n' || p.text[p.i+1] == '\r'):
			p.i += 2
		case p.text[p.i] == '#':
			for p.i < len(p.text) && p.text[p.i] != '\n' {
				p.i++
			}
		default:
			return
		}
	}
}

// pipeline walks elements that are joined by |.
func (p *pwsh) pipeline(until byte) value {
	if !p.s.step(1) || p.depth > maxDepth {
		p.s.giveUp("PowerShell text is too complex")
		return value{}
	}
	p.depth++
	defer func() { p.depth-- }()
	out := value{}
	for {
		p.skip(" \t\r\n")
		out = p.element(out, until)
		p.skip(" \t\r")
		if p.i < len(p.text) && p.text[p.i] == '|' && !strings.HasPrefix(p.text[p.i:], "||") {
			p.i++
			continue
		}
		if strings.HasPrefix(p.text[p.i:], "||") || strings.HasPrefix(p.text[p.i:], "&&") {
			p.i += 2
		}
		return out
	}
}

// element walks one command or expression.
func (p *pwsh) element(in value, until byte) value {
	if p.i >= len(p.text) {
		return value{}
	}
	start := p.i
	switch c := p.text[p.i]; {
	case c == '&' || c == '.' && p.i+1 < len(p.text) && strings.IndexByte(" \t('\"$", p.text[p.i+1]) >= 0:
		p.i++
		p.skip(" \t&")
		return p.command(p.argument(), in)
	case c == '$' || c == '[' || c == '(' || c == '\'' || c == '"' || c == '@' || c == '{' || c >= '0' && c <= '9' || c == '!' || c == '-' || c == '+' || c == ',':
		v := p.expression()
		p.skip(" \t")
		if p.assignment(start, v) {
			return value{}
		}
		if p.i == start {
			p.i++
		}
		return v
	case c == '}' || c == ')' || c == ']':
		p.i++
		return value{}
	}
	word := p.bare()
	lower := strings.ToLower(word)
	switch lower {
	case "if", "elseif", "else", "while", "for", "foreach", "switch", "try", "catch", "finally", "do", "until", "function", "filter", "return", "throw", "param", "begin", "process", "end", "trap", "in", "exit", "break", "continue", "data", "using":
		if lower == "foreach" && in.text != "" || lower == "foreach" && in.taint != 0 {
			break
		}
		p.skip(" \t")
		if lower == "function" || lower == "filter" {
			p.bare()
		}
		return value{}
	}
	if word == "" {
		p.i++
		return value{}
	}
	return p.command(value{text: word, from: p.at}, in)
}

// assignment reads `= expr` behind a variable that starts at start.
func (p *pwsh) assignment(start int, v value) bool {
	if p.i >= len(p.text) || p.text[p.i] != '=' && !strings.HasPrefix(p.text[p.i:], "+=") || p.text[start] != '$' {
		return false
	}
	name := strings.ToLower(strings.Trim(strings.TrimSpace(p.text[start:p.i]), "${}"))
	add := p.text[p.i] == '+'
	p.i++
	if add {
		p.i++
	}
	right := p.pipeline(0)
	if add {
		right = concat(v, right)
	}
	p.s.bind(binding{name: "ps:" + name, val: right})
	if env, ok := strings.CutPrefix(name, "env:"); ok {
		p.s.environmentCode(strings.ToUpper(env), right, p.at)
	}
	return true
}

// bare reads a word that is not quoted.
func (p *pwsh) bare() string {
	var b strings.Builder
	for p.i < len(p.text) {
		c := p.text[p.i]
		if c == '`' && p.i+1 < len(p.text) {
			p.i++
			b.WriteByte(p.text[p.i])
			p.i++
			continue
		}
		if strings.IndexByte(" \t\r\n;|()'\"{}$,&<>", c) >= 0 && !(b.Len() == 0 && (c == '$')) {
			break
		}
		b.WriteByte(c)
		p.i++
	}
	return b.String()
}

// expression reads operands that are joined by operators.
func (p *pwsh) expression() value {
	if !p.s.step(1) || p.depth > maxDepth {
		p.s.giveUp("PowerShell text is too complex")
		return value{}
	}
	p.depth++
	defer func() { p.depth-- }()
	var list []value
	left := p.operand()
	for p.i < len(p.text) {
		mark := p.i
		p.skip(" \t")
		rest := p.text[p.i:]
		switch {
		case strings.HasPrefix(rest, "+=") || rest == "":
			p.i = mark
			return p.joined(list, left)
		case rest[0] == '+':
			p.i++
			p.skip(" \t\r\n")
			left = concat(left, p.operand())
		case rest[0] == ',':
			p.i++
			p.skip(" \t\r\n")
			list = append(list, left)
			left = p.operand()
			if len(list) > maxFields {
				p.s.giveUp("a list in PowerShell text is too long")
			}
		case rest[0] == '-' && len(rest) > 2 && isWordByte(rest[1]):
			op, ok := p.operator(rest)
			if !ok {
				p.i = mark
				return p.joined(list, left)
			}
			left = p.operate(op, append(list, left))
			list = nil
		default:
			p.i = mark
			return p.joined(list, left)
		}
	}
	return p.joined(list, left)
}

func (p *pwsh) joined(list []value, last value) value {
	if len(list) == 0 {
		return last
	}
	v := joinValues(append(list, last))
	return v
}

func (p *pwsh) operator(rest string) (string, bool) {
	end := 1
	for end < len(rest) && isWordByte(rest[end]) {
		end++
	}
	op := strings.ToLower(rest[1:end])
	switch op {
	case "f", "join", "replace", "creplace", "ireplace", "split", "csplit", "bxor", "band", "bor", "as", "eq", "ne", "like", "match", "contains", "and", "or", "gt", "lt", "ge", "le", "notlike", "notmatch", "in", "is", "not", "ieq", "ine", "shl", "shr":
		p.i += end
		p.skip(" \t\r\n")
		return op, true
	}
	return "", false
}

// operate applies an operator to the values on its left.
func (p *pwsh) operate(op string, left []value) value {
	right := p.operand()
	args := []value{right}
	for {
		mark := p.i
		p.skip(" \t")
		if p.i >= len(p.text) || p.text[p.i] != ',' {
			p.i = mark
			break
		}
		p.i++
		p.skip(" \t\r\n")
		args = append(args, p.operand())
		if len(args) > maxFields {
			p.s.giveUp("a list in PowerShell text is too long")
			break
		}
	}
	first := left[0]
	switch op {
	case "f":
		return formatPlaces(first, args)
	case "join":
		if right.known() {
			var b builder
			for i, v := range left {
				if i > 0 {
					b.literal(right.text)
				}
				b.add(v)
			}
			if len(left) == 1 && first.known() && right.text == "" {
				return lit(strings.ReplaceAll(first.text, " ", ""))
			}
			return b.value()
		}
	case "replace", "creplace", "ireplace":
		if first.known() && right.known() {
			with := ""
			if len(args) > 1 {
				with = args[1].text
			}
			first.text = strings.ReplaceAll(first.text, strings.TrimPrefix(right.text, `\`), with)
			return first
		}
	case "split", "csplit":
		if first.known() && right.known() && right.text != "" {
			first.text = strings.ReplaceAll(first.text, right.text, " ")
			return first
		}
	}
	return unknown("…", first.taint|right.taint)
}

// formatPlaces is "{1}{0}" -f "a","b".
func formatPlaces(form value, args []value) value {
	if !form.known() {
		return unknown("…", form.taint)
	}
	var b builder
	text := form.text
	for i := 0; i < len(text); i++ {
		if text[i] == '{' && i+2 < len(text) && text[i+1] >= '0' && text[i+1] <= '9' {
			end := strings.IndexByte(text[i:], '}')
			n := 0
			for j := i + 1; j < len(text) && text[j] >= '0' && text[j] <= '9' && n < 1000; j++ {
				n = n*10 + int(text[j]-'0')
			}
			if end > 0 && n < len(args) {
				b.add(args[n])
				i += end
				continue
			}
		}
		b.literal(text[i : i+1])
	}
	return b.value()
}

// str reads a quoted string.
func (p *pwsh) str() value {
	q := p.text[p.i]
	p.i++
	var b builder
	for p.i < len(p.text) {
		c := p.text[p.i]
		switch {
		case c == q:
			if p.i+1 < len(p.text) && p.text[p.i+1] == q {
				b.literal(string(q))
				p.i += 2
				continue
			}
			p.i++
			v := b.value()
			v.from, v.written = p.at, true
			return v
		case q == '"' && c == '`' && p.i+1 < len(p.text):
			p.i++
			switch p.text[p.i] {
			case 'n':
				b.literal("\n")
			case 't':
				b.literal("\t")
			case '0':
			default:
				b.literal(p.text[p.i : p.i+1])
			}
			p.i++
		case q == '"' && c == '$' && p.i+1 < len(p.text) && (isWordByte(p.text[p.i+1]) || p.text[p.i+1] == '{' || p.text[p.i+1] == '('):
			if p.text[p.i+1] == '(' {
				p.i += 2
				b.add(p.block(')'))
				continue
			}
			b.add(p.variable())
		default:
			b.literal(p.text[p.i : p.i+1])
			p.i++
		}
	}
	v := b.value()
	v.from = p.at
	return v
}

// variable reads $name, ${name} or $env:name.
func (p *pwsh) variable() value {
	p.i++
	start := p.i
	if p.i < len(p.text) && p.text[p.i] == '{' {
		end := strings.IndexByte(p.text[p.i:], '}')
		if end < 0 {
			end = len(p.text) - p.i - 1
		}
		p.i += end + 1
		return p.named(strings.Trim(p.text[start:p.i], "{}"))
	}
	for p.i < len(p.text) && (isWordByte(p.text[p.i]) || p.text[p.i] == ':' && p.i+1 < len(p.text) && isWordByte(p.text[p.i+1])) {
		p.i++
	}
	if p.i == start && p.i < len(p.text) && strings.IndexByte("?$^", p.text[p.i]) >= 0 {
		p.i++
	}
	return p.named(p.text[start:p.i])
}

func (p *pwsh) named(name string) value {
	lower := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(name, "script:"), "global:"))
	if b, ok := p.s.lookup("ps:" + lower); ok {
		v := b.val
		v.from = p.at
		return v
	}
	env, isEnv := strings.CutPrefix(lower, "env:")
	switch lower {
	case "home", "env:userprofile", "env:home":
		return value{text: "~", from: p.at}
	case "pwd":
		return value{text: ".", from: p.at}
	case "true", "false", "null":
		return value{text: "$" + lower, from: p.at}
	case "env:comspec":
		return lit("cmd.exe")
	case "shellid":
		return lit("Microsoft.PowerShell")
	case "pshome":
		return lit(`C:\Windows\System32\WindowsPowerShell\v1.0`)
	case "env:temp", "env:tmp", "env:appdata", "env:localappdata", "env:programdata", "env:systemroot", "env:windir", "env:public":
		return value{text: "%" + strings.ToUpper(env) + "%", from: p.at}
	}
	v := unknown("$"+name, 0)
	if isEnv && secretName(env) {
		v.taint, v.secrets = credential, "$"+name
	}
	v.from = p.at
	return v
}
