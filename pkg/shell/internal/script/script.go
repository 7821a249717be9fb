// Package script analyses code of Python, JavaScript, Perl, Ruby, PHP, Lua and awk, as far as its calls have
// literal arguments.
package script

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// A script is code in a language other than shell, being analysed. Calls are recognised by name and constant
// strings are computed. Control flow is ignored: all code counts as run.
type script struct {
	analysisContext              abstract.AnalysisContext
	language                     string
	text                         string
	spanInAnalyzedText           effect.CommandTextSpan
	tokens                       []token
	pos                          int
	listElementStack             []operand // elements of the lists that are being parsed
	expressionNestingDepth       int
	vars                         map[string]operand
	loopIterableTokensByVariable map[string][]token // loop variable → the code after "in"; nil if there are several loops
	importedNameByLocalName      map[string]string  // local name → module or module.function

	opensConnection, opensListener, startsProgram, duplicatesDescriptors, receivesFromSocket bool
	hasRecordedSocketBind                                                                    bool // the listener of Python's bind was reported, so listen reports no second one
	sendsData, readsFiles                                                                    bool
	sendsFileContents                                                                        bool           // the code sends file contents; false if it only reads files and sends other data
	taintOfReadData                                                                          abstract.Taint // taint of the files and variables that were read
	descriptionOfReadSecret                                                                  string
}

// An operand is the value of an expression in code.
type operand struct {
	abstract.Value
	elements               []operand
	loopVariableValues     []operand // the values of a loop variable, whose own value is unknown
	dottedName             string    // dotted name, if it refers to a module, function or object
	isList                 bool
	isBraced               bool // a list in braces: a dictionary, an options object or a block
	nestedListElementCount int  // number of values in a list and the lists in it
	isUsedByCall           bool // the value needs no check as a path or URL: it is the result of a call or operation, or was checked when it was assigned
	isArchive              bool // the value is an archive that the code has opened; Value is its path
}

// maxExpressionNesting is the maximum nesting of expressions.
const maxExpressionNesting = 100

// maxListSize is the maximum number of values in a list and the lists in it: a = [a, a] doubles it.
const maxListSize = 1 << 14

// tokenPool reuses the memory for tokens between calls of [Interpret].
var tokenPool = sync.Pool{New: func() any { return new([]token) }}

// Interpret reports the effects of code in a language other than shell, and returns its output.
func Interpret(w abstract.AnalysisContext, language, text string, at effect.CommandTextSpan) abstract.Value {
	if language == "applescript" {
		walkAppleScript(w, text, at)
		return abstract.UnknownOutput("the script", 0)
	}
	p := &script{analysisContext: w, language: language, text: text, spanInAnalyzedText: at, vars: map[string]operand{}, importedNameByLocalName: map[string]string{}}
	if len(text) > parse.MaxCommandBytes || !w.SpendSteps(len(text)/256+1) {
		w.RecordUnknownEffect(effect.CauseAnalysisLimitExceeded, "the "+language+" code is too long", at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	room := tokenPool.Get().(*[]token)
	unread := ""
	p.tokens, unread = lexCode(language, text, (*room)[:0])
	if unread != "" {
		w.RecordUnknownEffect(effect.CauseUnanalysedCode, "the "+language+" code cannot be read: "+unread, at)
	}
	p.recordLoopIterableTokens()
	p.parseStatements("")
	p.recordGraphQLDeletions()
	clear(p.tokens)
	*room = p.tokens
	tokenPool.Put(room)
	if containsReverseShellCalls(text) {
		p.opensConnection, p.startsProgram = true, true
	}
	p.recordEffectsOfCallCombinations()
	return abstract.UnknownOutput(language+" code", p.taintOfReadData&(abstract.TaintReadCredentials|abstract.TaintEnvironmentDump|abstract.TaintCredentialVariable))
}

// parseStatements parses up to a closing bracket or the end.
func (p *script) parseStatements(until string) {
	for p.pos < len(p.tokens) && !p.analysisContext.IsAnalysisAborted() {
		t := p.tokens[p.pos]
		if until != "" && t.kind == punctToken && t.text == until {
			return
		}
		start := p.pos
		if t.kind == nameToken && (t.text == "import" || t.text == "from") && p.language == "python" {
			p.parsePythonImport()
		} else if t.kind == nameToken && (t.text == "import" || t.text == "export") && p.language == "node" {
			p.parseNodeImport()
			p.recordEffectsUnlessUsedByCall(p.parseExpression())
		} else {
			p.recordEffectsUnlessUsedByCall(p.parseExpression())
		}
		if p.pos == start {
			p.pos++
		}
	}
}

// recordEffectsUnlessUsedByCall records the access to the path or URL in a literal string, unless isUsedByCall
// is set. It does the same for each element of a list. It also records Ruby calls without parentheses that
// delete all rows of a table.
func (p *script) recordEffectsUnlessUsedByCall(o operand) {
	for _, e := range o.elements {
		p.recordEffectsUnlessUsedByCall(e)
	}
	if !o.isUsedByCall && p.language == "ruby" && callEffectOf(o.dottedName, p.language) == callEffectDeleteAllRows { // a call without parentheses
		p.recordDatabaseWipe(o.dottedName)
	}
	if o.isUsedByCall || o.dottedName != "" || !o.IsLiteral() {
		return
	}
	p.recordAccessToPathOrURLString(o.Value)
}

// recordAccessToPathOrURLString records a string that looks like an important path or a URL.
func (p *script) recordAccessToPathOrURLString(v abstract.Value) {
	text := v.Text
	switch {
	case len(text) < 4 || len(text) > 1024 || strings.ContainsAny(text, "\n<>{}"):
	case strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://"):
		if !strings.ContainsAny(text, " ") {
			v.SourceSpan = p.spanInAnalyzedText
			p.analysisContext.RecordURLContact(effect.HTTPRequest, v)
		}
	case strings.ContainsAny(text, " \t|"):
	case strings.HasPrefix(text, "~/") || strings.HasPrefix(text, "/") && strings.Count(text, "/") > 1 && text[1] != '/':
		v.SourceSpan = p.spanInAnalyzedText
		p.readFile(v)
	case strings.ContainsAny(text, "./_") && p.analysisContext.IsSecretPath("/"+text):
		v.SourceSpan = p.spanInAnalyzedText
		p.readFile(v)
	}
}

func (p *script) readFile(v abstract.Value) abstract.Value {
	v.SourceSpan = p.spanInAnalyzedText
	out := p.analysisContext.RecordFileRead(v)
	p.taintOfReadData |= out.Taint & (abstract.TaintReadCredentials | abstract.TaintNetwork | abstract.TaintDecoded | abstract.TaintLocalMachineData)
	if out.SecretDescription != "" {
		p.descriptionOfReadSecret = out.SecretDescription
	}
	p.readsFiles = true
	out.SourceSpan = p.spanInAnalyzedText
	return out
}

// recordEffectsOfCallCombinations records the effects that calls have only together: a shell that is connected
// to the network, and the sending of credentials or files that the code has read.
func (p *script) recordEffectsOfCallCombinations() {
	if p.opensConnection && (p.startsProgram || p.duplicatesDescriptors) || p.opensListener && p.duplicatesDescriptors {
		p.analysisContext.RecordEffect(effect.Effect{Kind: effect.RemoteShell, Program: p.language, Reason: p.language + " code connects a shell to the network", Span: p.spanInAnalyzedText})
	}
	leaves := abstract.TaintReadCredentials | abstract.TaintEnvironmentDump
	if p.sendsFileContents {
		leaves |= abstract.TaintLocalMachineData
	}
	if p.sendsData && p.taintOfReadData&leaves != 0 {
		p.analysisContext.RecordSentValue(abstract.Value{Taint: p.taintOfReadData & leaves, SecretDescription: p.descriptionOfReadSecret}, p.language, p.spanInAnalyzedText)
	}
}

// containsReverseShellCalls reports whether code, also of a compiled language, contains names of calls that open a connection and
// start a shell. Such calls have too many forms to be parsed.
func containsReverseShellCalls(text string) bool {
	contains := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	return contains("net.Dial", "Socket(", "TcpStream", "TCPSocket", "Socket.connect", "TcpClient", "socket(AF_INET", "tcp.connect", "gethostbyname") &&
		contains("exec.Command", "ProcessBuilder", "getRuntime", "Process.start", "Command::new", "Process.run", "process.new", "execve", "execl(", "Process.Start") &&
		contains("/sh", "sh\"", "sh'", "cmd.exe", "powershell", "\"cmd")
}

// parseNodeImport checks the module that an import or export statement names.
func (p *script) parseNodeImport() {
	export := p.tokens[p.pos].text == "export"
	depth := 0
	for i := p.pos + 1; i < len(p.tokens); i++ {
		if i-p.pos > maxImportTokens {
			p.analysisContext.RecordUnknownEffect(effect.CauseAnalysisLimitExceeded, "a statement is too long for shield to find the module that it loads", p.spanInAnalyzedText)
			return
		}
		switch t := p.tokens[i]; {
		case t.kind == stringToken && depth > 0: // a quoted name, as in {"a-b" as c}
		case t.kind == stringToken:
			module := p.stringValue(&t)
			if _, host := effect.NormalizeURL(module.Text); module.IsLiteral() && !jsModuleRegistryHosts[host] {
				p.walkLoadedCodeFile("import", module)
			}
			return
		case export && i == p.pos+1 && t.text != "*" && t.text != "{" && t.text != "type":
			return // a declaration
		case t.text == "{":
			depth++
		case t.text == "}":
			depth--
			if export && (i+1 == len(p.tokens) || p.tokens[i+1].text != "from") {
				return
			}
		case t.text == "(" || t.text == ";" || t.text == "." || t.text == "=":
			return // a call of import()
		}
	}
}

// maxImportTokens is the maximum number of tokens of one import statement that are read.
const maxImportTokens = 1024

// jsModuleRegistryHosts are hosts that serve only modules of registries.
var jsModuleRegistryHosts = map[string]bool{"deno.land": true, "esm.sh": true, "jsr.io": true, "cdn.skypack.dev": true, "esm.run": true, "unpkg.com": true}

// parsePythonImport parses `import a.b as c, d` and `from a import b as c`.
func (p *script) parsePythonImport() {
	from := ""
	if p.tokens[p.pos].text == "from" {
		p.pos++
		from = p.parseDottedName()
		if p.pos < len(p.tokens) && p.tokens[p.pos].text == "import" {
			p.pos++
		}
		from += "."
	} else {
		p.pos++
	}
	for p.pos < len(p.tokens) {
		if p.tokens[p.pos].text == "(" {
			p.pos++
			continue
		}
		full := p.parseDottedName()
		if full == "" {
			return
		}
		local := full
		if p.pos+1 < len(p.tokens) && p.tokens[p.pos].text == "as" {
			local = p.tokens[p.pos+1].text
			p.pos += 2
		}
		if from != "" || local != full {
			p.importedNameByLocalName[local] = from + full
		}
		if p.pos >= len(p.tokens) || p.tokens[p.pos].text != "," {
			return
		}
		p.pos++
	}
}

func (p *script) parseDottedName() string {
	var b strings.Builder
	for p.pos < len(p.tokens) {
		t := p.tokens[p.pos]
		if t.kind != nameToken && t.text != "." || t.kind == nameToken && (t.text == "import" || t.text == "as") {
			break
		}
		if t.kind == nameToken && b.Len() > 0 && !strings.HasSuffix(b.String(), ".") {
			break
		}
		b.WriteString(t.text)
		p.pos++
	}
	return b.String()
}

// appleScriptDeletePattern matches AppleScript commands that delete files through an application.
var appleScriptDeletePattern = prefilter.LazyRegexp(`\bdelete\s+(?:every|all|the|entire|(?:posix )?files?|folders?|disks?|items?|alias|contents|home|desktop|startup|\()|\bempty (?:the )?trash\b|\bto (?:the )?trash\b`)

// walkAppleScript walks the shell scripts in AppleScript, and records password prompts, keystrokes, uses of the clipboard
// and deletions.
func walkAppleScript(w abstract.AnalysisContext, text string, at effect.CommandTextSpan) {
	lower := strings.ToLower(text)
	if strings.Contains(lower, "hidden answer") || strings.Contains(lower, "keystroke") || strings.Contains(lower, "the clipboard") {
		w.RecordEffect(effect.Effect{Kind: effect.ReadClipboard, Program: "osascript", Reason: "asks for a password, types keys or reads the clipboard (AppleScript)", Span: at})
	}
	if strings.Contains(lower, "administrator privileges") {
		w.RecordEffect(effect.Effect{Kind: effect.ChangePrivilege, Program: "osascript", Span: at})
	}
	if (strings.Contains(lower, "finder") || strings.Contains(lower, "system events")) && appleScriptDeletePattern().MatchString(lower) {
		v := abstract.Unknown("what an application deletes", 0)
		v.SourceSpan = at
		w.RecordPathEffect(effect.DeleteFile, v, true)
	}
	for n, found := range doShellScriptPattern().FindAllStringIndex(text, maxShellScriptsInAppleScript+1) {
		code, isKnown := appleScriptTextExpression(text[found[1]:])
		if !isKnown || n == maxShellScriptsInAppleScript {
			w.RecordUnknownEffect(effect.CauseOtherUnresolvedCommandText, "AppleScript runs unknown shell text", at)
		}
		if code != "" {
			w.WalkShellText(code, at)
		}
	}
}

// doShellScriptPattern matches the command of AppleScript that runs a shell script. ¬ continues a line.
var doShellScriptPattern = prefilter.LazyRegexp(`(?i)\bdo[\s¬]+shell[\s¬]+script\b`)

// maxShellScriptsInAppleScript is how many shell scripts in an AppleScript are walked.
const maxShellScriptsInAppleScript = 32

// appleScriptTextExpression returns the text of an expression at the beginning of code: literal texts that & joins.
// isKnown is false if a part of it is not a literal; then the text is that before this part.
func appleScriptTextExpression(code string) (text string, isKnown bool) {
	parentheses := 0
	for {
		for code != "" && strings.ContainsRune(" \t\r\n¬(", firstRune(code)) {
			if code[0] == '(' {
				parentheses++
			}
			code = code[len(string(firstRune(code))):]
		}
		if !strings.HasPrefix(code, `"`) {
			return text, false
		}
		l := &lexer{grammar: grammars["applescript"], text: code}
		l.lexNext()
		if l.possibleMisparseReason != "" {
			return text, false
		}
		text += l.tokens[0].literalValue.Text
		for code = code[l.pos:]; code != "" && strings.ContainsRune(" \t¬)", firstRune(code)); code = code[len(string(firstRune(code))):] {
			if code[0] == ')' {
				if parentheses--; parentheses < 0 {
					return text, true
				}
			}
		}
		if !strings.HasPrefix(code, "&") {
			return text, true
		}
		code = code[1:]
	}
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}
