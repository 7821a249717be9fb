package script

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

func (p *script) isNextPunctuation(text string) bool {
	return p.pos < len(p.tokens) && p.tokens[p.pos].kind == punctToken && p.tokens[p.pos].text == text
}

// parseExpression parses an expression and records its assignments.
func (p *script) parseExpression() operand {
	if p.expressionNestingDepth > maxExpressionNesting || !p.analysisContext.SpendSteps(1) {
		p.analysisContext.AbortAnalysis("the code is nested too deeply")
		return operand{}
	}
	p.expressionNestingDepth++
	defer func() { p.expressionNestingDepth-- }()
	left := p.parseOperand()
	for p.pos < len(p.tokens) && !p.analysisContext.IsAnalysisAborted() {
		t := p.tokens[p.pos]
		switch {
		case t.kind == stringToken && left.IsLiteral() && left.Text != "" && left.dottedName == "" && !t.hasNewlineBefore && p.language != "perl":
			left.Value = abstract.Concat(left.Value, p.parseOperand().Value) // adjacent strings
		case t.text == "$" && t.kind == punctToken && p.language == "awk" || p.awkConcatenatesNext(left):
			left = operand{Value: abstract.Concat(left.Value, p.parseOperand().Value)}
		case t.text == "/" && t.kind == punctToken && p.language == "python" && isPathJoinLeftOperand(left):
			p.pos++
			left, _ = joinPath([]operand{left, p.parseOperand()})
		case t.kind == nameToken && t.text == "as" && p.language == "python" && !t.hasNewlineBefore:
			p.bindPythonWithVariable(left)
			return left
		case t.kind != punctToken:
			return left
		case t.text == "+" || t.text == "." || t.text == ".." || t.text == "<<" && p.language == "ruby":
			p.pos++
			right := p.computeTextOrListRepetition(p.parseOperand())
			left = p.abortIfListTooLong(operand{
				Value: abstract.Concat(left.Value, right.Value), elements: append(left.elements[:len(left.elements):len(left.elements)], right.elements...),
				isList: left.isList, nestedListElementCount: left.nestedListElementCount + right.nestedListElementCount,
			})
		case t.text == "=" || t.text == "+=" || t.text == ".=":
			left = p.parseAssignment(left, t.text)
		case t.text == "*":
			left = p.computeTextOrListRepetition(left)
		case t.text == "%":
			p.pos++
			right := p.parseOperand()
			left = operand{Value: applyFormat(left, right)}
		case t.text == "|" && p.language == "awk":
			left = p.walkAwkPipe(left)
		case t.text == ">" && p.language == "awk" || t.text == ">>" && p.language == "awk":
			p.pos++
			compares := p.pos < len(p.tokens) && p.tokens[p.pos].kind == numberToken
			if o := p.parseOperand(); o.IsLiteral() && o.dottedName == "" && !compares {
				p.writeFile(o.Value, left.Value)
			}
		case t.text == "<" && p.language == "awk":
			p.pos++
			if o := p.parseOperand(); o.IsLiteral() && o.dottedName == "" && !strings.HasPrefix(o.Text, "/inet") {
				p.readFile(o.Value)
			}
		case strings.Contains("==&&||<>-//?:&|^=>", t.text) && t.text != "=":
			p.pos++
			p.recordEffectsUnlessUsedByCall(left)
			right := p.parseExpression()
			if t.text == "||" || t.text == ":" || t.text == "?" {
				left = right
				break
			}
			left = operand{Value: abstract.Unknown("…", left.Taint|right.Taint), isUsedByCall: true}
		default:
			return left
		}
	}
	return left
}

// bindPythonWithVariable binds the name after "as" in a with statement.
func (p *script) bindPythonWithVariable(v operand) {
	if p.pos+1 < len(p.tokens) && p.tokens[p.pos+1].kind == nameToken && len(p.vars) < 1024 {
		p.pos += 2
		p.recordEffectsUnlessUsedByCall(v)
		v.isUsedByCall = true
		p.vars[p.tokens[p.pos-1].text] = v
	}
}

// isPathJoinLeftOperand reports whether the left operand of "/" is a path and not a number.
func isPathJoinLeftOperand(o operand) bool {
	_, err := strconv.ParseFloat(o.Text, 64)
	return o.IsLiteral() && o.dottedName == "" && !o.isList && o.Text != "" && err != nil
}

// computeTextOrListRepetition computes a repeated text, as "…" * 3 or 3 * "…".
func (p *script) computeTextOrListRepetition(left operand) operand {
	for p.isNextPunctuation("*") {
		p.pos++
		text, right := left, p.parseOperand()
		n, err := strconv.Atoi(right.Text)
		if err != nil {
			text = right
			n, err = strconv.Atoi(left.Text)
		}
		if err != nil || n < 0 || n > 4096 || n*len(text.Text) > 4096 || !text.IsLiteral() || text.dottedName != "" {
			left = operand{Value: abstract.Unknown("…", left.Taint|right.Taint), isUsedByCall: true}
			continue
		}
		text.Text = strings.Repeat(text.Text, n)
		left = text
	}
	return left
}

// applyFormat computes "…%s…" % x of Python and Ruby.
func applyFormat(form, arg operand) abstract.Value {
	args := arg.elements
	if !arg.isList {
		args = []operand{arg}
	}
	if !form.IsLiteral() || form.dottedName != "" {
		return abstract.Unknown("…", form.Taint|arg.Taint)
	}
	var b abstract.Builder
	rest := form.Text
	for _, a := range args {
		i := strings.Index(rest, "%s")
		if i < 0 {
			break
		}
		b.AddLiteral(rest[:i])
		b.Add(a.Value)
		rest = rest[i+2:]
	}
	b.AddLiteral(rest)
	return b.Value()
}

func (p *script) parseAssignment(left operand, op string) operand {
	p.pos++
	right := p.parseExpression()
	if left.dottedName != "" && len(p.vars) < 1024 {
		if op != "=" {
			if old, ok := p.vars[left.dottedName]; ok {
				right.Value = abstract.Concat(old.Value, right.Value)
			}
		}
		p.recordEffectsUnlessUsedByCall(right)
		right.isUsedByCall = true
		p.vars[left.dottedName] = right
	}
	return right
}

// parseOperand parses one operand with its calls, members and subscripts.
func (p *script) parseOperand() operand {
	if p.expressionNestingDepth > maxExpressionNesting {
		p.analysisContext.AbortAnalysis("the code is nested too deeply")
	}
	if p.pos >= len(p.tokens) || p.analysisContext.IsAnalysisAborted() {
		return operand{}
	}
	p.expressionNestingDepth++
	defer func() { p.expressionNestingDepth-- }()
	t := p.tokens[p.pos]
	p.pos++
	var o operand
	switch t.kind {
	case stringToken:
		o.Value = p.stringValue(&t)
	case shellCommandToken:
		p.walkShellText(p.stringValue(&t))
		o = operand{Value: abstract.Unknown("`…`", abstract.TaintUnknownText).WithOrigin(abstract.OriginCommandOutput), isUsedByCall: true}
	case numberToken:
		o.Value = abstract.Lit(t.text)
	case nameToken:
		if p.isKeyword(t.text) {
			return p.parseOperand()
		}
		o = p.valueOfName(t.text)
		if s, ok := p.callWithoutParentheses(o.dottedName); ok {
			return s
		}
	case punctToken:
		if t.text == "$" && p.language == "awk" { // a field of the input
			p.parseOperand()
			return operand{Value: abstract.Unknown("$…", p.analysisContext.Stdin().Taint|abstract.TaintUnknownText).WithOrigin(abstract.OriginStdin), isUsedByCall: true}
		}
		switch t.text {
		case "(", "[", "{":
			o = p.parseBracket(t.text)
		case "$":
			if p.language == "node" && p.pos < len(p.tokens) && p.tokens[p.pos].kind == stringToken && !p.tokens[p.pos].hasSpaceBefore { // $`…` of Bun and zx
				v := p.stringValue(&p.tokens[p.pos])
				p.pos++
				p.walkShellText(v)
				return operand{Value: abstract.Unknown("$`…`", abstract.TaintUnknownText).WithOrigin(abstract.OriginCommandOutput), isUsedByCall: true}
			}
			if p.language == "perl" && (p.isNextPunctuation("<") || p.isNextPunctuation(">")) { // a user ID variable of Perl: $< or $>
				p.pos++
			} else if p.pos < len(p.tokens) && (p.tokens[p.pos].kind != punctToken || p.tokens[p.pos].text == "(") {
				return p.parseOperand()
			}
			return operand{isUsedByCall: true}
		case "-", "!", "~", "\\", "@", "%", "&", "*", "<", ":":
			if p.pos < len(p.tokens) && (p.tokens[p.pos].kind != punctToken || p.tokens[p.pos].text == "(") {
				return p.parseOperand()
			}
			return operand{isUsedByCall: true}
		default:
			return operand{isUsedByCall: true}
		}
	}
	return p.parsePostfix(o)
}

// stringValue returns the value of a string, after evaluating the expressions in it.
func (p *script) stringValue(t *token) abstract.Value {
	if t.literalValue != nil {
		return *t.literalValue
	}
	var b abstract.Builder
	for i := range t.parts {
		one := &t.parts[i]
		if one.code == nil && !one.isInterpolatedExpression {
			b.AddLiteral(one.text)
			continue
		}
		v := p.evalExpressionInString(one)
		if !one.isInterpolatedExpression {
			continue
		}
		v.isUsedByCall = true
		if v.dottedName != "" || v.isList || !v.IsLiteral() {
			v.Value = abstract.Unknown(one.text, v.Taint|abstract.TaintUnknownText)
		}
		b.Add(v.Value)
	}
	return b.Value()
}

// evalExpressionInString evaluates an expression in a string and returns its value.
func (p *script) evalExpressionInString(part *stringPart) operand {
	tokens, i := p.tokens, p.pos
	defer func() { p.tokens, p.pos = tokens, i }()
	p.tokens, p.pos = part.code, 0
	if len(p.tokens) == 1 && p.usesSigils() && strings.HasPrefix(part.text, part.text[:1]+"{") && p.tokens[0].kind == nameToken {
		return p.valueOfName(part.text[:1] + p.tokens[0].text) // ${name}
	}
	v := p.parseExpression()
	if p.pos < len(p.tokens) {
		v = operand{Value: abstract.Unknown("…", v.Taint)}
		p.parseStatements("")
	}
	return v
}

// usesSigils reports whether variable names begin with a sigil such as $.
func (p *script) usesSigils() bool { return p.language == "perl" || p.language == "php" }

// isKeyword reports whether a name is a keyword that can stand before an operand, such as return,
// and not a variable. Ruby's print methods p and puts count as keywords.
func (p *script) isKeyword(name string) bool {
	switch name {
	case "for", "foreach":
		for i := p.pos; i < min(p.pos+8, len(p.tokens)) && p.tokens[i].text != "in" && p.tokens[i].text != "of"; i++ {
			if p.tokens[i].kind == nameToken {
				delete(p.vars, p.tokens[i].text) // the loop variable changes with each iteration
			}
		}
		return name == "for" || p.isKeyword("our")
	case "return", "if", "else", "while", "and", "or", "in":
		return true
	case "p", "puts":
		return p.language == "ruby" && !p.isNextPunctuation("=") && !p.isNextPunctuation(",") && !p.isNextPunctuation(")")
	case "await", "async", "yield", "try", "with":
		return p.language == "python" || p.language == "node" || p.language == "ruby"
	case "not", "raise", "assert", "as", "elsif", "unless", "then", "begin", "when", "BEGIN", "END":
		return p.language != "node" && (p.language != "python" || name == "not" || name == "raise" || name == "assert" || name == "as")
	case "new", "const", "let", "var", "throw", "case", "do":
		if name == "do" && p.pos < len(p.tokens) && p.tokens[p.pos].kind == stringToken { // Perl's do FILE
			return false
		}
		return p.language != "python" && p.language != "perl" || p.language == "perl" && (name == "do" || name == "new")
	case "my", "our", "use":
		return p.language != "python" && p.language != "node" && p.language != "ruby"
	case "local":
		return p.language == "perl" || p.language == "lua"
	}
	return false
}

// valueOfName returns a variable's value, else the name itself.
func (p *script) valueOfName(n string) operand {
	if full, ok := p.importedNameByLocalName[n]; ok {
		return operand{dottedName: full, Value: abstract.Unknown(n, 0)}
	}
	if v, ok := p.vars[n]; ok {
		if p.isNextPunctuation("=") || p.isNextPunctuation(".=") || p.isNextPunctuation("+=") {
			return operand{dottedName: n, Value: abstract.Unknown(n, v.Taint)}
		}
		return v
	}
	if choices := p.loopVariableValues(n); choices != nil && !p.isNextPunctuation("=") {
		return operand{Value: abstract.Unknown(n, 0), loopVariableValues: choices, isUsedByCall: true}
	}
	return operand{dottedName: n, Value: abstract.Unknown(n, 0)}
}

// recordLoopIterableTokens stores, for the variable of each loop, the code after "in" or "of" in
// loopIterableTokensByVariable: for x in …, for (const x of …). The code is nil if several loops have the
// variable.
func (p *script) recordLoopIterableTokens() {
	for i := 2; i < len(p.tokens); i++ {
		if in := p.tokens[i].text; p.tokens[i].kind != nameToken || in != "in" && in != "of" || !slices.Contains([]string{"for", "const", "let", "var"}, p.tokens[i-2].text) {
			continue
		}
		if p.loopIterableTokensByVariable == nil {
			p.loopIterableTokensByVariable = map[string][]token{}
		}
		name, code := p.tokens[i-1].text, p.tokens[i+1:]
		if _, again := p.loopIterableTokensByVariable[name]; again {
			code = nil
		}
		p.loopIterableTokensByVariable[name] = code
	}
}

// loopVariableValues returns the values of the variable of a loop over a list of literal strings, or over a variable with a list.
func (p *script) loopVariableValues(variableName string) (out []operand) {
	code := p.loopIterableTokensByVariable[variableName]
	switch {
	case len(code) == 0:
	case code[0].kind == nameToken:
		for _, e := range p.vars[code[0].text].elements {
			if e.IsLiteral() && e.dottedName == "" && !e.isList {
				out = append(out, operand{Value: e.Value})
			}
		}
	case code[0].text == "[" || code[0].text == "(":
		for i := 1; i+1 < len(code) && code[i].kind == stringToken && code[i].literalValue != nil; i += 2 {
			out = append(out, operand{Value: *code[i].literalValue})
			if code[i+1].text != "," {
				break
			}
		}
	}
	return out
}

// callWithoutParentheses parses the arguments of a call without parentheses, as in Perl and Ruby: system "ls", "-l".
func (p *script) callWithoutParentheses(n string) (operand, bool) {
	if n == "" || p.pos >= len(p.tokens) || p.tokens[p.pos].hasNewlineBefore {
		return operand{}, false
	}
	t := p.tokens[p.pos]
	if p.language == "python" || p.language == "node" && t.kind == nameToken {
		return operand{}, false
	}
	known := callEffectOf(n, p.language) != 0
	list := p.language == "ruby" && known && t.hasSpaceBefore && t.kind == punctToken && t.text == "["
	if t.kind == punctToken && !list || t.kind == numberToken && p.language != "perl" {
		return operand{}, false
	}
	if !t.hasSpaceBefore && !(known && (strings.HasPrefix(t.text, "$") || t.kind == stringToken || t.kind == shellCommandToken)) || !known && t.kind == nameToken {
		return operand{}, false
	}
	var args []operand
	for {
		args = append(args, p.parseExpression())
		if !p.isNextPunctuation(",") || len(args) > 64 {
			break
		}
		p.pos++
	}
	return p.recordCall(operand{dottedName: n}, args), true
}

// parseBracket parses the content of brackets: a list, or statements.
func (p *script) parseBracket(open string) operand {
	closing := ")"
	switch open {
	case "[":
		closing = "]"
	case "{":
		closing = "}"
	}
	o, mark := operand{isList: true, isBraced: open == "{"}, len(p.listElementStack)
	for p.pos < len(p.tokens) && !p.isNextPunctuation(closing) && !p.analysisContext.IsAnalysisAborted() {
		start := p.pos
		e := p.parseExpression()
		if p.pos == start {
			p.pos++
			continue
		}
		p.listElementStack = append(p.listElementStack, e)
		if p.isNextPunctuation("=>") || p.isNextPunctuation(":") || p.isNextPunctuation(",") || p.isNextPunctuation(";") {
			p.pos++
		}
		if len(p.listElementStack)-mark > 4096 {
			p.analysisContext.AbortAnalysis("a list in code is too long")
		}
	}
	p.pos++
	list := p.listElementStack[mark:]
	p.listElementStack = p.listElementStack[:mark]
	if open == "(" && len(list) > 0 && (len(list) == 1 || p.language == "node") { // the value of a comma expression is the last one
		return list[len(list)-1]
	}
	if len(list) > 0 {
		o.elements = slices.Clone(list)
	}
	for i := range list {
		o.Taint |= list[i].Taint
		o.nestedListElementCount += 1 + list[i].nestedListElementCount
	}
	return p.abortIfListTooLong(o)
}

// abortIfListTooLong returns a list, or gives up if it is too long.
func (p *script) abortIfListTooLong(o operand) operand {
	if o.nestedListElementCount > maxListSize {
		p.analysisContext.AbortAnalysis("a list in code is too long")
		return operand{}
	}
	return o
}

// parsePostfix parses member access, calls and subscripts.
func (p *script) parsePostfix(o operand) operand {
	for p.pos < len(p.tokens) && !p.analysisContext.IsAnalysisAborted() {
		t := p.tokens[p.pos]
		if p.language == "ruby" && strings.Contains(o.dottedName, ".") {
			if called, ok := p.callWithoutParentheses(o.dottedName); ok { // FileUtils.rm_rf "a"
				return called
			}
		}
		if t.kind != punctToken {
			return o
		}
		switch t.text {
		case "!":
			if p.language != "code" || p.pos+1 >= len(p.tokens) || p.tokens[p.pos+1].text != "(" || t.hasSpaceBefore {
				return o
			}
			p.pos++ // in Elixir and Julia, the name of a function can end with "!"
		case "{":
			if p.language != "perl" || o.dottedName != "$ENV" || t.hasSpaceBefore {
				return o
			}
			p.pos++
			o = p.parseSubscript(o, "}")
		case ".", "->", "::", ":":
			if p.pos+1 >= len(p.tokens) || p.tokens[p.pos+1].kind != nameToken || t.text == "." && t.hasSpaceBefore && (p.language == "php" || p.language == "perl") ||
				t.text == ":" && (p.language != "lua") || t.text == "." && strings.HasPrefix(p.tokens[p.pos+1].text, "$") {
				return o
			}
			member := p.tokens[p.pos+1].text
			p.pos += 2
			o = p.resolveMember(o, member)
		case "(":
			if t.hasNewlineBefore && p.language != "node" {
				return o
			}
			p.pos++
			args := p.parseBracket("(argument")
			o = p.recordCall(o, args.elements)
		case "[":
			if t.hasNewlineBefore {
				return o
			}
			p.pos++
			o = p.parseSubscript(o, "]")
		default:
			return o
		}
	}
	return o
}

// resolveMember returns the value of o.member if it is known, as for an assigned member, an environment variable
// or the home folder; else an operand whose dottedName ends in the name of the member.
func (p *script) resolveMember(o operand, member string) operand {
	if o.dottedName != "" {
		out := o
		out.dottedName = o.dottedName + "." + member
		if bound, ok := p.vars[out.dottedName]; ok {
			return bound
		}
		switch {
		case p.isNextPunctuation("=") || p.isNextPunctuation("(") || p.isNextPunctuation("!"):
		case p.language == "node" && isEnvironmentTable(o.dottedName):
			return p.environmentValue(member)
		case isHomeFolderAccessor(out.dottedName):
			return homeFolder()
		}
		return out
	}
	recv := o
	if p.language == "ruby" && p.isMethodCallWithoutArguments() {
		if v, ok := p.computeMethodCallResult(member, recv, nil); ok {
			return v
		}
	}
	return operand{dottedName: "." + member, Value: recv.Value, elements: recv.elements, loopVariableValues: recv.loopVariableValues, isList: recv.isList, nestedListElementCount: recv.nestedListElementCount, isArchive: recv.isArchive}
}

// isMethodCallWithoutArguments reports whether a method is called without arguments and parentheses.
func (p *script) isMethodCallWithoutArguments() bool {
	if p.pos >= len(p.tokens) || p.tokens[p.pos].hasNewlineBefore {
		return true
	}
	t := p.tokens[p.pos]
	return t.kind == punctToken && t.text != "(" && t.text != "=" && t.text != "["
}

func (p *script) parseSubscript(o operand, closing string) operand {
	start := p.pos
	index := operand{}
	for p.pos < len(p.tokens) && !p.isNextPunctuation(closing) {
		before := p.pos
		index = p.parseExpression()
		if p.pos == before {
			p.pos++
		}
	}
	raw := p.tokens[start:min(p.pos, len(p.tokens))]
	p.pos++
	if len(raw) >= 3 && raw[len(raw)-1].text == "1" && raw[len(raw)-2].text == "-" && o.IsLiteral() && o.dottedName == "" { // s[::-1]
		o.Text = decode.Reverse(o.Text)
		o.Taint |= abstract.TaintDecoded
		return o
	}
	if slices.ContainsFunc(environmentTableNames[:], func(end string) bool { return strings.HasSuffix(o.dottedName, end) }) {
		if closing == "}" && index.dottedName != "" { // in Perl's $ENV{NAME}, the bare word is the key
			return p.environmentValue(index.dottedName)
		}
		return p.environmentValue(index.Text)
	}
	if n, err := strconv.Atoi(index.Text); err == nil && o.isList && n >= 0 && n < len(o.elements) {
		return o.elements[n]
	}
	if o.dottedName != "" && index.IsLiteral() && index.Text != "" && index.dottedName == "" {
		if isHomeFolderAccessor(o.dottedName + "." + index.Text) {
			return homeFolder()
		}
		return operand{dottedName: o.dottedName + "." + index.Text, Value: o.Value} // child_process["exec"]
	}
	return operand{Value: abstract.Unknown("[…]", o.Taint|index.Taint), isUsedByCall: true}
}

// walkShellText walks shell text that the code runs.
func (p *script) walkShellText(v abstract.Value) {
	p.startsProgram = true
	v.SourceSpan = p.spanInAnalyzedText
	if !v.IsLiteral() {
		v.Taint |= abstract.TaintUnknownText // the code may have inserted parts of its input
	}
	if p.receivesFromSocket && !v.IsLiteral() {
		v.Taint |= abstract.TaintSocket
	}
	if v.IsLiteral() && v.HasOnlyTaintsHarmlessToRun() {
		p.analysisContext.WalkShellText(v.Text, p.spanInAnalyzedText)
		return
	}
	p.analysisContext.WalkCode("shell", v, p.language+" code", p.spanInAnalyzedText)
}

// walkArgvCommand walks a command that the code runs without a shell.
func (p *script) walkArgvCommand(list []operand) {
	p.startsProgram = true
	var words []abstract.Value
	for _, o := range list {
		if o.isList {
			for _, e := range o.elements {
				e.SourceSpan = p.spanInAnalyzedText
				words = append(words, e.Value)
			}
			continue
		}
		o.SourceSpan = p.spanInAnalyzedText
		words = append(words, o.Value)
	}
	if len(words) == 0 {
		return
	}
	p.analysisContext.WalkCommand(words)
}
