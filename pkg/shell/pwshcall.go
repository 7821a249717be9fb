package shell

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// operand reads one operand with its members, calls and subscripts.
func (p *pwsh) operand() value {
	if p.i >= len(p.text) || !p.s.step(1) {
		return value{}
	}
	if p.depth > maxDepth {
		p.s.giveUp("PowerShell text is too complex")
		return value{}
	}
	p.depth++
	defer func() { p.depth-- }()
	var v value
	dotted := ""
	switch c := p.text[p.i]; {
	case c == '\'' || c == '"':
		v = p.str()
	case c == '@' && p.i+1 < len(p.text) && (p.text[p.i+1] == '\'' || p.text[p.i+1] == '"'):
		v = p.hereString()
	case c == '$' && p.i+1 < len(p.text) && p.text[p.i+1] == '(', c == '@' && p.i+1 < len(p.text) && (p.text[p.i+1] == '(' || p.text[p.i+1] == '{'):
		closing := byte(')')
		if p.text[p.i+1] == '{' {
			closing = '}'
		}
		p.i += 2
		v = p.block(closing)
	case c == '$':
		start := p.i
		v = p.variable()
		dotted = strings.ToLower(p.text[start:p.i])
	case c == '(':
		p.i++
		v = p.block(')')
	case c == '{':
		p.i++
		v = p.block('}')
	case c == '[':
		end := strings.IndexByte(p.text[p.i:], ']')
		if end < 0 {
			p.i = len(p.text)
			return value{}
		}
		dotted = strings.ToLower(strings.Trim(p.text[p.i:p.i+end+1], "[] "))
		p.i += end + 1
		if !strings.HasPrefix(p.text[p.i:], "::") {
			p.skip(" \t")
			return p.cast(dotted)
		}
	case c == '-' || c == '!':
		p.i++
		return p.operand()
	default:
		text := p.bare()
		if text == "" {
			p.i++
		}
		v = value{text: text, from: p.at}
	}
	v.from = p.at
	return p.members(v, dotted)
}

func (p *pwsh) hereString() value {
	q := p.text[p.i+1 : p.i+2]
	body, _, ok := strings.Cut(p.text[p.i+2:], "\n"+q+"@")
	p.i += 2 + len(body)
	if ok {
		p.i += 3
	}
	return value{text: strings.TrimLeft(body, "\r\n"), from: p.at}
}

// cast is [type]operand.
func (p *pwsh) cast(typ string) value {
	v := p.operand()
	switch strings.TrimSuffix(typ, "[]") {
	case "char", "system.char":
		var b strings.Builder
		for f := range strings.FieldsSeq(v.text) {
			n, err := strconv.ParseInt(f, 0, 32)
			if err != nil {
				return v
			}
			b.WriteRune(rune(n))
		}
		if v.known() {
			return value{text: b.String(), taint: v.taint | decoded, from: p.at}
		}
	case "scriptblock", "management.automation.scriptblock":
		return v
	}
	return v
}

// members reads .name, ::name, (…) and […] behind an operand.
func (p *pwsh) members(v value, dotted string) value {
	for p.i < len(p.text) && !p.s.gaveUp {
		rest := p.text[p.i:]
		switch {
		case strings.HasPrefix(rest, "::") || rest[0] == '.' && len(rest) > 1 && (isWordByte(rest[1]) || strings.IndexByte("'\"($", rest[1]) >= 0):
			p.i += 1 + int(truth(rest[0] == ':'))
			name := ""
			if c := p.text[min(p.i, len(p.text)-1)]; c == '\'' || c == '"' {
				name = p.str().text
			} else if c == '(' || c == '$' {
				name = p.operand().text
			} else {
				start := p.i
				for p.i < len(p.text) && isWordByte(p.text[p.i]) {
					p.i++
				}
				name = p.text[start:p.i]
			}
			dotted += "." + strings.ToLower(name)
			if p.i < len(p.text) && p.text[p.i] == '(' {
				p.i++
				v = p.call(v, dotted, p.arguments())
				dotted = ""
			}
		case rest[0] == '[':
			p.i++
			index := p.block(']')
			if n, err := strconv.Atoi(index.text); v.known() && err == nil && n >= 0 && n < len(v.text) && dotted == "" {
				v.text = v.text[n : n+1]
			} else {
				v = unknown("[…]", v.taint)
			}
		default:
			return v
		}
	}
	return v
}

func (p *pwsh) arguments() []value {
	var args []value
	for p.i < len(p.text) && !p.s.gaveUp {
		p.skip(" \t\r\n,")
		if p.i >= len(p.text) || p.text[p.i] == ')' {
			p.i++
			break
		}
		start := p.i
		v := p.sum()
		v.from = p.at
		args = append(args, v)
		if p.i == start {
			p.i++
		}
	}
	p.i = min(p.i, len(p.text))
	return args
}

// sum is an expression up to a comma.
func (p *pwsh) sum() value {
	left := p.operand()
	for {
		mark := p.i
		p.skip(" \t")
		if p.i >= len(p.text) || p.text[p.i] != '+' {
			p.i = mark
			return left
		}
		p.i++
		p.skip(" \t\r\n")
		left = concat(left, p.operand())
	}
}

// call does what a .NET method is known to do.
func (p *pwsh) call(recv value, name string, args []value) value {
	arg := func(i int) value {
		if i < len(args) {
			return args[i]
		}
		return value{}
	}
	one := arg(0)
	method := name[strings.LastIndexByte(name, '.')+1:]
	result := unknown("."+method+"()", recv.taint|one.taint)
	switch method {
	case "downloadstring", "downloaddata", "openread", "getstringasync", "getasync", "getbytearrayasync", "downloadstringtaskasync", "downloaddataasync":
		p.s.url(effect.HTTPRequest, one)
		return unknown(clip(method), network)
	case "downloadfile", "downloadfileasync":
		p.s.url(effect.HTTPRequest, one)
		at, pattern := p.s.path(effect.WriteFile, arg(1), false)
		p.s.addFile(file{path: at, pattern: pattern, val: unknown("a download", network)})
	case "uploadstring", "uploaddata", "uploadfile", "uploadvalues", "postasync":
		p.s.url(effect.HTTPRequest, one)
		last := arg(len(args) - 1)
		if method == "uploadfile" {
			last = p.s.readFile(effect.ReadFile, last)
		}
		p.s.upload(last, "powershell", p.at)
	case "frombase64string":
		if text, ok := decode64(one.text); ok && one.known() {
			return value{text: text, taint: one.taint | decoded, from: p.at}
		}
		result.taint |= decoded
	case "getstring":
		if one.known() && strings.Contains(name, "unicode") {
			var b strings.Builder
			for i := 0; i+1 < len(one.text); i += 2 {
				b.WriteRune(rune(one.text[i]) | rune(one.text[i+1])<<8)
			}
			one.text = b.String()
		}
		one.taint |= result.taint
		return one
	case "replace":
		if recv.known() && one.known() && arg(1).known() && one.text != "" {
			recv.text = strings.ReplaceAll(recv.text, one.text, arg(1).text)
			return recv
		}
	case "tostring", "trim", "tolower", "toupper", "normalize", "readtoend", "invoke", "invokereturnasis", "toarray", "tochararray", "insert", "remove", "substring", "create", "getresponse", "getresponsestream":
		return p.passing(recv, method, name, one)
	case "invokescript", "addscript", "newscriptblock":
		return p.evaluate(one)
	case "start":
		if strings.HasSuffix(name, "process.start") && len(args) > 0 {
			p.s.windowsInvoke(append([]value{one}, splitWords(arg(1))...), streams{})
		}
	case "shellexecute", "exec", "run":
		p.s.runText("cmd", joinValues(args), "powershell", p.at, nil)
	case "readalltext", "readallbytes", "readalllines", "readlines", "openread.", "opentext":
		return p.s.readFile(effect.ReadFile, one)
	case "writealltext", "writeallbytes", "writealllines", "appendalltext", "create.":
		at, pattern := p.s.path(effect.WriteFile, one, false)
		p.s.addFile(file{path: at, pattern: pattern, val: arg(1)})
	case "delete":
		if strings.Contains(name, "io.") {
			p.s.path(effect.DeleteFile, one, len(args) > 1)
		} else {
			p.changes(method)
		}
	case "kill", "terminate", "stopservice", "startservice", "changestartmode", "uninstall", "reboot", "shutdown", "win32shutdown", "put", "commitchanges":
		p.changes(method)
	case "copy", "move":
		if strings.Contains(name, "io.") {
			content := p.s.readFile(effect.ReadFile, one)
			at, pattern := p.s.path(effect.WriteFile, arg(1), false)
			p.s.addFile(file{path: at, pattern: pattern, val: content})
		}
	case "load", "loadfile", "loadfrom", "unsafeloadfrom":
		if strings.Contains(name, "assembly") {
			if t := one.taint; t&(network|decoded) != 0 {
				p.s.runText("code", unknown("an assembly", t), "powershell", p.at, nil)
			} else {
				p.s.dynamic("loads an assembly that is not known", p.at)
			}
		}
	case "getdelegateforfunctionpointer", "virtualalloc", "createthread", "getprocaddress", "writeprocessmemory":
		p.s.dynamic("runs machine code", p.at)
	case "setvalue", "setsecurityprotocol":
		if strings.Contains(strings.ToLower(p.text), "amsi") {
			p.s.once(effect.Effect{Kind: effect.ChangeSystem, Program: "powershell", Reason: "turns the scanning of scripts off", From: p.at})
		}
	case "setenvironmentvariable":
		if one.known() {
			p.s.environmentCode(strings.ToUpper(one.text), arg(1), p.at)
		}
	case "getenvironmentvariables":
		return unknown("the environment", dump)
	case "getenvironmentvariable":
		return p.named("env:" + one.text)
	case "getstream", "new":
		if strings.Contains(name, "tcpclient") || method == "getstream" {
			p.connect(one)
		}
	case "":
	}
	return result
}

// changes records a method that changes an object of the system.
func (p *pwsh) changes(method string) {
	p.s.once(effect.Effect{Kind: effect.ChangeSystem, Program: "powershell", Reason: "calls " + method + " of an object", From: p.at})
}

// passing are methods that hand on what they work on.
func (p *pwsh) passing(recv value, method, name string, one value) value {
	switch method {
	case "tolower":
		recv.text = strings.ToLower(recv.text)
	case "toupper":
		recv.text = strings.ToUpper(recv.text)
	case "create":
		if strings.Contains(name, "scriptblock") {
			return p.evaluate(one)
		}
		if strings.Contains(name, "webrequest") {
			p.s.url(effect.HTTPRequest, one)
			return unknown("a download", network)
		}
	case "substring", "insert", "remove":
		return unknown("."+method+"()", recv.taint)
	case "invoke", "invokereturnasis":
		if recv.text != "" && recv.taint != 0 {
			return p.evaluate(recv)
		}
	}
	return recv
}

func (p *pwsh) connect(host value) {
	p.connects = true
	e := effect.Effect{Kind: effect.Connect, From: p.at, Pattern: true}
	if f := strings.Fields(strings.ReplaceAll(host.text, ",", " ")); host.known() && len(f) > 0 {
		e.Host, e.Pattern = effect.Host(f[0]), false
	}
	p.s.once(e)
}

// evaluate walks text that PowerShell would evaluate.
func (p *pwsh) evaluate(v value) value {
	p.runs = true
	if v.known() && v.text == "" {
		return value{}
	}
	return p.s.runText("powershell", v, "Invoke-Expression", p.at, nil)
}

func splitWords(v value) []value {
	if !v.known() {
		return []value{v}
	}
	var out []value
	for f := range strings.FieldsSeq(v.text) {
		out = append(out, value{text: strings.Trim(f, `"'`), taint: v.taint, from: v.from})
		if len(out) == maxFields {
			break
		}
	}
	return out
}
