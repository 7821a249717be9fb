// Package pwsh analyses PowerShell text. Control flow is ignored: every command and every call in the text counts
// as run.
package pwsh

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// An analyzer analyses one PowerShell text. It ignores control flow: it treats every command and
// every call as executed.
type analyzer struct {
	analysisContext        abstract.AnalysisContext
	text                   string
	pos                    int
	textSpanInCommand      effect.CommandTextSpan
	expressionNestingDepth int

	possibleMisparseReason string // why some text may have been parsed wrongly

	scriptOpensTCPConnection         bool // it opens a TCP connection
	scriptEvaluatesTextOrStartsShell bool // it evaluates text or starts a shell
}

// unknownScriptTextPlaceholder is the text of an unknown part of a script, in quoted strings and outside them.
const unknownScriptTextPlaceholder = "${" + abstract.UnknownPlaceholderVariable + "}"

// maxExpressionNesting is the maximum nesting of expressions.
const maxExpressionNesting = 100

// Interpret reports the effects of PowerShell text, and returns its output.
func Interpret(w abstract.AnalysisContext, text string, at effect.CommandTextSpan) abstract.Value {
	if len(text) > parse.MaxCommandBytes {
		w.RecordUnknownEffect(effect.CauseAnalysisLimitExceeded, "the command is longer than 64 KiB", at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	p := &analyzer{analysisContext: w, text: asciiQuotes.Replace(text), textSpanInCommand: at}
	out := p.parseBlock(0)
	if p.possibleMisparseReason != "" {
		w.RecordUnknownEffect(effect.CauseUnanalysedCode, "the PowerShell text cannot be read: "+p.possibleMisparseReason, at)
	}
	if p.scriptOpensTCPConnection && p.scriptEvaluatesTextOrStartsShell {
		w.RecordEffect(effect.Effect{Kind: effect.RemoteShell, Program: "powershell", Reason: "runs code from a network connection", Span: p.textSpanInCommand})
	}
	return out
}

// asciiQuotes replaces typographic quotes and dashes, which PowerShell reads as ASCII.
var asciiQuotes = strings.NewReplacer("\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'",
	"\u2013", "-", "\u2014", "-", "\u2015", "-")

func (p *analyzer) recordPossibleMisparse(reason string) {
	if p.possibleMisparseReason == "" {
		p.possibleMisparseReason = reason
	}
}

// skipUnparsedByte skips a byte that no rule parses.
func (p *analyzer) skipUnparsedByte() {
	if p.pos < len(p.text) && strings.IndexByte("\"'`<>$@{(", p.text[p.pos]) >= 0 {
		p.recordPossibleMisparse("a statement cannot begin with " + p.text[p.pos:p.pos+1])
	}
	p.pos++
}

// parseBlock walks statements up to a closing bracket.
func (p *analyzer) parseBlock(until byte) abstract.Value {
	out := abstract.Value{}
	for !p.analysisContext.IsAnalysisAborted() {
		p.skipCharSetAndComments(" \t\r\n;,")
		if p.pos >= len(p.text) {
			return out
		}
		if c := p.text[p.pos]; c == until {
			p.pos++
			return out
		}
		start := p.pos
		out = p.parsePipeline(until)
		if p.pos == start {
			p.skipUnparsedByte()
		}
	}
	return out
}

func (p *analyzer) skipCharSetAndComments(charSet string) {
	for p.pos < len(p.text) {
		switch {
		case strings.IndexByte(charSet, p.text[p.pos]) >= 0:
			p.pos++
		case p.text[p.pos] == '`' && p.pos+1 < len(p.text) && (p.text[p.pos+1] == '\n' || p.text[p.pos+1] == '\r'):
			p.pos += 2
		case strings.HasPrefix(p.text[p.pos:], "<#"):
			_, after, ended := strings.Cut(p.text[p.pos:], "#>")
			if !ended {
				p.recordPossibleMisparse("a comment does not end")
			}
			p.pos = len(p.text) - len(after)
		case p.text[p.pos] == '#':
			for p.pos < len(p.text) && p.text[p.pos] != '\n' {
				p.pos++
			}
		default:
			return
		}
	}
}

// parsePipeline walks the elements of a pipeline.
func (p *analyzer) parsePipeline(until byte) abstract.Value {
	if !p.analysisContext.SpendSteps(1) || p.expressionNestingDepth > maxExpressionNesting {
		p.analysisContext.AbortAnalysis("PowerShell text is too complex")
		return abstract.Value{}
	}
	p.expressionNestingDepth++
	defer func() { p.expressionNestingDepth-- }()
	out := abstract.Value{}
	for {
		p.skipCharSetAndComments(" \t\r\n")
		out = p.writeOutputToRedirections(p.parsePipelineElement(out, until))
		p.skipCharSetAndComments(" \t\r")
		if p.pos < len(p.text) && p.text[p.pos] == '|' && !strings.HasPrefix(p.text[p.pos:], "||") {
			p.pos++
			continue
		}
		if strings.HasPrefix(p.text[p.pos:], "||") || strings.HasPrefix(p.text[p.pos:], "&&") {
			p.pos += 2
		}
		return out
	}
}

// writeOutputToRedirections writes an element's output to the targets of its redirections.
func (p *analyzer) writeOutputToRedirections(out abstract.Value) abstract.Value {
	var io abstract.Streams
	found := false
	for !p.analysisContext.IsAnalysisAborted() {
		mark := p.pos
		p.skipCharSetAndComments(" \t")
		if !p.atRedirection() {
			p.pos = mark
			break
		}
		p.parseRedirection(&io)
		found = true
	}
	if !found {
		return out
	}
	return p.analysisContext.DeliverOutput(io, out)
}

// parsePipelineElement walks one command or expression.
func (p *analyzer) parsePipelineElement(pipelineInput abstract.Value, until byte) abstract.Value {
	if p.pos >= len(p.text) {
		return abstract.Value{}
	}
	start := p.pos
	switch c := p.text[p.pos]; {
	case c == '&' || c == '.' && p.pos+1 < len(p.text) && strings.IndexByte(" \t('\"$", p.text[p.pos+1]) >= 0:
		p.pos++
		p.skipCharSetAndComments(" \t&")
		name := p.parseArgument()
		if c == '.' && name.IsLiteral() && name.Text == profileScript {
			return abstract.Value{}
		}
		if c == '.' && name.FullyUnknown {
			// It is not known which script is loaded. A dot-sourced script runs in the current script and can
			// change its state.
			p.analysisContext.RecordUnknownEffect(effect.CauseOtherUnresolvedCommandText, "loads a script that the command does not name: "+name.Display, p.textSpanInCommand)
		}
		if c == '&' && name.FullyUnknown && p.atStatementEnd() && !strings.HasPrefix(strings.ToLower(name.Display), "$env:") {
			// Without arguments, & may run an unknown script or script block.
			p.analysisContext.RecordUnknownEffect(effect.CauseOtherUnresolvedCommandText, "runs code that the command does not name: "+name.Display, p.textSpanInCommand)
		}
		return p.walkCommand(name, pipelineInput)
	case strings.HasPrefix(p.text[p.pos:], unknownScriptTextPlaceholder): // the marker itself is in the text
		return p.walkCommand(p.parseArgument(), pipelineInput)
	case c == '$' || c == '[' || c == '(' || c == '\'' || c == '"' || c == '@' || c == '{' || c >= '0' && c <= '9' || c == '!' || c == '-' || c == '+' || c == ',':
		v := p.parseExpression()
		p.skipCharSetAndComments(" \t")
		if p.parseAssignment(start, v) || p.parseLoopVariable(start) {
			return abstract.Value{}
		}
		if p.pos == start {
			p.pos++
		}
		return v
	case c == '}' || c == ')' || c == ']':
		p.pos++
		return abstract.Value{}
	}
	if p.skipErrorMessagePositionLine() {
		return abstract.Value{}
	}
	word := p.parseBareWord()
	lower := strings.ToLower(word)
	switch lower {
	case "class", "enum":
		if p.parseDeclaration(lower) {
			return abstract.Value{}
		}
	case "default":
		if p.blockFollows() {
			return abstract.Value{}
		}
	case "if", "elseif", "else", "while", "for", "foreach", "switch", "try", "catch", "finally", "do", "until", "function", "filter", "return", "throw", "param", "begin", "process", "end", "trap", "in", "exit", "break", "continue", "data", "using":
		if lower == "foreach" && pipelineInput.Text != "" || lower == "foreach" && pipelineInput.Taint != 0 {
			break
		}
		p.skipCharSetAndComments(" \t")
		if lower == "function" || lower == "filter" {
			p.parseBareWord()
		}
		return abstract.Value{}
	}
	if word == "" {
		p.skipUnparsedByte()
		return abstract.Value{}
	}
	return p.walkCommand(abstract.Value{Text: word, SourceSpan: p.textSpanInCommand}, pipelineInput)
}

// atStatementEnd reports whether a statement ends at the current position.
func (p *analyzer) atStatementEnd() bool {
	rest := strings.TrimLeft(p.text[p.pos:], " \t")
	return rest == "" || strings.IndexByte("\r\n;|)}", rest[0]) >= 0
}

// parseAssignment parses `= expr` after a variable that starts at start.
func (p *analyzer) parseAssignment(start int, v abstract.Value) bool {
	if p.pos >= len(p.text) || p.text[p.pos] != '=' && !strings.HasPrefix(p.text[p.pos:], "+=") || p.text[start] != '$' && p.text[start] != '[' {
		return false
	}
	name := strings.ToLower(strings.Trim(strings.TrimSpace(p.text[start:p.pos]), "${}"))
	add := p.text[p.pos] == '+'
	p.pos++
	if add {
		p.pos++
	}
	right := p.parsePipeline(0)
	if add {
		right = abstract.Concat(v, right)
	}
	if strings.HasSuffix(name, "servercertificatevalidationcallback") || strings.HasSuffix(name, "certificatepolicy") {
		p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangeSystem, Program: "powershell", Harms: []effect.Harm{effect.WeakensSecurityControls}, Reason: "disables TLS certificate checks", Span: p.textSpanInCommand})
	}
	p.analysisContext.SetVariable("ps:"+name, right)
	if env, ok := strings.CutPrefix(name, "env:"); ok {
		p.analysisContext.SetEnvironment(strings.ToUpper(env), right, p.textSpanInCommand)
	}
	return true
}

// parseLoopVariable parses `in pipeline` after the variable of a foreach loop, which starts at start.
func (p *analyzer) parseLoopVariable(start int) bool {
	word, rest, _ := strings.Cut(p.text[p.pos:], " ")
	if p.text[start] != '$' || !strings.EqualFold(word, "in") || rest == "" {
		return false
	}
	name := strings.ToLower(strings.Trim(strings.TrimSpace(p.text[start:p.pos]), "${}"))
	p.pos += len(word)
	v := p.parsePipeline(')')
	if _, set := p.analysisContext.LookupVariable("ps:" + name); set || !v.HasPathPerLine { // if the loop does not run, the variable keeps its earlier value
		v = abstract.UnsetVariableValue(name, v.Taint)
	}
	if automaticVariables[name] == "" {
		p.analysisContext.SetVariable("ps:"+name, v)
	}
	return true
}

// parseBareWord parses an unquoted word.
func (p *analyzer) parseBareWord() string {
	var b strings.Builder
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if c == '`' && p.pos+1 < len(p.text) {
			p.pos++
			b.WriteByte(p.text[p.pos])
			p.pos++
			continue
		}
		if strings.IndexByte(" \t\r\n;|()'\"{}$,&<>", c) >= 0 && !(b.Len() == 0 && (c == '$')) {
			break
		}
		b.WriteByte(c)
		p.pos++
	}
	return b.String()
}

// parseExpression parses operands and operators.
func (p *analyzer) parseExpression() abstract.Value {
	if !p.analysisContext.SpendSteps(1) || p.expressionNestingDepth > maxExpressionNesting {
		p.analysisContext.AbortAnalysis("PowerShell text is too complex")
		return abstract.Value{}
	}
	p.expressionNestingDepth++
	defer func() { p.expressionNestingDepth-- }()
	var list []abstract.Value
	left := p.parseOperand()
	for p.pos < len(p.text) {
		mark := p.pos
		p.skipCharSetAndComments(" \t")
		rest := p.text[p.pos:]
		switch {
		case strings.HasPrefix(rest, "+=") || rest == "":
			p.pos = mark
			return p.joinElementsWithSpaces(list, left)
		case rest[0] == '+':
			p.pos++
			p.skipCharSetAndComments(" \t\r\n")
			left = abstract.Concat(left, p.parseOperand())
		case rest[0] == ',':
			p.pos++
			p.skipCharSetAndComments(" \t\r\n")
			list = append(list, left)
			left = p.parseOperand()
			if len(list) > abstract.MaxExpandedWords {
				p.analysisContext.AbortAnalysis("a list in PowerShell text is too long")
			}
		case rest[0] == '-' && len(rest) > 2 && plain.IsWordByte(rest[1]):
			op, ok := p.parseOperator(rest)
			if !ok {
				p.pos = mark
				return p.joinElementsWithSpaces(list, left)
			}
			left = p.applyOperator(op, append(list, left))
			list = nil
		default:
			p.pos = mark
			return p.joinElementsWithSpaces(list, left)
		}
	}
	return p.joinElementsWithSpaces(list, left)
}

func (p *analyzer) joinElementsWithSpaces(earlierElements []abstract.Value, lastElement abstract.Value) abstract.Value {
	if len(earlierElements) == 0 {
		return lastElement
	}
	v := abstract.JoinWithSpaces(append(earlierElements, lastElement))
	return v
}

func (p *analyzer) parseOperator(rest string) (string, bool) {
	end := 1
	for end < len(rest) && plain.IsWordByte(rest[end]) {
		end++
	}
	op := strings.ToLower(rest[1:end])
	switch op {
	case "f", "join", "replace", "creplace", "ireplace", "split", "csplit", "bxor", "band", "bor", "as", "eq", "ne", "like", "match", "contains", "and", "or", "gt", "lt", "ge", "le", "notlike", "notmatch", "in", "is", "not", "ieq", "ine", "shl", "shr":
		p.pos += end
		p.skipCharSetAndComments(" \t\r\n")
		return op, true
	}
	return "", false
}

// applyOperator applies an operator to the values on its left.
func (p *analyzer) applyOperator(op string, left []abstract.Value) abstract.Value {
	right := p.parseOperand()
	args := []abstract.Value{right}
	for {
		mark := p.pos
		p.skipCharSetAndComments(" \t")
		if p.pos >= len(p.text) || p.text[p.pos] != ',' {
			p.pos = mark
			break
		}
		p.pos++
		p.skipCharSetAndComments(" \t\r\n")
		args = append(args, p.parseOperand())
		if len(args) > abstract.MaxExpandedWords {
			p.analysisContext.AbortAnalysis("a list in PowerShell text is too long")
			break
		}
	}
	first := left[0]
	switch op {
	case "f":
		return applyFormat(first, args)
	case "join":
		if right.IsLiteral() {
			var b abstract.Builder
			for i, v := range left {
				if i > 0 {
					b.AddLiteral(right.Text)
				}
				b.Add(v)
			}
			if len(left) == 1 && first.IsLiteral() && right.Text == "" {
				return abstract.Lit(strings.ReplaceAll(first.Text, " ", ""))
			}
			return b.Value()
		}
	case "replace", "creplace", "ireplace":
		if first.IsLiteral() && right.IsLiteral() {
			with := ""
			if len(args) > 1 {
				with = args[1].Text
			}
			first.Text = strings.ReplaceAll(first.Text, strings.TrimPrefix(right.Text, `\`), with)
			return first
		}
	case "split", "csplit":
		if first.IsLiteral() && right.IsLiteral() && right.Text != "" {
			first.Text = strings.ReplaceAll(first.Text, right.Text, " ")
			return first
		}
	}
	return abstract.Unknown("…", first.Taint|right.Taint)
}

// applyFormat computes "{1}{0}" -f "a","b".
func applyFormat(form abstract.Value, args []abstract.Value) abstract.Value {
	if !form.IsLiteral() {
		return abstract.Unknown("…", form.Taint)
	}
	var b abstract.Builder
	text := form.Text
	for i := 0; i < len(text); i++ {
		if text[i] == '{' && i+2 < len(text) && text[i+1] >= '0' && text[i+1] <= '9' {
			end := strings.IndexByte(text[i:], '}')
			n := 0
			for j := i + 1; j < len(text) && text[j] >= '0' && text[j] <= '9' && n < 1000; j++ {
				n = n*10 + int(text[j]-'0')
			}
			if end > 0 && n < len(args) {
				b.Add(args[n])
				i += end
				continue
			}
		}
		b.AddLiteral(text[i : i+1])
	}
	return b.Value()
}

// parseString parses a quoted string.
func (p *analyzer) parseString() abstract.Value {
	q := p.text[p.pos]
	p.pos++
	var b abstract.Builder
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		switch {
		case c == q:
			if p.pos+1 < len(p.text) && p.text[p.pos+1] == q {
				b.AddLiteral(string(q))
				p.pos += 2
				continue
			}
			p.pos++
			v := b.Value()
			v.SourceSpan, v.IsSingleWord = p.textSpanInCommand, true
			return v
		case q == '"' && p.parseExpansion(&b):
		case strings.HasPrefix(p.text[p.pos:], unknownScriptTextPlaceholder):
			b.Add(p.parseVariable())
		default:
			b.AddLiteral(p.text[p.pos : p.pos+1])
			p.pos++
		}
	}
	p.recordPossibleMisparse("a string does not end")
	v := b.Value()
	v.SourceSpan = p.textSpanInCommand
	return v
}

// parseVariable parses $name, ${name} or $env:name.
func (p *analyzer) parseVariable() abstract.Value {
	p.pos++
	start := p.pos
	if p.pos < len(p.text) && p.text[p.pos] == '{' {
		end := strings.IndexByte(p.text[p.pos:], '}')
		if end < 0 {
			end = len(p.text) - p.pos - 1
		}
		p.pos += end + 1
		return p.variableValue(strings.Trim(p.text[start:p.pos], "{}"))
	}
	for p.pos < len(p.text) && (plain.IsWordByte(p.text[p.pos]) || p.text[p.pos] == ':' && p.pos+1 < len(p.text) && plain.IsWordByte(p.text[p.pos+1])) {
		p.pos++
	}
	if p.pos == start && p.pos < len(p.text) && strings.IndexByte("?$^", p.text[p.pos]) >= 0 {
		p.pos++
	}
	return p.variableValue(p.text[start:p.pos])
}

func (p *analyzer) variableValue(name string) abstract.Value {
	lower := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(name, "script:"), "global:"))
	if v, ok := p.analysisContext.LookupVariable("ps:" + lower); ok {
		v.SourceSpan = p.textSpanInCommand
		return v
	}
	env, isEnv := strings.CutPrefix(lower, "env:")
	switch lower {
	case "pid":
		v := abstract.UnknownTextWithoutSlash("$PID", abstract.OriginUnsetVariable)
		v.SourceSpan = p.textSpanInCommand
		return v
	case "true", "false", "null":
		return abstract.Value{Text: "$" + lower, SourceSpan: p.textSpanInCommand}
	case "env:temp", "env:tmp", "env:appdata", "env:localappdata", "env:programdata", "env:systemroot", "env:windir", "env:public":
		return abstract.Value{Text: "%" + strings.ToUpper(env) + "%", SourceSpan: p.textSpanInCommand}
	}
	if text, ok := automaticVariables[lower]; ok {
		return abstract.Value{Text: text, SourceSpan: p.textSpanInCommand}
	}
	v := abstract.UnsetVariableValue(name, 0)
	if isEnv && knowledge.IsSecretVariableName(env) {
		v.Taint, v.SecretDescription = abstract.TaintCredentialVariable, "$"+name
	}
	v.SourceSpan = p.textSpanInCommand
	return v
}

// profileScript is the script that PowerShell runs at startup.
const profileScript = "~/Documents/PowerShell/Microsoft.PowerShell_profile.ps1"

// automaticVariables are the variables that PowerShell sets itself.
var automaticVariables = map[string]string{
	"home": "~", "env:userprofile": "~", "env:home": "~", "pwd": ".", "profile": profileScript,
	"env:comspec": "cmd.exe", "shellid": "Microsoft.PowerShell", "pshome": `C:\Windows\System32\WindowsPowerShell\v1.0`,
	"env:programfiles": `C:\Program Files`, "env:systemdrive": "C:",
}

// specialFolders maps .NET's names of special folders to paths.
var specialFolders = map[string]string{
	"startup":       "~/AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Startup",
	"commonstartup": `C:\ProgramData\Microsoft\Windows\Start Menu\Programs\StartUp`,
	"userprofile":   "~", "personal": "~/Documents", "mydocuments": "~/Documents", "desktop": "~/Desktop", "desktopdirectory": "~/Desktop",
	"applicationdata": "~/AppData/Roaming", "localapplicationdata": "~/AppData/Local", "commonapplicationdata": `C:\ProgramData`,
	"system": `C:\Windows\System32`, "windows": `C:\Windows`, "programfiles": `C:\Program Files`,
}
