package pwsh

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// parseOperand parses one operand with its members, calls and subscripts.
func (p *analyzer) parseOperand() abstract.Value {
	if p.pos >= len(p.text) || !p.analysisContext.SpendSteps(1) {
		return abstract.Value{}
	}
	if p.expressionNestingDepth > maxExpressionNesting {
		p.analysisContext.AbortAnalysis("PowerShell text is too complex")
		return abstract.Value{}
	}
	p.expressionNestingDepth++
	defer func() { p.expressionNestingDepth-- }()
	var v abstract.Value
	dotted := ""
	switch c := p.text[p.pos]; {
	case c == '\'' || c == '"':
		v = p.parseString()
	case c == '@' && p.pos+1 < len(p.text) && (p.text[p.pos+1] == '\'' || p.text[p.pos+1] == '"'):
		v = p.parseHereString()
	case strings.HasPrefix(p.text[p.pos:], "@{"):
		p.pos += 2
		v = p.parseHashTable()
	case (c == '$' || c == '@') && p.pos+1 < len(p.text) && p.text[p.pos+1] == '(':
		p.pos += 2
		v = p.parseBlock(')')
	case c == '$':
		start := p.pos
		v = p.parseVariable()
		dotted = strings.ToLower(p.text[start:p.pos])
	case c == '(':
		p.pos++
		v = p.parseBlock(')')
	case c == '{':
		p.pos++
		v = p.parseBlock('}')
	case c == '[':
		if p.parseAttribute() {
			return abstract.Value{}
		}
		name, ok := p.parseTypeName()
		if !ok {
			return abstract.Value{}
		}
		dotted = name
		if !strings.HasPrefix(p.text[p.pos:], "::") {
			p.skipCharSetAndComments(" \t")
			return p.parseCast(dotted)
		}
	case c == '-' || c == '!':
		p.pos++
		return p.parseOperand()
	case c >= '0' && c <= '9':
		v = abstract.Value{Text: p.parseNumber(), SourceSpan: p.textSpanInCommand}
	default:
		text := p.parseBareWord()
		if text == "" {
			p.pos++
		}
		v = abstract.Value{Text: text, SourceSpan: p.textSpanInCommand}
	}
	v.SourceSpan = p.textSpanInCommand
	return p.parseMembers(v, dotted)
}

// parseNumber parses a number, or a word that begins like one.
func (p *analyzer) parseNumber() string {
	start := p.pos
	for p.pos < len(p.text) {
		switch rest := p.text[p.pos:]; {
		case strings.HasPrefix(rest, "..-"):
			p.pos += 3
		case strings.HasPrefix(rest, ".."):
			p.pos += 2
		case plain.IsWordByte(rest[0]), rest[0] == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
			p.pos++
		default:
			return p.text[start:p.pos]
		}
	}
	return p.text[start:p.pos]
}

// parseHashTable parses a hash table: names, each with a value after "=".
func (p *analyzer) parseHashTable() abstract.Value {
	var b abstract.Builder
	for p.pos < len(p.text) && !p.analysisContext.IsAnalysisAborted() {
		p.skipCharSetAndComments(" \t\r\n;")
		if p.pos < len(p.text) && p.text[p.pos] == '}' {
			p.pos++
			break
		}
		start := p.pos
		if p.pos < len(p.text) && (p.text[p.pos] == '\'' || p.text[p.pos] == '"') {
			p.parseString()
		}
		for p.pos < len(p.text) && (plain.IsWordByte(p.text[p.pos]) || p.text[p.pos] == '-') {
			p.pos++
		}
		p.skipCharSetAndComments(" \t")
		if p.pos < len(p.text) && p.text[p.pos] == '=' {
			p.pos++
		} else {
			p.pos = start
		}
		before := p.pos
		b.Add(p.parsePipeline('}'))
		if p.pos == before {
			p.pos++
		}
	}
	return b.Value()
}

// parseCast handles [type]operand.
func (p *analyzer) parseCast(typ string) abstract.Value {
	v := p.parseOperand()
	switch strings.TrimSuffix(typ, "[]") {
	case "char", "system.char":
		var b strings.Builder
		for f := range strings.FieldsSeq(v.Text) {
			n, err := strconv.ParseInt(f, 0, 32)
			if err != nil {
				return v
			}
			b.WriteRune(rune(n))
		}
		if v.IsLiteral() {
			return abstract.Value{Text: b.String(), Taint: v.Taint | abstract.TaintDecoded, SourceSpan: p.textSpanInCommand}
		}
	case "scriptblock", "management.automation.scriptblock":
		return v
	}
	return v
}

// parseMembers parses .name, ::name, (…) and […] after an operand.
func (p *analyzer) parseMembers(v abstract.Value, dotted string) abstract.Value {
	for p.pos < len(p.text) && !p.analysisContext.IsAnalysisAborted() {
		rest := p.text[p.pos:]
		switch {
		case strings.HasPrefix(rest, "::") || rest[0] == '.' && len(rest) > 1 && (plain.IsWordByte(rest[1]) || strings.IndexByte("'\"($", rest[1]) >= 0):
			p.pos++
			if rest[0] == ':' {
				p.pos++
			}
			name := ""
			if c := p.text[min(p.pos, len(p.text)-1)]; c == '\'' || c == '"' {
				name = p.parseString().Text
			} else if c == '(' || c == '$' {
				name = p.parseOperand().Text
			} else {
				start := p.pos
				for p.pos < len(p.text) && plain.IsWordByte(p.text[p.pos]) {
					p.pos++
				}
				name = p.text[start:p.pos]
			}
			dotted += "." + strings.ToLower(name)
			if v.HasPathPerLine && filePropertiesWithoutFolderPath[strings.ToLower(name)] {
				v = abstract.UnknownTextWithoutSlash(v.Display+dotted, abstract.OriginCommandOutput)
			}
			if p.pos < len(p.text) && p.text[p.pos] == '(' {
				p.pos++
				v = p.recordMethodCall(v, dotted, p.parseArguments())
				dotted = ""
			}
		case rest[0] == '[':
			p.pos++
			index := p.parseBlock(']')
			if n, err := strconv.Atoi(index.Text); v.IsLiteral() && err == nil && n >= 0 && n < len(v.Text) && dotted == "" {
				v.Text = v.Text[n : n+1]
			} else {
				v = abstract.Unknown("[…]", v.Taint)
			}
		default:
			return v
		}
	}
	return v
}

// filePropertiesWithoutFolderPath are the properties of a file object that contain no folder.
var filePropertiesWithoutFolderPath = map[string]bool{"name": true, "basename": true, "extension": true, "length": true, "lastwritetime": true, "creationtime": true}

func (p *analyzer) parseArguments() []abstract.Value {
	var args []abstract.Value
	for p.pos < len(p.text) && !p.analysisContext.IsAnalysisAborted() {
		p.skipCharSetAndComments(" \t\r\n,")
		if p.pos >= len(p.text) || p.text[p.pos] == ')' {
			p.pos++
			break
		}
		start := p.pos
		v := p.parseConcatenation()
		v.SourceSpan = p.textSpanInCommand
		args = append(args, v)
		if p.pos == start {
			p.pos++
		}
	}
	p.pos = min(p.pos, len(p.text))
	return args
}

// parseConcatenation parses operands that are joined with +.
func (p *analyzer) parseConcatenation() abstract.Value {
	left := p.parseOperand()
	for {
		mark := p.pos
		p.skipCharSetAndComments(" \t")
		if p.pos >= len(p.text) || p.text[p.pos] != '+' {
			p.pos = mark
			return left
		}
		p.pos++
		p.skipCharSetAndComments(" \t\r\n")
		left = abstract.Concat(left, p.parseOperand())
	}
}

// recordMethodCall records the effects of a .NET method and returns its result.
func (p *analyzer) recordMethodCall(recv abstract.Value, name string, args []abstract.Value) abstract.Value {
	arg := func(i int) abstract.Value {
		if i < len(args) {
			return args[i]
		}
		return abstract.Value{}
	}
	one := arg(0)
	method := name[strings.LastIndexByte(name, '.')+1:]
	result := abstract.Unknown("."+method+"()", recv.Taint|one.Taint)
	if out, ok := p.recordNetworkOrFileMethodCall(method, name, result, args); ok {
		return out
	}
	switch method {
	case "frombase64string":
		if text, ok := decode.Base64(one.Text); ok && one.IsLiteral() {
			return abstract.Value{Text: text, Taint: one.Taint | abstract.TaintDecoded, SourceSpan: p.textSpanInCommand}
		}
		result.Taint |= abstract.TaintDecoded
	case "getstring":
		if one.IsLiteral() && strings.Contains(name, "unicode") {
			one.Text = decode.DecodeUTF16LE(one.Text)
		}
		one.Taint |= result.Taint
		return one
	case "replace":
		if recv.IsLiteral() && one.IsLiteral() && arg(1).IsLiteral() && one.Text != "" {
			recv.Text = strings.ReplaceAll(recv.Text, one.Text, arg(1).Text)
			return recv
		}
	case "tostring", "trim", "tolower", "toupper", "normalize", "readtoend", "invoke", "invokereturnasis", "toarray", "tochararray", "insert", "remove", "substring", "create", "getresponse", "getresponsestream":
		return p.evaluateReceiverMethodCall(recv, method, name, one)
	case "invokescript", "addscript", "newscriptblock":
		return p.walkEvaluatedCode(one)
	case "start":
		if strings.HasSuffix(name, "process.start") && len(args) > 0 {
			p.analysisContext.WalkWindowsCommand(append([]abstract.Value{one}, splitWords(arg(1))...), abstract.Streams{})
		}
	case "shellexecute", "exec", "run", "shell":
		p.analysisContext.WalkCode("cmd", abstract.JoinWithSpaces(args), "powershell", p.textSpanInCommand)
	case "kill", "terminate", "stopservice", "startservice", "changestartmode", "uninstall", "reboot", "shutdown", "win32shutdown", "put", "commitchanges":
		p.recordSystemChangingMethodCall(method)
	case "load", "loadfile", "loadfrom", "unsafeloadfrom":
		if strings.Contains(name, "assembly") {
			if t := one.Taint; t&(abstract.TaintNetwork|abstract.TaintDecoded) != 0 {
				p.analysisContext.WalkCode("code", abstract.Unknown("an assembly", t), "powershell", p.textSpanInCommand)
			} else {
				p.analysisContext.RecordUnknownEffect(effect.CauseUnanalysedCode, "loads an unknown .NET assembly", p.textSpanInCommand)
			}
		}
	case "getdelegateforfunctionpointer", "virtualalloc", "createthread", "getprocaddress", "writeprocessmemory":
		p.analysisContext.RecordUnknownEffect(effect.CauseUnanalysedCode, "runs machine code (P/Invoke or shellcode)", p.textSpanInCommand)
	case "setvalue", "setsecurityprotocol":
		if strings.Contains(strings.ToLower(p.text), "amsi") {
			p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangeSystem, Program: "powershell", Cause: effect.CauseScriptScanningDisabled, Reason: "disables AMSI script scanning", Span: p.textSpanInCommand})
		}
	case "setenvironmentvariable":
		if one.IsLiteral() {
			p.analysisContext.SetEnvironment(strings.ToUpper(one.Text), arg(1), p.textSpanInCommand)
		}
		if len(args) > 2 && !strings.HasSuffix(strings.ToLower(arg(2).Text), "process") {
			p.analysisContext.RecordEffect(effect.Effect{Kind: effect.Persist, Program: "powershell", Reason: "sets $" + abstract.ClipForMessage(one.String()) + " for every program of the user", Span: p.textSpanInCommand})
		}
	case "getfolderpath":
		name := strings.ToLower(one.Text)
		if folder, ok := specialFolders[name[strings.LastIndexByte(name, '.')+1:]]; ok {
			return abstract.Value{Text: folder, SourceSpan: p.textSpanInCommand}
		}
	case "moveto", "copyto":
		at, pattern := p.analysisContext.RecordPathEffect(effect.WriteFile, one, false)
		p.analysisContext.StoreFileContent(at, pattern, abstract.Unknown("a copy", recv.Taint))
	case "gettext", "getdataobject", "getimage", "getfiledroplist":
		if strings.Contains(name, "clipboard.") {
			p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ReadClipboard, Program: "powershell", Reason: "reads the clipboard", Span: p.textSpanInCommand})
		}
	case "getenvironmentvariables":
		return abstract.Unknown("the environment", abstract.TaintEnvironmentDump)
	case "getenvironmentvariable":
		return p.variableValue("env:" + one.Text)
	case "getnetworkcredential", "securestringtobstr", "securestringtoglobalallocunicode", "securestringtocotaskmemunicode":
		if result.Taint&abstract.TaintCredentialVariable != 0 { // a password is converted from a SecureString or a credential object to plain text
			p.recordRevealedPassword()
		}
	case "copyfromscreen":
		p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ReadClipboard, Program: "powershell", Reason: "takes a screenshot", Span: p.textSpanInCommand})
	case "getstream", "new":
		if strings.Contains(name, "tcpclient") || method == "getstream" {
			p.recordConnection(one)
		}
	default:
		for _, a := range args {
			if plain.IsURL(a.Text) {
				p.analysisContext.RecordURLContact(effect.HTTPRequest, a)
			} else if isRootOrHomePath(a) {
				p.analysisContext.RecordPathEffect(effect.ReadFile, a, false)
				p.analysisContext.RecordPathEffect(effect.WriteFile, a, false) // the method is unlisted, so it may also write the file
			}
		}
	}
	return result
}

// isRootOrHomePath reports whether a value is a path that begins with / and has at least one folder, such as
// /etc/hosts, or a path below the home folder (~/). It returns false for a fully unknown value and for text with
// spaces.
func isRootOrHomePath(v abstract.Value) bool {
	return !v.FullyUnknown && len(v.Text) > 2 && (v.Text[0] == '/' && strings.IndexByte(v.Text[1:], '/') > 0 || strings.HasPrefix(v.Text, "~/")) && !strings.ContainsAny(v.Text, " <>|\n")
}

// recordNetworkOrFileMethodCall records the effects of methods that move data; ok is false for all others.
func (p *analyzer) recordNetworkOrFileMethodCall(method, dottedName string, result abstract.Value, args []abstract.Value) (out abstract.Value, ok bool) {
	arg := func(i int) abstract.Value {
		if i < len(args) {
			return args[i]
		}
		return abstract.Value{}
	}
	one := arg(0)
	switch method {
	case "downloadstring", "downloaddata", "openread", "getstringasync", "getasync", "getbytearrayasync", "downloadstringtaskasync", "downloaddataasync":
		p.analysisContext.RecordURLContact(effect.HTTPRequest, one)
		return abstract.Unknown(abstract.ClipForMessage(method), abstract.TaintNetwork), true
	case "downloadfile", "downloadfileasync":
		p.analysisContext.RecordURLContact(effect.HTTPRequest, one)
		at, pattern := p.analysisContext.RecordPathEffect(effect.WriteFile, arg(1), false)
		p.analysisContext.StoreFileContent(at, pattern, abstract.Unknown("a download", abstract.TaintNetwork))
	case "uploadstring", "uploaddata", "uploadfile", "uploadvalues", "postasync":
		p.analysisContext.RecordURLContact(effect.HTTPRequest, one)
		last := arg(max(0, len(args)-1))
		if method == "uploadfile" {
			last = p.analysisContext.RecordFileRead(last)
		}
		p.analysisContext.RecordSentValue(last, "powershell", p.textSpanInCommand)
	case "readalltext", "readallbytes", "readalllines", "readlines", "openread.", "opentext":
		return p.analysisContext.RecordFileRead(one), true
	case "writealltext", "writeallbytes", "writealllines", "appendalltext", "create.":
		at, pattern := p.analysisContext.RecordPathEffect(effect.WriteFile, one, false)
		p.analysisContext.StoreFileContent(at, pattern, arg(1))
	case "delete":
		if strings.Contains(dottedName, "io.") {
			p.analysisContext.RecordPathEffect(effect.DeleteFile, one, len(args) > 1)
		} else {
			p.recordSystemChangingMethodCall(method)
		}
	case "copy", "move":
		if strings.Contains(dottedName, "io.") {
			content := p.analysisContext.RecordFileRead(one)
			at, pattern := p.analysisContext.RecordPathEffect(effect.WriteFile, arg(1), false)
			p.analysisContext.StoreFileContent(at, pattern, content)
		}
	default:
		return out, false
	}
	return result, true
}

// recordRevealedPassword records that a password is converted to plain text.
func (p *analyzer) recordRevealedPassword() {
	p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ReadSecret, Program: "powershell", Reason: "prints a password in plain text", Span: p.textSpanInCommand})
}

// recordSystemChangingMethodCall records the call of a method that changes an object of the system.
func (p *analyzer) recordSystemChangingMethodCall(method string) {
	p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangeSystem, Program: "powershell", Reason: "calls the method " + method + " of a system object", Span: p.textSpanInCommand})
}

// evaluateReceiverMethodCall handles methods that return or forward the value on which they are called, or run it.
func (p *analyzer) evaluateReceiverMethodCall(receiver abstract.Value, method, dottedName string, firstArg abstract.Value) abstract.Value {
	switch method {
	case "tolower":
		receiver.Text = strings.ToLower(receiver.Text)
	case "toupper":
		receiver.Text = strings.ToUpper(receiver.Text)
	case "create":
		if strings.Contains(dottedName, "scriptblock") {
			return p.walkEvaluatedCode(firstArg)
		}
		if strings.Contains(dottedName, "webrequest") {
			p.analysisContext.RecordURLContact(effect.HTTPRequest, firstArg)
			return abstract.Unknown("a download", abstract.TaintNetwork)
		}
	case "substring", "insert", "remove":
		return abstract.Unknown("."+method+"()", receiver.Taint)
	case "invoke", "invokereturnasis":
		if !receiver.IsLiteral() || receiver.Text != "" && !receiver.HasOnlyTaintsHarmlessToRun() {
			return p.walkEvaluatedCode(receiver)
		}
	}
	return receiver
}

func (p *analyzer) recordConnection(host abstract.Value) {
	p.scriptOpensTCPConnection = true
	e := effect.Effect{Kind: effect.Connect, Span: p.textSpanInCommand, PathIsPattern: true}
	if f := strings.Fields(strings.ReplaceAll(host.Text, ",", " ")); host.IsLiteral() && len(f) > 0 {
		e.Host, e.PathIsPattern = effect.CanonicalHost(f[0]), false
	}
	p.analysisContext.RecordEffect(e)
}

// walkEvaluatedCode walks text that PowerShell evaluates.
func (p *analyzer) walkEvaluatedCode(v abstract.Value) abstract.Value {
	p.scriptEvaluatesTextOrStartsShell = true
	if v.IsLiteral() && v.Text == "" {
		return abstract.Value{}
	}
	return p.analysisContext.WalkCode("powershell", v, "Invoke-Expression", p.textSpanInCommand)
}

func splitWords(v abstract.Value) []abstract.Value {
	if !v.IsLiteral() {
		return []abstract.Value{v}
	}
	var out []abstract.Value
	for f := range strings.FieldsSeq(v.Text) {
		out = append(out, abstract.Value{Text: strings.Trim(f, `"'`), Taint: v.Taint, SourceSpan: v.SourceSpan})
		if len(out) == abstract.MaxExpandedWords {
			break
		}
	}
	return out
}
