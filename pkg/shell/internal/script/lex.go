package script

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// A token is one lexical element of code.
type token struct {
	kind             tokenKind
	text             string
	literalValue     *abstract.Value // value of a string or command without expressions; nil for other tokens
	parts            []stringPart    // parts of a string or command with expressions
	hasSpaceBefore   bool            // white space precedes it
	hasNewlineBefore bool            // a line break precedes the token
}

// A stringPart of a string is text or an expression.
type stringPart struct {
	text                     string // for an expression: its source text
	code                     []token
	isInterpolatedExpression bool
}

type tokenKind uint8

const (
	punctToken tokenKind = iota
	nameToken
	numberToken
	stringToken
	shellCommandToken // `…`, %x(…), qx(…): text that a shell runs
)

// A grammar describes the strings, comments and regular expressions of a language.
type grammar struct {
	lineComment                string // start of a comment that extends to the line's end
	hasBlockComments           bool   // has comments in /* */
	quotes                     string // characters that begin a string
	rawQuotes                  string // quotes of strings without escapes and expressions
	interpolatingQuotes        string // quotes of strings with interpolated expressions
	backquoteRunsShell         bool   // a backquoted text is a command
	multilineStrings           bool   // quoted strings may contain line breaks
	hasTripleQuotes            bool   // """ and ''' begin strings
	sigils                     string // characters that begin a variable's name
	hasRegexpLiterals          bool   // /…/ is a regular expression where a value is expected
	newlineEndsStatement       bool   // a line break after a value ends the statement
	heredocStart               string // start of a here-document
	wordsBeforeOperand         string // words after which a value is expected
	ambiguousQuotes            string // quotes that also have other meanings, and so need not be closed
	hashSignMayStartNonComment bool   // "#[" and preprocessor directives are not comments
}

// Words after which a value follows, in languages with regular expression literals.
const (
	commonWordsBeforeOperand = " return if unless while until and or not when in case elsif else then do puts p print "
	nodeWordsBeforeOperand   = " return typeof case in of delete void throw new else do instanceof default extends "
	perlWordsBeforeOperand   = " warn printf sprintf STDERR STDOUT system exec eval confess croak return if unless while until and or not elsif else split grep map join push unshift print say x lt gt le ge eq ne cmp die when "
)

var grammars = map[string]*grammar{
	"python": {lineComment: "#", quotes: `"'`, hasTripleQuotes: true},
	"node":   {lineComment: "//", hasBlockComments: true, quotes: "\"'`", interpolatingQuotes: "`", hasRegexpLiterals: true, wordsBeforeOperand: nodeWordsBeforeOperand},
	"ruby": {lineComment: "#", quotes: "\"'`", rawQuotes: "'", interpolatingQuotes: "\"`", backquoteRunsShell: true, multilineStrings: true, sigils: "$@", hasRegexpLiterals: true, newlineEndsStatement: true, heredocStart: "<<",
		wordsBeforeOperand: commonWordsBeforeOperand},
	"perl":        {lineComment: "#", quotes: "\"'`", rawQuotes: "'", interpolatingQuotes: "\"`", backquoteRunsShell: true, multilineStrings: true, sigils: "$@", hasRegexpLiterals: true, heredocStart: "<<", wordsBeforeOperand: perlWordsBeforeOperand},
	"php":         {lineComment: "#", hasBlockComments: true, quotes: "\"'`", rawQuotes: "'", interpolatingQuotes: "\"`", backquoteRunsShell: true, multilineStrings: true, sigils: "$", heredocStart: "<<<", hashSignMayStartNonComment: true},
	"lua":         {lineComment: "--", quotes: `"'`},
	"awk":         {lineComment: "#", quotes: `"`, hasRegexpLiterals: true, newlineEndsStatement: true, wordsBeforeOperand: commonWordsBeforeOperand},
	"applescript": {lineComment: "--", quotes: `"`, multilineStrings: true},
	"code":        {lineComment: "#", quotes: "\"'`", rawQuotes: "`", interpolatingQuotes: `"`, multilineStrings: true, hasTripleQuotes: true, ambiguousQuotes: "'", hashSignMayStartNonComment: true},
}

// lexCode splits code into tokens, which it appends to tokenBuffer. It handles strings, regular expressions,
// here-documents and comments of Python, Perl, Ruby, JavaScript, PHP, Lua and awk well enough to find calls;
// other characters become punctuation. possibleMisparseReason says why later code may be split into wrong
// tokens; "" if there is no reason.
func lexCode(language, text string, tokenBuffer []token) (tokens []token, possibleMisparseReason string) {
	l := &lexer{language: language, text: text, tokens: tokenBuffer}
	if l.grammar = grammars[language]; l.grammar == nil {
		l.grammar = grammars["code"]
	}
	switch {
	case strings.HasPrefix(text, "#!") && (language == "node" || language == "lua"):
		l.pos = lineEnd(text, 0)
	case language == "php" && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "<"):
		l.skipPHPMarkup()
	case language == "php" && strings.HasPrefix(text, "#!"):
		l.skipPHPMarkup()
	}
	for l.skipDocBlocksAndDataSection(); l.pos < len(l.text); {
		l.lexNext()
	}
	l.lexHeredocBodies()
	return l.tokens, l.possibleMisparseReason
}

type lexer struct {
	language string
	*grammar
	text                   string
	pos                    int
	sawSpaceBeforeToken    bool
	sawNewlineBeforeToken  bool
	tokens                 []token
	possibleMisparseReason string        // why later code may be read wrongly
	interpolationDepth     int           // nesting of expressions in strings
	openBrackets           []bracketKind // stack of open brackets
	lastClosedBracket      bracketKind   // the bracket that the last token closed
	pendingHeredocs        []heredoc     // here-documents that begin after this line
}

// A bracketKind is the kind of an open bracket, by the token before it.
type bracketKind uint8

const (
	bracketKindPlain            bracketKind = iota
	bracketKindControlStatement             // parentheses behind if, while and the like
	bracketKindSubscript                    // a subscript or call of the value before it
)

// A heredoc is a here-document whose text begins after the current line.
type heredoc struct {
	tokenIndex                int
	endDelimiter              string
	canEndDelimiterBeIndented bool
	form                      stringForm
}

// A stringForm describes how a string is written.
type stringForm struct {
	closeDelimiter      string // closing delimiter; "" for the end of the text
	openDelimiter       byte   // opening delimiter, which can be nested
	hasBackslashEscapes bool   // a backslash escapes the next character
	keepsBackslashes    bool   // a backslash that escapes a character stays in the text
	interpolates        bool   // expressions are interpolated
	multiline           bool   // the string may contain line breaks
	isRegexp            bool
}

func (l *lexer) recordPossibleMisparse(reason string) {
	if l.possibleMisparseReason == "" {
		l.possibleMisparseReason = reason
	}
}

func (l *lexer) addToken(t token) {
	t.hasSpaceBefore, t.hasNewlineBefore = l.sawSpaceBeforeToken, l.sawNewlineBeforeToken
	l.sawSpaceBeforeToken, l.sawNewlineBeforeToken = false, false
	l.lastClosedBracket = bracketKindPlain
	if t.kind == punctToken {
		switch t.text {
		case "(", "[", "{":
			l.openBrackets = append(l.openBrackets, l.bracketKindOf(t))
		case ")", "]", "}":
			if n := len(l.openBrackets); n > 0 {
				l.lastClosedBracket, l.openBrackets = l.openBrackets[n-1], l.openBrackets[:n-1]
			}
		}
	}
	l.tokens = append(l.tokens, t)
}

// bracketKindOf returns the kind of an opening bracket.
func (l *lexer) bracketKindOf(t token) bracketKind {
	last := l.lastToken()
	switch {
	case last == nil:
	case t.text == "(" && last.kind == nameToken && strings.Contains(" if while for with until unless elsif foreach ", " "+last.text+" "):
		return bracketKindControlStatement
	case t.text == "{" && l.language == "perl" && !t.hasSpaceBefore && !t.hasNewlineBefore &&
		(last.kind == nameToken && l.isSigil(last.text[0]) || last.kind == punctToken && strings.Contains("$ @ % & $# -> ] }", last.text)):
		return bracketKindSubscript
	}
	return bracketKindPlain
}

func (l *lexer) lastToken() *token {
	if len(l.tokens) == 0 {
		return nil
	}
	return &l.tokens[len(l.tokens)-1]
}

func (l *lexer) isSigil(c byte) bool { return strings.IndexByte(l.sigils, c) >= 0 }

func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

func (l *lexer) lexNext() {
	c := l.text[l.pos]
	rest := l.text[l.pos:]
	switch {
	case c == '\n':
		l.sawNewlineBeforeToken, l.sawSpaceBeforeToken = true, true
		l.pos++
		l.lexHeredocBodies()
		l.skipDocBlocksAndDataSection()
	case c == ' ' || c == '\t' || c == '\r':
		l.sawSpaceBeforeToken = true
		l.pos++
	case l.language == "lua" && l.lexLongBracket(rest):
	case l.skipLineComment(rest):
	case l.hasBlockComments && strings.HasPrefix(rest, "/*"):
		n := strings.Index(rest[2:], "*/")
		if n < 0 {
			l.recordPossibleMisparse("a comment does not end")
			n = len(rest)
		}
		l.pos = min(len(l.text), l.pos+n+4)
	case l.language == "php" && strings.HasPrefix(rest, "?>"):
		l.skipPHPMarkup()
	case l.isSigil(c) && len(rest) > 1 && plain.IsWordByte(rest[1]) || plain.IsWordByte(c):
		l.lexWord(rest)
	case l.lexPunctuationVariable(rest):
	case l.heredocStart != "" && strings.HasPrefix(rest, l.heredocStart) && l.lexHeredocStart(rest):
	case strings.IndexByte(l.quotes, c) >= 0:
		l.lexQuoted(rest, false, false)
	case c == '/' && l.hasRegexpLiterals && l.lexRegexp(rest):
	case l.language == "ruby" && (c == '%' && l.lexPercentString(rest) || c == '?' && l.lexRubyCharacterLiteral(rest)):
	default:
		n := 1
		if l.language == "lua" && strings.HasPrefix(rest, "..") || l.language == "perl" && strings.HasPrefix(rest, "//") {
			n = 2
		}
		if len(rest) > 1 {
			switch rest[:2] {
			case "->", "::", "=>", "<<", ">>", "||", "&&", "==", "+=", ".=", "**":
				n = 2
			}
		}
		l.addToken(token{kind: punctToken, text: rest[:n]})
		l.pos += n
	}
}

// skipLineComment skips a line comment, and reports whether there is one.
func (l *lexer) skipLineComment(rest string) bool {
	if !strings.HasPrefix(rest, l.lineComment) && !(l.language == "php" && strings.HasPrefix(rest, "//")) {
		return false
	}
	if l.hashSignMayStartNonComment && len(rest) > 1 && rest[0] == '#' {
		if rest[1] == '[' {
			return false
		}
		for _, w := range [...]string{"!", "include", "define", "undef", "if", "el", "endif", "pragma", "import"} {
			if l.language == "code" && strings.HasPrefix(rest[1:], w) {
				return false
			}
		}
	}
	end := lineEnd(l.text, l.pos)
	if l.language == "php" {
		if n := strings.Index(l.text[l.pos:end], "?>"); n >= 0 {
			end = l.pos + n
		}
	}
	l.pos = end
	return true
}

// skipPHPMarkup skips the text outside of PHP tags.
func (l *lexer) skipPHPMarkup() {
	for {
		n := strings.Index(l.text[l.pos:], "<?")
		if n < 0 {
			l.pos = len(l.text)
			return
		}
		l.pos += n + 2
		switch rest := l.text[l.pos:]; {
		case strings.HasPrefix(rest, "xml"):
			continue
		case strings.HasPrefix(rest, "="):
			l.pos++
		case len(rest) >= 3 && strings.EqualFold(rest[:3], "php"):
			l.pos += 3
		}
		l.addToken(token{kind: punctToken, text: ";"})
		return
	}
}

// skipDocBlocksAndDataSection skips documentation lines, and the data section at the end of a script.
func (l *lexer) skipDocBlocksAndDataSection() {
	rest := l.text[l.pos:]
	end := ""
	switch {
	case l.language == "ruby" && strings.HasPrefix(rest, "=begin"):
		end = "\n=end"
	case l.language == "perl" && len(rest) > 1 && rest[0] == '=' && (rest[1]|0x20) >= 'a' && (rest[1]|0x20) <= 'z':
		// =word starts a POD comment only where a statement can start: after a value, "=" is an
		// assignment.
		if t := l.lastToken(); t == nil || t.kind == punctToken && (t.text == ";" || t.text == "}" && l.lastClosedBracket != bracketKindSubscript) {
			end = "\n=cut"
		}
	case l.language == "ruby" && (strings.HasPrefix(rest, "__END__\n") || rest == "__END__"):
		l.pos = len(l.text)
	}
	if end == "" {
		return
	}
	n := strings.Index(rest, end)
	if n < 0 {
		l.pos = len(l.text)
		return
	}
	l.pos = lineEnd(l.text, l.pos+n+1)
}

// lexLongBracket reads Lua's strings and comments in [[ ]] and [=[ ]=].
func (l *lexer) lexLongBracket(rest string) bool {
	comment := strings.HasPrefix(rest, "--[")
	at := 0
	if comment {
		at = 2
	}
	if at >= len(rest) || rest[at] != '[' {
		return false
	}
	level := len(rest[at+1:]) - len(strings.TrimLeft(rest[at+1:], "="))
	if at+1+level >= len(rest) || rest[at+1+level] != '[' {
		return false
	}
	l.pos += at + level + 2
	end := "]" + strings.Repeat("=", level) + "]"
	if !comment {
		l.lexString(stringToken, stringForm{closeDelimiter: end, multiline: true})
		return true
	}
	n := strings.Index(l.text[l.pos:], end)
	if n < 0 {
		l.recordPossibleMisparse("a comment does not end")
		n = len(l.text)
	}
	l.pos = min(len(l.text), l.pos+n+len(end))
	return true
}

// lexPunctuationVariable reads variables such as $" $' $/ $#x of Perl and Ruby, whose second character would
// otherwise begin a string, comment or regular expression.
func (l *lexer) lexPunctuationVariable(rest string) bool {
	if rest[0] != '$' || len(rest) < 2 || l.language != "perl" && l.language != "ruby" {
		return false
	}
	switch {
	case rest[1] == '#' && l.language == "perl":
		l.addToken(token{kind: punctToken, text: "$#"})
	case rest[1] == '^' && len(rest) > 2 && plain.IsWordByte(rest[2]):
		l.addToken(token{kind: nameToken, text: rest[:3]})
		l.pos++
	case strings.IndexByte("\"'`&/\\;,.!@~", rest[1]) >= 0:
		l.addToken(token{kind: nameToken, text: rest[:2]})
	default:
		return false
	}
	l.pos += 2
	return true
}

// lexQuoted reads a string; raw strings keep their backslashes, formatted ones contain expressions in braces.
func (l *lexer) lexQuoted(rest string, raw, formatted bool) {
	q := rest[:1]
	f := stringForm{closeDelimiter: q, hasBackslashEscapes: true, keepsBackslashes: raw || strings.Contains(l.rawQuotes, q), interpolates: formatted || strings.Contains(l.interpolatingQuotes, q), multiline: l.multilineStrings || q == "`"}
	kind := stringToken
	if q == "`" && l.backquoteRunsShell {
		kind = shellCommandToken
	}
	if q == "`" && l.language == "code" {
		f.hasBackslashEscapes = false
	}
	l.pos++
	switch {
	case l.hasTripleQuotes && strings.HasPrefix(rest[1:], q+q) && q != "`":
		f.closeDelimiter, f.multiline = q+q+q, true
		l.pos += 2
	case strings.Contains(l.ambiguousQuotes, q):
		l.lexApostrophe(rest)
		return
	}
	l.lexString(kind, f)
}

// lexApostrophe reads a ' in languages where it need not be closed: it starts a string or a
// character, or is a single ' as in a Rust lifetime.
func (l *lexer) lexApostrophe(rest string) {
	line := rest[1:lineEnd(rest, 0)]
	end := 0
	for end < len(line) && line[end] != '\'' {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(line) {
		l.addToken(token{kind: punctToken, text: "'"})
		return
	}
	body := line[:end]
	l.pos += end + 1
	if len(body) < 3 || !strings.ContainsAny(body, "(\"`") {
		v := abstract.Lit(resolveEscapes(body, false))
		l.addToken(token{kind: stringToken, literalValue: &v})
		return
	}
	// The text may also be code between two Rust lifetimes, so it is lexed as code, too.
	l.addToken(token{kind: stringToken, parts: []stringPart{{text: resolveEscapes(body, false)}, {code: l.lexCodeInString(body), text: ""}}})
}

// lexString reads a string after its opening delimiter.
func (l *lexer) lexString(kind tokenKind, f stringForm) {
	l.addString(kind, l.lexStringBody(f))
}

// addString adds a string token with its parts.
func (l *lexer) addString(kind tokenKind, parts []stringPart) {
	if len(parts) > 1 || len(parts) == 1 && parts[0].isInterpolatedExpression {
		l.addToken(token{kind: kind, parts: parts})
		return
	}
	v := abstract.Value{}
	if len(parts) == 1 {
		v.Text = parts[0].text
	}
	l.addToken(token{kind: kind, literalValue: &v})
}

// lexStringBody reads a string to its end. If there is none, later code may be read wrongly.
func (l *lexer) lexStringBody(f stringForm) (parts []stringPart) {
	start, nested := l.pos, 0
	literal := func() {
		if l.pos > start {
			parts = append(parts, stringPart{text: resolveEscapes(l.text[start:l.pos], f.keepsBackslashes || f.isRegexp || !f.hasBackslashEscapes)})
		}
	}
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		switch {
		case nested == 0 && f.closeDelimiter != "" && strings.HasPrefix(l.text[l.pos:], f.closeDelimiter):
			literal()
			l.pos += len(f.closeDelimiter)
			return parts
		case c == '\\' && f.hasBackslashEscapes && !(l.language == "code" && strings.HasPrefix(l.text[l.pos:], `\(`)):
			l.pos = min(len(l.text), l.pos+l.escapeLength(f))
		case c == '\n' && !f.multiline:
			l.recordPossibleMisparse("a string does not end")
			literal()
			return parts
		case f.openDelimiter != 0 && c == f.openDelimiter:
			nested++
			l.pos++
		case f.openDelimiter != 0 && c == f.closeDelimiter[0]:
			nested--
			l.pos++
		case f.isRegexp && c == '[' && l.language != "perl": // in a character class, the delimiter is a plain character
			l.skipCharacterClass()
		case f.interpolates && strings.IndexByte(`{$#@(\`, c) >= 0:
			before := l.pos
			if one, ok := l.lexInterpolation(f); ok {
				at := l.pos
				l.pos = before
				literal()
				l.pos, start = at, at
				parts = append(parts, one)
				break
			}
			l.pos++
		default:
			l.pos++
		}
	}
	if f.closeDelimiter != "" {
		l.recordPossibleMisparse("a string does not end")
	}
	literal()
	return parts
}

// skipCharacterClass skips a character class of a regular expression.
func (l *lexer) skipCharacterClass() {
	for i := l.pos + 1; i < len(l.text) && l.text[i] != '\n'; i++ {
		switch l.text[i] {
		case '\\':
			i++
		case ']':
			l.pos = i + 1
			return
		case '#', '$':
			if l.language == "ruby" && i+1 < len(l.text) && l.text[i+1] == '{' {
				l.pos++
				return // Ruby: an interpolated expression #{…} begins inside the character class
			}
		}
	}
	l.pos++
}

// escapeLength returns the length in bytes of the escape sequence at the current position.
func (l *lexer) escapeLength(f stringForm) int {
	if l.language != "python" || l.pos+1 >= len(l.text) {
		return 2
	}
	if strings.HasPrefix(l.text[l.pos:], `\N{`) && !f.keepsBackslashes {
		if n := strings.IndexByte(l.text[l.pos:], '}'); n > 0 {
			return n + 1
		}
	}
	if l.text[l.pos+1] == '{' {
		return 1
	}
	return 2
}

func resolveEscapes(s string, raw bool) string {
	if raw || !strings.Contains(s, `\`) {
		return s
	}
	return plain.UnescapeANSIC(strings.ReplaceAll(s, "\\\n", ""))
}

// lexInterpolation reads an interpolated expression in a string, if one begins here.
func (l *lexer) lexInterpolation(f stringForm) (stringPart, bool) {
	rest := l.text[l.pos:]
	at := func(s string) bool { return strings.HasPrefix(rest, s) }
	switch l.language {
	case "python":
		if at("{{") {
			l.pos++ // the caller skips the second character
			return stringPart{}, false
		}
		if rest[0] == '{' {
			return l.lexExpressionInString(1, '}'), true
		}
	case "node":
		if at("${") {
			return l.lexExpressionInString(2, '}'), true
		}
	case "ruby":
		if at("#{") {
			return l.lexExpressionInString(2, '}'), true
		}
		if at("#@") || at("#$") {
			return l.lexVariableInString(1), true
		}
	case "php":
		switch {
		case at("{$"):
			return l.lexExpressionInString(1, '}'), true
		case at("${"):
			return l.lexExpressionInString(2, '}'), true
		case rest[0] == '$' && len(rest) > 1 && plain.IsWordByte(rest[1]):
			return l.lexVariableInString(0), true
		}
	case "perl":
		switch {
		case f.isRegexp && (at("(?{") || at("(??{")):
			return l.lexExpressionInString(strings.IndexByte(rest, '{')+1, '}'), true
		case at("${") || at("@{"):
			return l.lexExpressionInString(2, '}'), true
		case (rest[0] == '$' || rest[0] == '@') && len(rest) > 1 && (plain.IsWordByte(rest[1]) || rest[1] == '$' && len(rest) > 2 && plain.IsWordByte(rest[2])):
			return l.lexVariableInString(0), true
		}
	default:
		if at("${") || at("#{") || at("$(") || at(`\(`) {
			closing := byte('}')
			if rest[1] == '(' {
				closing = ')'
			}
			return l.lexExpressionInString(2, closing), true
		}
	}
	return stringPart{}, false
}

// lexExpressionInString reads code in a string up to its closing bracket, which is the byte closing.
// openingDelimiterLen is the length in bytes of the delimiter before the code, such as ${.
func (l *lexer) lexExpressionInString(openingDelimiterLen int, closing byte) stringPart {
	start := l.pos
	outer := *l
	l.pos += openingDelimiterLen
	l.tokens, l.openBrackets, l.pendingHeredocs, l.sawSpaceBeforeToken, l.sawNewlineBeforeToken = nil, nil, nil, false, false
	if l.interpolationDepth++; l.interpolationDepth > maxExpressionNesting {
		l.recordPossibleMisparse("expressions in strings are nested too deeply")
		l.pos = len(l.text)
	}
	ended := false
	for l.pos < len(l.text) && !ended {
		c := l.text[l.pos]
		if len(l.openBrackets) == 0 {
			if c == closing {
				ended = true
				break
			}
			if l.language == "python" && (c == ':' || c == '!' && !strings.HasPrefix(l.text[l.pos:], "!=")) {
				l.lexFStringFormatSpec()
				ended = true
				break
			}
		}
		l.lexNext()
	}
	if !ended || len(l.pendingHeredocs) > 0 {
		l.recordPossibleMisparse("an expression in a string does not end")
	}
	if l.language == "python" && len(l.tokens) > 0 && l.lastToken().text == "=" && l.lastToken().kind == punctToken {
		l.tokens = l.tokens[:len(l.tokens)-1] // Python's {x=} also prints the expression
	}
	l.pos = min(len(l.text), l.pos+1)
	one := stringPart{text: l.text[start:l.pos], code: l.tokens, isInterpolatedExpression: true}
	l.restoreOuterLexerState(&outer)
	return one
}

// restoreOuterLexerState returns to the code around an expression, after its end.
func (l *lexer) restoreOuterLexerState(outer *lexer) {
	i, unread := l.pos, l.possibleMisparseReason
	*l = *outer
	l.pos, l.possibleMisparseReason = i, unread
}

// lexFStringFormatSpec reads the format specification of a Python f-string field, up to the closing brace. It may contain
// expressions.
func (l *lexer) lexFStringFormatSpec() {
	for l.pos < len(l.text) && l.text[l.pos] != '}' {
		if l.text[l.pos] != '{' {
			l.pos++
			continue
		}
		one := l.lexExpressionInString(1, '}')
		l.tokens = append(append(l.tokens, token{kind: punctToken, text: ";"}), one.code...)
	}
}

// lexVariableInString reads an interpolated variable with its subscripts. openingDelimiterLen is the length in
// bytes of the text before the variable, such as 1 for the # of #@name.
func (l *lexer) lexVariableInString(openingDelimiterLen int) stringPart {
	start := l.pos
	outer := *l
	l.pos += openingDelimiterLen
	l.tokens, l.openBrackets, l.pendingHeredocs, l.sawSpaceBeforeToken, l.sawNewlineBeforeToken = nil, nil, nil, false, false
	l.interpolationDepth++
	for l.pos < len(l.text) && (l.isSigil(l.text[l.pos]) || l.text[l.pos] == '$') && !plain.IsWordByte(l.text[min(l.pos+1, len(l.text)-1)]) {
		l.pos++
	}
	if l.pos < len(l.text) {
		l.lexWord(l.text[l.pos:])
	}
	for n := 0; n < 8 && l.language != "ruby"; n++ {
		rest := l.text[l.pos:]
		if strings.HasPrefix(rest, "->[") || strings.HasPrefix(rest, "->{") {
			l.lexNext()
		} else if rest == "" || rest[0] != '[' && (rest[0] != '{' || l.language != "perl") || l.interpolationDepth > maxExpressionNesting {
			break
		}
		for l.lexNext(); l.pos < len(l.text) && len(l.openBrackets) > 0; {
			l.lexNext()
		}
	}
	one := stringPart{text: l.text[start:l.pos], code: l.tokens, isInterpolatedExpression: true}
	l.restoreOuterLexerState(&outer)
	return one
}

// lexCodeInString splits nested code into tokens.
func (l *lexer) lexCodeInString(text string) []token {
	sub := &lexer{language: l.language, grammar: l.grammar, text: text, interpolationDepth: l.interpolationDepth + 1}
	if sub.interpolationDepth > maxExpressionNesting {
		l.recordPossibleMisparse("expressions in strings are nested too deeply")
		return nil
	}
	for sub.pos < len(sub.text) {
		sub.lexNext()
	}
	if sub.possibleMisparseReason != "" {
		l.recordPossibleMisparse(sub.possibleMisparseReason)
	}
	return sub.tokens
}

func (l *lexer) lexWord(rest string) {
	n := 1
	for n < len(rest) && plain.IsWordByte(rest[n]) {
		n++
	}
	w := rest[:n]
	if n < len(rest) && (rest[n] == '"' || rest[n] == '\'') && n <= 2 && l.language == "python" {
		lower := strings.ToLower(w)
		if strings.Trim(lower, "rbfut") == "" {
			l.pos += n
			l.lexQuoted(rest[n:], strings.Contains(lower, "r"), strings.ContainsAny(lower, "ft"))
			return
		}
	}
	if l.language == "perl" && l.lexQuoteOperator(w, n) {
		return
	}
	if l.language == "perl" && (w == "__END__" || w == "__DATA__") && !l.isPerlHashKeyOrName(n) {
		l.pos = len(l.text)
		return
	}
	if l.language == "code" && (w == "r" || w == "br") && l.lexRustRawString(rest[n:]) {
		return
	}
	l.pos += n
	if w[0] >= '0' && w[0] <= '9' {
		l.addToken(token{kind: numberToken, text: w})
		return
	}
	l.addToken(token{kind: nameToken, text: w})
}

// lexRustRawString reads Rust's r#"…"#.
func (l *lexer) lexRustRawString(rest string) bool {
	hashes := len(rest) - len(strings.TrimLeft(rest, "#"))
	if hashes >= len(rest) || rest[hashes] != '"' || hashes == 0 {
		return false
	}
	l.pos = len(l.text) - len(rest) + hashes + 1
	l.lexString(stringToken, stringForm{closeDelimiter: `"` + rest[:hashes], multiline: true})
	return true
}

// isPerlHashKeyOrName reports whether the word of n bytes at the current position is a Perl hash key, a name
// after a sigil, an arrow, :: or sub, or the file test -s.
func (l *lexer) isPerlHashKeyOrName(wordBytes int) bool {
	after := strings.TrimLeft(l.text[l.pos+wordBytes:], " \t\r\n")
	if strings.HasPrefix(after, "=>") {
		return true
	}
	t := l.lastToken()
	if t == nil {
		return false
	}
	switch {
	case t.kind == nameToken:
		return t.text == "sub"
	case t.kind != punctToken || l.sawNewlineBeforeToken:
		return false
	case t.text == "->" || t.text == "::":
		return true
	case t.text == "{":
		return strings.HasPrefix(after, "}")
	}
	if t.text == "-" && !l.sawSpaceBeforeToken && l.text[l.pos:l.pos+wordBytes] == "s" { // the file test -s
		n := len(l.tokens)
		return n < 2 || l.tokens[n-2].kind == punctToken || strings.Contains(l.wordsBeforeOperand, " "+l.tokens[n-2].text+" ")
	}
	return !l.sawSpaceBeforeToken && (t.text == "%" || t.text == "&" || t.text == "*" || t.text == "@" || t.text == "$")
}

// closingDelimiter returns the closing delimiter for an opening one, and the opening one again if pairs nest.
func closingDelimiter(opener byte) (closer string, nestedOpener byte) {
	if i := strings.IndexByte("({[<", opener); i >= 0 {
		return ")}]>"[i : i+1], opener
	}
	return string(opener), 0
}

// lexQuoteOperator reads Perl's q(…), qq{…}, qx[…], m/…/, s/…/…/ and the like, with any delimiter.
func (l *lexer) lexQuoteOperator(w string, n int) bool {
	switch w {
	case "q", "qq", "qw", "qx", "qr", "m", "s", "y", "tr":
	default:
		return false
	}
	if l.isPerlHashKeyOrName(n) {
		return false
	}
	at := l.pos + n
	from := at
	for at < len(l.text) && strings.IndexByte(" \t\r\n", l.text[at]) >= 0 {
		at++
	}
	if at >= len(l.text) {
		return false
	}
	if at > from && (l.text[at] == '#' || plain.IsWordByte(l.text[at])) {
		l.recordPossibleMisparse("a word after the Perl operator " + w + " can be the delimiter of a string")
		return false
	}
	delimiter := l.text[at]
	end, nests := closingDelimiter(delimiter)
	f := stringForm{closeDelimiter: end, openDelimiter: nests, hasBackslashEscapes: true, keepsBackslashes: true, multiline: true}
	f.interpolates = delimiter != '\'' && w != "q" && w != "qw" && w != "y" && w != "tr"
	kind := stringToken
	switch w {
	case "qx":
		kind = shellCommandToken
	case "qr", "m", "s":
		f.isRegexp = true
	}
	l.pos = at + 1
	if w != "s" && w != "y" && w != "tr" {
		if w == "qq" || w == "qx" {
			f.keepsBackslashes = false
		}
		l.lexString(kind, f)
		if f.isRegexp {
			l.skipRegexpFlags()
		}
		return true
	}
	parts := l.lexStringBody(f)
	if nests != 0 {
		for l.pos < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.pos]) >= 0 {
			l.pos++
		}
		if l.pos < len(l.text) {
			f.closeDelimiter, f.openDelimiter = closingDelimiter(l.text[l.pos])
			l.pos++
		}
	}
	start := l.pos
	f.isRegexp = false
	plainForm := f
	plainForm.interpolates = false
	l.lexStringBody(plainForm)
	replaced := l.text[start:max(start, l.pos-1)]
	switch evaluated := strings.Count(l.skipRegexpFlags(), "e"); {
	case w != "s" || !f.interpolates && evaluated == 0:
	case evaluated > 0:
		code := l.lexCodeInString(replaced)
		if evaluated > 1 {
			code = append(append([]token{{kind: nameToken, text: "eval"}, {kind: punctToken, text: "("}}, code...), token{kind: punctToken, text: ")"})
		}
		parts = append(parts, stringPart{text: replaced, code: code, isInterpolatedExpression: true})
	default:
		parts = append(parts, l.lexTextParts(replaced, f)...)
	}
	l.addString(kind, parts)
	return true
}

// lexTextParts returns the parts (text and interpolated expressions) of a text that is the whole content of a
// string, without delimiters.
func (l *lexer) lexTextParts(text string, f stringForm) []stringPart {
	f.closeDelimiter, f.openDelimiter, f.multiline = "", 0, true
	sub := &lexer{language: l.language, grammar: l.grammar, text: text, interpolationDepth: l.interpolationDepth + 1}
	if sub.interpolationDepth > maxExpressionNesting {
		l.recordPossibleMisparse("expressions in strings are nested too deeply")
		return nil
	}
	parts := sub.lexStringBody(f)
	if sub.possibleMisparseReason != "" {
		l.recordPossibleMisparse(sub.possibleMisparseReason)
	}
	return parts
}

// A lastTokenState says whether the token before the current position ends a value.
type lastTokenState uint8

const (
	lastTokenStateOperandExpected lastTokenState = iota // a value is expected
	lastTokenStateOperandEnd                            // a value has ended
	lastTokenStateUncertain
)

// classifyLastToken reports whether the last token ends a value; rest is the text after it.
func (l *lexer) classifyLastToken(rest string) lastTokenState {
	t := l.lastToken()
	if t == nil || l.newlineEndsStatement && l.sawNewlineBeforeToken {
		return lastTokenStateOperandExpected
	}
	switch t.kind {
	case nameToken:
		n := len(l.tokens)
		member := n > 1 && l.tokens[n-2].kind == punctToken && (l.tokens[n-2].text == "." || l.tokens[n-2].text == "->")
		switch {
		case member && l.language == "node", l.isSigil(t.text[0]):
			return lastTokenStateOperandEnd
		case strings.Contains(l.wordsBeforeOperand, " "+t.text+" ") && !member:
			return lastTokenStateOperandExpected
		case l.language == "node" && (t.text == "yield" || t.text == "await"),
			l.language != "node" && l.sawSpaceBeforeToken && len(rest) > 1 && rest[1] != ' ' && rest[1] != '=' && l.language != "awk":
			return lastTokenStateUncertain // an argument or an operator may follow
		}
		return lastTokenStateOperandEnd
	case punctToken:
		switch t.text {
		case ")":
			if l.lastClosedBracket == bracketKindControlStatement {
				return lastTokenStateUncertain
			}
			return lastTokenStateOperandEnd
		case "]":
			return lastTokenStateOperandEnd
		case "}":
			switch {
			case l.language == "awk":
				return lastTokenStateOperandExpected
			case l.lastClosedBracket == bracketKindSubscript:
				return lastTokenStateOperandEnd
			}
			return lastTokenStateUncertain
		case "+", "-":
			if n := len(l.tokens); n > 1 && l.tokens[n-2].text == t.text && !t.hasSpaceBefore {
				return lastTokenStateUncertain
			}
		case "!":
			if !t.hasSpaceBefore && l.language == "node" && len(l.tokens) > 1 && l.tokens[len(l.tokens)-2].kind != punctToken {
				return lastTokenStateUncertain
			}
		}
		return lastTokenStateOperandExpected
	}
	return lastTokenStateOperandEnd
}

// lexRegexp reads a regular expression, if one begins here. If the slash may also be a division,
// and the later code depends on that, it records with recordPossibleMisparse that the code may be read wrongly.
func (l *lexer) lexRegexp(rest string) bool {
	turn := l.classifyLastToken(rest)
	if turn == lastTokenStateOperandEnd {
		return false
	}
	if turn == lastTokenStateUncertain {
		to := strings.IndexByte(rest[1:], '/')
		if line := lineEnd(rest, 0); to < 0 || l.language == "node" && to+1 > line {
			return false
		}
		if strings.ContainsAny(rest[1:to+1], "\"'`(\\[") {
			l.recordPossibleMisparse("the character / can begin a regular expression or be a division")
		}
		return false
	}
	l.pos++
	l.lexString(stringToken, stringForm{closeDelimiter: "/", hasBackslashEscapes: true, isRegexp: true, interpolates: l.language == "ruby" || l.language == "perl", multiline: l.language == "perl" || l.language == "ruby"})
	if l.language != "awk" {
		l.skipRegexpFlags()
	}
	return true
}

// skipRegexpFlags skips the flags after a regular expression and returns them.
func (l *lexer) skipRegexpFlags() string {
	start := l.pos
	for l.pos < len(l.text) && plain.IsWordByte(l.text[l.pos]) {
		l.pos++
	}
	return l.text[start:l.pos]
}

// lexPercentString reads Ruby's strings that begin with a percent sign.
func (l *lexer) lexPercentString(rest string) bool {
	kind, at := byte('Q'), 1
	if len(rest) > 2 && strings.IndexByte("qQwWiIxrs", rest[1]) >= 0 {
		kind, at = rest[1], 2
	}
	if at >= len(rest) || plain.IsWordByte(rest[at]) || strings.IndexByte(" \t\r\n=", rest[at]) >= 0 {
		return false
	}
	turn := l.classifyLastToken(rest)
	if turn == lastTokenStateOperandEnd {
		return false
	}
	end, nests := closingDelimiter(rest[at])
	if turn == lastTokenStateUncertain && strings.ContainsAny(rest[at+1:lineEnd(rest, 0)], "\"'`") {
		l.recordPossibleMisparse("the character % can begin a string or be an operator")
	}
	l.pos += at + 1
	token := stringToken
	if kind == 'x' {
		token = shellCommandToken
	}
	l.lexString(token, stringForm{closeDelimiter: end, openDelimiter: nests, hasBackslashEscapes: true, keepsBackslashes: strings.IndexByte("qwis", kind) >= 0, interpolates: strings.IndexByte("QWIxr", kind) >= 0, isRegexp: kind == 'r', multiline: true})
	return true
}

// lexRubyCharacterLiteral reads Ruby's character literal ?x.
func (l *lexer) lexRubyCharacterLiteral(rest string) bool {
	if len(rest) < 2 || strings.IndexByte(" \t\r\n", rest[1]) >= 0 || l.classifyLastToken("? ") == lastTokenStateOperandEnd {
		return false
	}
	n := 2
	if rest[1] == '\\' {
		n = min(3, len(rest))
	}
	if n < len(rest) && plain.IsWordByte(rest[n]) && plain.IsWordByte(rest[n-1]) {
		return false
	}
	v := abstract.Lit(rest[1:n])
	l.addToken(token{kind: stringToken, literalValue: &v})
	l.pos += n
	return true
}

// lexHeredocStart reads the start of a here-document, and reports whether there is one.
func (l *lexer) lexHeredocStart(rest string) bool {
	n := len(l.heredocStart)
	d := heredoc{form: stringForm{hasBackslashEscapes: true, interpolates: true, multiline: true}}
	blanks := func() {
		for n < len(rest) && l.language == "php" && (rest[n] == ' ' || rest[n] == '\t') {
			n++
		}
	}
	if l.heredocStart == "<<" && n < len(rest) && (rest[n] == '~' || rest[n] == '-' && l.language == "ruby") {
		d.canEndDelimiterBeIndented = true
		n++
	}
	blanks()
	if n >= len(rest) {
		return false
	}
	kind := stringToken
	quote := rest[n]
	if strings.IndexByte("\"'`", quote) >= 0 {
		end := strings.IndexByte(rest[n+1:], quote)
		if end < 0 || strings.Contains(rest[n+1:n+1+end], "\n") {
			return false
		}
		d.endDelimiter = rest[n+1 : n+1+end]
		n += end + 2
		if quote == '\'' {
			d.form.interpolates, d.form.hasBackslashEscapes = false, false
		}
		if quote == '`' {
			kind = shellCommandToken
		}
	} else {
		from := n
		for n < len(rest) && plain.IsWordByte(rest[n]) {
			n++
		}
		d.endDelimiter = rest[from:n]
		if d.endDelimiter == "" || d.endDelimiter[0] >= '0' && d.endDelimiter[0] <= '9' {
			return false
		}
	}
	if d.endDelimiter == "" || l.heredocStart == "<<" && (len(l.pendingHeredocs) > 16 || !l.opensHeredoc(rest)) {
		return false
	}
	d.canEndDelimiterBeIndented = d.canEndDelimiterBeIndented || l.language == "php"
	d.tokenIndex = len(l.tokens)
	l.addToken(token{kind: kind, literalValue: &abstract.Value{}})
	l.pos += n
	l.pendingHeredocs = append(l.pendingHeredocs, d)
	return true
}

// opensHeredoc reports whether << begins a here-document and is not an operator.
func (l *lexer) opensHeredoc(rest string) bool {
	turn, last := l.classifyLastToken(rest), l.lastToken()
	if turn != lastTokenStateUncertain || last.kind != nameToken {
		return turn == lastTokenStateOperandExpected
	}
	// After a function's name, << begins a here-document; after a variable, it is an operator.
	if l.language == "perl" {
		l.recordPossibleMisparse("<< can begin a here-document or be an operator")
	}
	for i := range l.tokens[:len(l.tokens)-1] {
		if l.possibleMisparseReason != "" {
			return false
		}
		if l.tokens[i].text == last.text && l.tokens[i].kind == nameToken && (strings.Contains("= | , ) += =>", l.tokens[i+1].text) || i > 0 && strings.Contains("for => | , * &", l.tokens[i-1].text)) {
			return false
		}
	}
	return true
}

// lexHeredocBodies reads the text of the here-documents that begin at this line.
func (l *lexer) lexHeredocBodies() {
	for _, d := range l.pendingHeredocs {
		start, from := l.pos, l.pos
		for {
			if from >= len(l.text) {
				l.recordPossibleMisparse("a here-document does not end")
				l.pos = len(l.text)
				break
			}
			end := lineEnd(l.text, from)
			line := strings.TrimSuffix(l.text[from:end], "\r")
			if d.canEndDelimiterBeIndented {
				line = strings.TrimLeft(line, " \t")
			}
			if rest, ok := strings.CutPrefix(line, d.endDelimiter); ok && (rest == "" || l.language == "php" && !plain.IsWordByte(rest[0])) {
				l.pos = end - len(rest)
				break
			}
			from = min(len(l.text), end+1)
			if end == len(l.text) {
				from = end
			}
		}
		t := &l.tokens[d.tokenIndex]
		parts := l.lexTextParts(l.text[start:min(from, l.pos)], d.form)
		switch {
		case len(parts) == 1 && !parts[0].isInterpolatedExpression:
			t.literalValue.Text = parts[0].text
		case len(parts) > 0:
			t.literalValue, t.parts = nil, parts
		}
	}
	l.pendingHeredocs = l.pendingHeredocs[:0]
}
