package script

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// A token is one lexical element of code.
type token struct {
	kind    tokenKind
	text    string
	v       *abstract.Value // value of a string or command without expressions; nil for other tokens
	parts   []part          // parts of a string or command with expressions
	spaced  bool            // white space precedes it
	newline bool            // a line break precedes it
}

// A part of a string is text or an expression.
type part struct {
	text string // for an expression: its source text
	code []token
	expr bool
}

type tokenKind uint8

const (
	punctToken tokenKind = iota
	nameToken
	numberToken
	stringToken
	shellToken // `…`, %x(…), qx(…): text that a shell runs
)

// A grammar describes the strings, comments and regular expressions of a language.
type grammar struct {
	comment   string // start of a comment that extends to the line's end
	block     bool   // has comments in /* */
	quotes    string // characters that begin a string
	literal   string // quotes of strings without escapes and expressions
	inserts   string // quotes of strings with interpolated expressions
	shell     bool   // a backquoted text is a command
	lines     bool   // quoted strings may contain line breaks
	triple    bool   // """ and ''' begin strings
	sigils    string // characters that begin a variable's name
	regexps   bool   // /…/ is a regular expression where a value is expected
	ends      bool   // a line break after a value ends the statement
	here      string // start of a here-document
	before    string // words after which a value is expected
	unclosed  string // quotes that also have other meanings, and so need not be closed
	lineComms bool   // "#[" and preprocessor directives are not comments
}

// Words after which a value follows, in languages with regular expression literals.
const (
	valueWords = " return if unless while until and or not when in case elsif else then do puts p print "
	nodeWords  = " return typeof case in of delete void throw new else do instanceof default extends "
	perlWords  = " warn printf sprintf STDERR STDOUT system exec eval confess croak return if unless while until and or not elsif else split grep map join push unshift print say x lt gt le ge eq ne cmp die when "
)

var grammars = map[string]*grammar{
	"python": {comment: "#", quotes: `"'`, triple: true},
	"node":   {comment: "//", block: true, quotes: "\"'`", inserts: "`", regexps: true, before: nodeWords},
	"ruby": {comment: "#", quotes: "\"'`", literal: "'", inserts: "\"`", shell: true, lines: true, sigils: "$@", regexps: true, ends: true, here: "<<",
		before: valueWords},
	"perl":        {comment: "#", quotes: "\"'`", literal: "'", inserts: "\"`", shell: true, lines: true, sigils: "$@", regexps: true, here: "<<", before: perlWords},
	"php":         {comment: "#", block: true, quotes: "\"'`", literal: "'", inserts: "\"`", shell: true, lines: true, sigils: "$", here: "<<<", lineComms: true},
	"lua":         {comment: "--", quotes: `"'`},
	"awk":         {comment: "#", quotes: `"`, regexps: true, ends: true, before: valueWords},
	"applescript": {comment: "--", quotes: `"`, lines: true},
	"code":        {comment: "#", quotes: "\"'`", literal: "`", inserts: `"`, lines: true, triple: true, unclosed: "'", lineComms: true},
}

// lexCode splits code into tokens, which it appends to room. It handles strings, regular expressions,
// here-documents and comments of Python, Perl, Ruby, JavaScript, PHP, Lua and awk well enough to find calls; other
// characters become punctuation. unread says why later code may have been read wrongly; "" if it was not.
func lexCode(language, text string, room []token) (tokens []token, unread string) {
	l := &lexer{language: language, text: text, tokens: room}
	if l.grammar = grammars[language]; l.grammar == nil {
		l.grammar = grammars["code"]
	}
	switch {
	case strings.HasPrefix(text, "#!") && (language == "node" || language == "lua"):
		l.i = lineEnd(text, 0)
	case language == "php" && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "<"):
		l.page()
	case language == "php" && strings.HasPrefix(text, "#!"):
		l.page()
	}
	for l.linesBetween(); l.i < len(l.text); {
		l.next()
	}
	l.documents()
	return l.tokens, l.unread
}

type lexer struct {
	language string
	*grammar
	text    string
	i       int
	spaced  bool
	newline bool
	tokens  []token
	unread  string     // why later code may be read wrongly
	depth   int        // nesting of expressions in strings
	open    []bracket  // stack of open brackets
	closed  bracket    // the bracket that the last token closed
	pending []document // here-documents that begin after this line
}

// A bracket is the kind of an open bracket, by the token before it.
type bracket uint8

const (
	plainBracket bracket = iota
	condition            // parentheses behind if, while and the like
	subscript            // a subscript or call of the value before it
)

// A document is a here-document whose text begins after the current line.
type document struct {
	token  int
	end    string
	indent bool
	form   form
}

// A form describes how a string is written.
type form struct {
	end     string // closing delimiter; "" for the end of the text
	open    byte   // opening delimiter, which can be nested
	escapes bool   // a backslash escapes the next character
	raw     bool   // and the backslash is kept
	inserts bool   // expressions are interpolated
	lines   bool   // the string may contain line breaks
	regexp  bool
}

func (l *lexer) doubt(why string) {
	if l.unread == "" {
		l.unread = why
	}
}

func (l *lexer) add(t token) {
	t.spaced, t.newline = l.spaced, l.newline
	l.spaced, l.newline = false, false
	l.closed = plainBracket
	if t.kind == punctToken {
		switch t.text {
		case "(", "[", "{":
			l.open = append(l.open, l.bracket(t))
		case ")", "]", "}":
			if n := len(l.open); n > 0 {
				l.closed, l.open = l.open[n-1], l.open[:n-1]
			}
		}
	}
	l.tokens = append(l.tokens, t)
}

// bracket returns the kind of an opening bracket.
func (l *lexer) bracket(t token) bracket {
	last := l.last()
	switch {
	case last == nil:
	case t.text == "(" && last.kind == nameToken && strings.Contains(" if while for with until unless elsif foreach ", " "+last.text+" "):
		return condition
	case t.text == "{" && l.language == "perl" && !t.spaced && !t.newline &&
		(last.kind == nameToken && l.sigil(last.text[0]) || last.kind == punctToken && strings.Contains("$ @ % & $# -> ] }", last.text)):
		return subscript
	}
	return plainBracket
}

func (l *lexer) last() *token {
	if len(l.tokens) == 0 {
		return nil
	}
	return &l.tokens[len(l.tokens)-1]
}

func (l *lexer) sigil(c byte) bool { return strings.IndexByte(l.sigils, c) >= 0 }

func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

func (l *lexer) next() {
	c := l.text[l.i]
	rest := l.text[l.i:]
	switch {
	case c == '\n':
		l.newline, l.spaced = true, true
		l.i++
		l.documents()
		l.linesBetween()
	case c == ' ' || c == '\t' || c == '\r':
		l.spaced = true
		l.i++
	case l.language == "lua" && l.long(rest):
	case l.commented(rest):
	case l.block && strings.HasPrefix(rest, "/*"):
		n := strings.Index(rest[2:], "*/")
		if n < 0 {
			l.doubt("a comment does not end")
			n = len(rest)
		}
		l.i = min(len(l.text), l.i+n+4)
	case l.language == "php" && strings.HasPrefix(rest, "?>"):
		l.page()
	case l.sigil(c) && len(rest) > 1 && plain.WordByte(rest[1]) || plain.WordByte(c):
		l.word(rest)
	case l.punctuationVariable(rest):
	case l.here != "" && strings.HasPrefix(rest, l.here) && l.document(rest):
	case strings.IndexByte(l.quotes, c) >= 0:
		l.quoted(rest, false, false)
	case c == '/' && l.regexps && l.regular(rest):
	case l.language == "ruby" && (c == '%' && l.percent(rest) || c == '?' && l.character(rest)):
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
		l.add(token{kind: punctToken, text: rest[:n]})
		l.i += n
	}
}

// commented skips a line comment, and reports whether there is one.
func (l *lexer) commented(rest string) bool {
	if !strings.HasPrefix(rest, l.comment) && !(l.language == "php" && strings.HasPrefix(rest, "//")) {
		return false
	}
	if l.lineComms && len(rest) > 1 && rest[0] == '#' {
		if rest[1] == '[' {
			return false
		}
		for _, w := range [...]string{"!", "include", "define", "undef", "if", "el", "endif", "pragma", "import"} {
			if l.language == "code" && strings.HasPrefix(rest[1:], w) {
				return false
			}
		}
	}
	end := lineEnd(l.text, l.i)
	if l.language == "php" {
		if n := strings.Index(l.text[l.i:end], "?>"); n >= 0 {
			end = l.i + n
		}
	}
	l.i = end
	return true
}

// page skips the text outside of PHP tags.
func (l *lexer) page() {
	for {
		n := strings.Index(l.text[l.i:], "<?")
		if n < 0 {
			l.i = len(l.text)
			return
		}
		l.i += n + 2
		switch rest := l.text[l.i:]; {
		case strings.HasPrefix(rest, "xml"):
			continue
		case strings.HasPrefix(rest, "="):
			l.i++
		case len(rest) >= 3 && strings.EqualFold(rest[:3], "php"):
			l.i += 3
		}
		l.add(token{kind: punctToken, text: ";"})
		return
	}
}

// linesBetween skips documentation lines, and the data section at the end of a script.
func (l *lexer) linesBetween() {
	rest := l.text[l.i:]
	end := ""
	switch {
	case l.language == "ruby" && strings.HasPrefix(rest, "=begin"):
		end = "\n=end"
	case l.language == "perl" && len(rest) > 1 && rest[0] == '=' && (rest[1]|0x20) >= 'a' && (rest[1]|0x20) <= 'z':
		// After a value, "=" is an assignment.
		if t := l.last(); t == nil || t.kind == punctToken && (t.text == ";" || t.text == "}" && l.closed != subscript) {
			end = "\n=cut"
		}
	case l.language == "ruby" && (strings.HasPrefix(rest, "__END__\n") || rest == "__END__"):
		l.i = len(l.text)
	}
	if end == "" {
		return
	}
	n := strings.Index(rest, end)
	if n < 0 {
		l.i = len(l.text)
		return
	}
	l.i = lineEnd(l.text, l.i+n+1)
}

// long reads Lua's strings and comments in [[ ]] and [=[ ]=].
func (l *lexer) long(rest string) bool {
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
	l.i += at + level + 2
	end := "]" + strings.Repeat("=", level) + "]"
	if !comment {
		l.str(stringToken, form{end: end, lines: true})
		return true
	}
	n := strings.Index(l.text[l.i:], end)
	if n < 0 {
		l.doubt("a comment does not end")
		n = len(l.text)
	}
	l.i = min(len(l.text), l.i+n+len(end))
	return true
}

// punctuationVariable reads variables such as $" $' $/ $#x of Perl and Ruby, whose second character would
// otherwise begin a string, comment or regular expression.
func (l *lexer) punctuationVariable(rest string) bool {
	if rest[0] != '$' || len(rest) < 2 || l.language != "perl" && l.language != "ruby" {
		return false
	}
	switch {
	case rest[1] == '#' && l.language == "perl":
		l.add(token{kind: punctToken, text: "$#"})
	case rest[1] == '^' && len(rest) > 2 && plain.WordByte(rest[2]):
		l.add(token{kind: nameToken, text: rest[:3]})
		l.i++
	case strings.IndexByte("\"'`&/\\;,.!@~", rest[1]) >= 0:
		l.add(token{kind: nameToken, text: rest[:2]})
	default:
		return false
	}
	l.i += 2
	return true
}

// quoted reads a string; raw strings keep their backslashes, formatted ones contain expressions in braces.
func (l *lexer) quoted(rest string, raw, formatted bool) {
	q := rest[:1]
	f := form{end: q, escapes: true, raw: raw || strings.Contains(l.literal, q), inserts: formatted || strings.Contains(l.inserts, q), lines: l.lines || q == "`"}
	kind := stringToken
	if q == "`" && l.shell {
		kind = shellToken
	}
	if q == "`" && l.language == "code" {
		f.escapes = false
	}
	l.i++
	switch {
	case l.triple && strings.HasPrefix(rest[1:], q+q) && q != "`":
		f.end, f.lines = q+q+q, true
		l.i += 2
	case strings.Contains(l.unclosed, q):
		l.apostrophe(rest)
		return
	}
	l.str(kind, f)
}

// apostrophe reads a ' in other languages: a string, a character, or an unclosed quote such as a Rust lifetime.
func (l *lexer) apostrophe(rest string) {
	line := rest[1:lineEnd(rest, 0)]
	end := 0
	for end < len(line) && line[end] != '\'' {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(line) {
		l.add(token{kind: punctToken, text: "'"})
		return
	}
	body := line[:end]
	l.i += end + 1
	if len(body) < 3 || !strings.ContainsAny(body, "(\"`") {
		v := abstract.Lit(codeEscapes(body, false))
		l.add(token{kind: stringToken, v: &v})
		return
	}
	// The text between two lifetimes is code.
	l.add(token{kind: stringToken, parts: []part{{text: codeEscapes(body, false)}, {code: l.inner(body), text: ""}}})
}

// str reads a string after its opening delimiter.
func (l *lexer) str(kind tokenKind, f form) {
	l.finish(kind, l.body(f))
}

// finish adds a string token with its parts.
func (l *lexer) finish(kind tokenKind, parts []part) {
	if len(parts) > 1 || len(parts) == 1 && parts[0].expr {
		l.add(token{kind: kind, parts: parts})
		return
	}
	v := abstract.Value{}
	if len(parts) == 1 {
		v.Text = parts[0].text
	}
	l.add(token{kind: kind, v: &v})
}

// body reads a string to its end. If there is none, later code may be read wrongly.
func (l *lexer) body(f form) (parts []part) {
	start, nested := l.i, 0
	literal := func() {
		if l.i > start {
			parts = append(parts, part{text: codeEscapes(l.text[start:l.i], f.raw || f.regexp || !f.escapes)})
		}
	}
	for l.i < len(l.text) {
		c := l.text[l.i]
		switch {
		case nested == 0 && f.end != "" && strings.HasPrefix(l.text[l.i:], f.end):
			literal()
			l.i += len(f.end)
			return parts
		case c == '\\' && f.escapes && !(l.language == "code" && strings.HasPrefix(l.text[l.i:], `\(`)):
			l.i = min(len(l.text), l.i+l.escaped(f))
		case c == '\n' && !f.lines:
			l.doubt("a string does not end")
			literal()
			return parts
		case f.open != 0 && c == f.open:
			nested++
			l.i++
		case f.open != 0 && c == f.end[0]:
			nested--
			l.i++
		case f.regexp && c == '[' && l.language != "perl": // in a character class, the delimiter is a plain character
			l.class()
		case f.inserts && strings.IndexByte(`{$#@(\`, c) >= 0:
			before := l.i
			if one, ok := l.insertion(f); ok {
				at := l.i
				l.i = before
				literal()
				l.i, start = at, at
				parts = append(parts, one)
				break
			}
			l.i++
		default:
			l.i++
		}
	}
	if f.end != "" {
		l.doubt("a string does not end")
	}
	literal()
	return parts
}

// class skips a character class of a regular expression.
func (l *lexer) class() {
	for i := l.i + 1; i < len(l.text) && l.text[i] != '\n'; i++ {
		switch l.text[i] {
		case '\\':
			i++
		case ']':
			l.i = i + 1
			return
		case '#', '$':
			if l.language == "ruby" && i+1 < len(l.text) && l.text[i+1] == '{' {
				l.i++
				return // the class contains an expression
			}
		}
	}
	l.i++
}

// escaped returns the length in bytes of the escape sequence at the current position.
func (l *lexer) escaped(f form) int {
	if l.language != "python" || l.i+1 >= len(l.text) {
		return 2
	}
	if strings.HasPrefix(l.text[l.i:], `\N{`) && !f.raw {
		if n := strings.IndexByte(l.text[l.i:], '}'); n > 0 {
			return n + 1
		}
	}
	if l.text[l.i+1] == '{' {
		return 1
	}
	return 2
}

func codeEscapes(s string, raw bool) string {
	if raw || !strings.Contains(s, `\`) {
		return s
	}
	return plain.ANSIC(strings.ReplaceAll(s, "\\\n", ""))
}

// insertion reads an interpolated expression in a string, if one begins here.
func (l *lexer) insertion(f form) (part, bool) {
	rest := l.text[l.i:]
	at := func(s string) bool { return strings.HasPrefix(rest, s) }
	switch l.language {
	case "python":
		if at("{{") {
			l.i++ // the caller skips the second character
			return part{}, false
		}
		if rest[0] == '{' {
			return l.expression(1, '}'), true
		}
	case "node":
		if at("${") {
			return l.expression(2, '}'), true
		}
	case "ruby":
		if at("#{") {
			return l.expression(2, '}'), true
		}
		if at("#@") || at("#$") {
			return l.variable(1), true
		}
	case "php":
		switch {
		case at("{$"):
			return l.expression(1, '}'), true
		case at("${"):
			return l.expression(2, '}'), true
		case rest[0] == '$' && len(rest) > 1 && plain.WordByte(rest[1]):
			return l.variable(0), true
		}
	case "perl":
		switch {
		case f.regexp && (at("(?{") || at("(??{")):
			return l.expression(strings.IndexByte(rest, '{')+1, '}'), true
		case at("${") || at("@{"):
			return l.expression(2, '}'), true
		case (rest[0] == '$' || rest[0] == '@') && len(rest) > 1 && (plain.WordByte(rest[1]) || rest[1] == '$' && len(rest) > 2 && plain.WordByte(rest[2])):
			return l.variable(0), true
		}
	default:
		if at("${") || at("#{") || at("$(") || at(`\(`) {
			closing := byte('}')
			if rest[1] == '(' {
				closing = ')'
			}
			return l.expression(2, closing), true
		}
	}
	return part{}, false
}

// expression reads code in a string up to a closing bracket; n is the length of its opening delimiter.
func (l *lexer) expression(n int, closing byte) part {
	start := l.i
	outer := *l
	l.i += n
	l.tokens, l.open, l.pending, l.spaced, l.newline = nil, nil, nil, false, false
	if l.depth++; l.depth > deepest {
		l.doubt("expressions in strings are nested too deeply")
		l.i = len(l.text)
	}
	ended := false
	for l.i < len(l.text) && !ended {
		c := l.text[l.i]
		if len(l.open) == 0 {
			if c == closing {
				ended = true
				break
			}
			if l.language == "python" && (c == ':' || c == '!' && !strings.HasPrefix(l.text[l.i:], "!=")) {
				l.specification()
				ended = true
				break
			}
		}
		l.next()
	}
	if !ended || len(l.pending) > 0 {
		l.doubt("an expression in a string does not end")
	}
	if l.language == "python" && len(l.tokens) > 0 && l.last().text == "=" && l.last().kind == punctToken {
		l.tokens = l.tokens[:len(l.tokens)-1] // Python's {x=} also prints the expression
	}
	l.i = min(len(l.text), l.i+1)
	one := part{text: l.text[start:l.i], code: l.tokens, expr: true}
	l.restore(&outer)
	return one
}

// restore returns to the code around an expression, after its end.
func (l *lexer) restore(outer *lexer) {
	i, unread := l.i, l.unread
	*l = *outer
	l.i, l.unread = i, unread
}

// specification reads the format specification of a Python f-string field, up to the closing brace. It may contain
// expressions.
func (l *lexer) specification() {
	for l.i < len(l.text) && l.text[l.i] != '}' {
		if l.text[l.i] != '{' {
			l.i++
			continue
		}
		one := l.expression(1, '}')
		l.tokens = append(append(l.tokens, token{kind: punctToken, text: ";"}), one.code...)
	}
}

// variable reads an interpolated variable with its subscripts; n is the length of its opening delimiter.
func (l *lexer) variable(n int) part {
	start := l.i
	outer := *l
	l.i += n
	l.tokens, l.open, l.pending, l.spaced, l.newline = nil, nil, nil, false, false
	l.depth++
	for l.i < len(l.text) && (l.sigil(l.text[l.i]) || l.text[l.i] == '$') && !plain.WordByte(l.text[min(l.i+1, len(l.text)-1)]) {
		l.i++
	}
	if l.i < len(l.text) {
		l.word(l.text[l.i:])
	}
	for n := 0; n < 8 && l.language != "ruby"; n++ {
		rest := l.text[l.i:]
		if strings.HasPrefix(rest, "->[") || strings.HasPrefix(rest, "->{") {
			l.next()
		} else if rest == "" || rest[0] != '[' && (rest[0] != '{' || l.language != "perl") || l.depth > deepest {
			break
		}
		for l.next(); l.i < len(l.text) && len(l.open) > 0; {
			l.next()
		}
	}
	one := part{text: l.text[start:l.i], code: l.tokens, expr: true}
	l.restore(&outer)
	return one
}

// inner splits nested code into tokens.
func (l *lexer) inner(text string) []token {
	sub := &lexer{language: l.language, grammar: l.grammar, text: text, depth: l.depth + 1}
	if sub.depth > deepest {
		l.doubt("expressions in strings are nested too deeply")
		return nil
	}
	for sub.i < len(sub.text) {
		sub.next()
	}
	if sub.unread != "" {
		l.doubt(sub.unread)
	}
	return sub.tokens
}

func (l *lexer) word(rest string) {
	n := 1
	for n < len(rest) && plain.WordByte(rest[n]) {
		n++
	}
	w := rest[:n]
	if n < len(rest) && (rest[n] == '"' || rest[n] == '\'') && n <= 2 && l.language == "python" {
		lower := strings.ToLower(w)
		if strings.Trim(lower, "rbfut") == "" {
			l.i += n
			l.quoted(rest[n:], strings.Contains(lower, "r"), strings.ContainsAny(lower, "ft"))
			return
		}
	}
	if l.language == "perl" && l.quoteOperator(w, n) {
		return
	}
	if l.language == "perl" && (w == "__END__" || w == "__DATA__") && !l.isKey(n) {
		l.i = len(l.text)
		return
	}
	if l.language == "code" && (w == "r" || w == "br") && l.rustRaw(rest[n:]) {
		return
	}
	l.i += n
	if w[0] >= '0' && w[0] <= '9' {
		l.add(token{kind: numberToken, text: w})
		return
	}
	l.add(token{kind: nameToken, text: w})
}

// rustRaw reads Rust's r#"…"#.
func (l *lexer) rustRaw(rest string) bool {
	hashes := len(rest) - len(strings.TrimLeft(rest, "#"))
	if hashes >= len(rest) || rest[hashes] != '"' || hashes == 0 {
		return false
	}
	l.i = len(l.text) - len(rest) + hashes + 1
	l.str(stringToken, form{end: `"` + rest[:hashes], lines: true})
	return true
}

// isKey reports whether the word of n bytes at the current position is a Perl hash key, or a name after a sigil,
// an arrow or sub.
func (l *lexer) isKey(n int) bool {
	after := strings.TrimLeft(l.text[l.i+n:], " \t\r\n")
	if strings.HasPrefix(after, "=>") {
		return true
	}
	t := l.last()
	if t == nil {
		return false
	}
	switch {
	case t.kind == nameToken:
		return t.text == "sub"
	case t.kind != punctToken || l.newline:
		return false
	case t.text == "->" || t.text == "::":
		return true
	case t.text == "{":
		return strings.HasPrefix(after, "}")
	}
	if t.text == "-" && !l.spaced && l.text[l.i:l.i+n] == "s" { // the file test -s
		n := len(l.tokens)
		return n < 2 || l.tokens[n-2].kind == punctToken || strings.Contains(l.before, " "+l.tokens[n-2].text+" ")
	}
	return !l.spaced && (t.text == "%" || t.text == "&" || t.text == "*" || t.text == "@" || t.text == "$")
}

// closing returns the closing delimiter for an opening one, and the opening one again if pairs nest.
func closing(open byte) (end string, nests byte) {
	if i := strings.IndexByte("({[<", open); i >= 0 {
		return ")}]>"[i : i+1], open
	}
	return string(open), 0
}

// quoteOperator reads Perl's q(…), qq{…}, qx[…], m/…/, s/…/…/ and the like, with any delimiter.
func (l *lexer) quoteOperator(w string, n int) bool {
	switch w {
	case "q", "qq", "qw", "qx", "qr", "m", "s", "y", "tr":
	default:
		return false
	}
	if l.isKey(n) {
		return false
	}
	at := l.i + n
	from := at
	for at < len(l.text) && strings.IndexByte(" \t\r\n", l.text[at]) >= 0 {
		at++
	}
	if at >= len(l.text) {
		return false
	}
	if at > from && (l.text[at] == '#' || plain.WordByte(l.text[at])) {
		l.doubt("a Perl word can begin a string")
		return false
	}
	delimiter := l.text[at]
	end, nests := closing(delimiter)
	f := form{end: end, open: nests, escapes: true, raw: true, lines: true}
	f.inserts = delimiter != '\'' && w != "q" && w != "qw" && w != "y" && w != "tr"
	kind := stringToken
	switch w {
	case "qx":
		kind = shellToken
	case "qr", "m", "s":
		f.regexp = true
	}
	l.i = at + 1
	if w != "s" && w != "y" && w != "tr" {
		if w == "qq" || w == "qx" {
			f.raw = false
		}
		l.str(kind, f)
		if f.regexp {
			l.flags()
		}
		return true
	}
	parts := l.body(f)
	if nests != 0 {
		for l.i < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.i]) >= 0 {
			l.i++
		}
		if l.i < len(l.text) {
			f.end, f.open = closing(l.text[l.i])
			l.i++
		}
	}
	start := l.i
	f.regexp = false
	plainForm := f
	plainForm.inserts = false
	l.body(plainForm)
	replaced := l.text[start:max(start, l.i-1)]
	switch evaluated := strings.Count(l.flags(), "e"); {
	case w != "s" || !f.inserts && evaluated == 0:
	case evaluated > 0:
		code := l.inner(replaced)
		if evaluated > 1 {
			code = append(append([]token{{kind: nameToken, text: "eval"}, {kind: punctToken, text: "("}}, code...), token{kind: punctToken, text: ")"})
		}
		parts = append(parts, part{text: replaced, code: code, expr: true})
	default:
		parts = append(parts, l.inText(replaced, f)...)
	}
	l.finish(kind, parts)
	return true
}

// inText returns the parts of a text that is a string as a whole.
func (l *lexer) inText(text string, f form) []part {
	f.end, f.open, f.lines = "", 0, true
	sub := &lexer{language: l.language, grammar: l.grammar, text: text, depth: l.depth + 1}
	if sub.depth > deepest {
		l.doubt("expressions in strings are nested too deeply")
		return nil
	}
	parts := sub.body(f)
	if sub.unread != "" {
		l.doubt(sub.unread)
	}
	return parts
}

// A turn says whether the token before the current position ends a value.
type turn uint8

const (
	expected turn = iota // a value is expected
	ended                // a value has ended
	unclear
)

// turn reports whether the last token ends a value; rest is the text after it.
func (l *lexer) turn(rest string) turn {
	t := l.last()
	if t == nil || l.ends && l.newline {
		return expected
	}
	switch t.kind {
	case nameToken:
		n := len(l.tokens)
		member := n > 1 && l.tokens[n-2].kind == punctToken && (l.tokens[n-2].text == "." || l.tokens[n-2].text == "->")
		switch {
		case member && l.language == "node", l.sigil(t.text[0]):
			return ended
		case strings.Contains(l.before, " "+t.text+" ") && !member:
			return expected
		case l.language == "node" && (t.text == "yield" || t.text == "await"),
			l.language != "node" && l.spaced && len(rest) > 1 && rest[1] != ' ' && rest[1] != '=' && l.language != "awk":
			return unclear // an argument or an operator may follow
		}
		return ended
	case punctToken:
		switch t.text {
		case ")":
			if l.closed == condition {
				return unclear
			}
			return ended
		case "]":
			return ended
		case "}":
			switch {
			case l.language == "awk":
				return expected
			case l.closed == subscript:
				return ended
			}
			return unclear
		case "+", "-":
			if n := len(l.tokens); n > 1 && l.tokens[n-2].text == t.text && !t.spaced {
				return unclear
			}
		case "!":
			if !t.spaced && l.language == "node" && len(l.tokens) > 1 && l.tokens[len(l.tokens)-2].kind != punctToken {
				return unclear
			}
		}
		return expected
	}
	return ended
}

// regular reads a regular expression, if one begins here. If it may also be a division, and the two readings
// differ for the later code, it records that as unread.
func (l *lexer) regular(rest string) bool {
	turn := l.turn(rest)
	if turn == ended {
		return false
	}
	if turn == unclear {
		to := strings.IndexByte(rest[1:], '/')
		if line := lineEnd(rest, 0); to < 0 || l.language == "node" && to+1 > line {
			return false
		}
		if strings.ContainsAny(rest[1:to+1], "\"'`(\\[") {
			l.doubt("a slash can begin a regular expression or be a division")
		}
		return false
	}
	l.i++
	l.str(stringToken, form{end: "/", escapes: true, regexp: true, inserts: l.language == "ruby" || l.language == "perl", lines: l.language == "perl" || l.language == "ruby"})
	if l.language != "awk" {
		l.flags()
	}
	return true
}

// flags skips the flags after a regular expression and returns them.
func (l *lexer) flags() string {
	start := l.i
	for l.i < len(l.text) && plain.WordByte(l.text[l.i]) {
		l.i++
	}
	return l.text[start:l.i]
}

// percent reads Ruby's strings that begin with a percent sign.
func (l *lexer) percent(rest string) bool {
	kind, at := byte('Q'), 1
	if len(rest) > 2 && strings.IndexByte("qQwWiIxrs", rest[1]) >= 0 {
		kind, at = rest[1], 2
	}
	if at >= len(rest) || plain.WordByte(rest[at]) || strings.IndexByte(" \t\r\n=", rest[at]) >= 0 {
		return false
	}
	turn := l.turn(rest)
	if turn == ended {
		return false
	}
	end, nests := closing(rest[at])
	if turn == unclear && strings.ContainsAny(rest[at+1:lineEnd(rest, 0)], "\"'`") {
		l.doubt("a character can begin a string or be an operator")
	}
	l.i += at + 1
	token := stringToken
	if kind == 'x' {
		token = shellToken
	}
	l.str(token, form{end: end, open: nests, escapes: true, raw: strings.IndexByte("qwis", kind) >= 0, inserts: strings.IndexByte("QWIxr", kind) >= 0, regexp: kind == 'r', lines: true})
	return true
}

// character reads Ruby's character literal ?x.
func (l *lexer) character(rest string) bool {
	if len(rest) < 2 || strings.IndexByte(" \t\r\n", rest[1]) >= 0 || l.turn("? ") == ended {
		return false
	}
	n := 2
	if rest[1] == '\\' {
		n = min(3, len(rest))
	}
	if n < len(rest) && plain.WordByte(rest[n]) && plain.WordByte(rest[n-1]) {
		return false
	}
	v := abstract.Lit(rest[1:n])
	l.add(token{kind: stringToken, v: &v})
	l.i += n
	return true
}

// document reads the start of a here-document, and reports whether there is one.
func (l *lexer) document(rest string) bool {
	n := len(l.here)
	d := document{form: form{escapes: true, inserts: true, lines: true}}
	blanks := func() {
		for n < len(rest) && l.language == "php" && (rest[n] == ' ' || rest[n] == '\t') {
			n++
		}
	}
	if l.here == "<<" && n < len(rest) && (rest[n] == '~' || rest[n] == '-' && l.language == "ruby") {
		d.indent = true
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
		d.end = rest[n+1 : n+1+end]
		n += end + 2
		if quote == '\'' {
			d.form.inserts, d.form.escapes = false, false
		}
		if quote == '`' {
			kind = shellToken
		}
	} else {
		from := n
		for n < len(rest) && plain.WordByte(rest[n]) {
			n++
		}
		d.end = rest[from:n]
		if d.end == "" || d.end[0] >= '0' && d.end[0] <= '9' {
			return false
		}
	}
	if d.end == "" || l.here == "<<" && (len(l.pending) > 16 || !l.opensDocument(rest)) {
		return false
	}
	d.indent = d.indent || l.language == "php"
	d.token = len(l.tokens)
	l.add(token{kind: kind, v: &abstract.Value{}})
	l.i += n
	l.pending = append(l.pending, d)
	return true
}

// opensDocument reports whether << begins a here-document and is not an operator.
func (l *lexer) opensDocument(rest string) bool {
	turn, last := l.turn(rest), l.last()
	if turn != unclear || last.kind != nameToken {
		return turn == expected
	}
	// After a function's name it does, after a variable it does not.
	if l.language == "perl" {
		l.doubt("<< can begin a here-document or be an operator")
	}
	for i := range l.tokens[:len(l.tokens)-1] {
		if l.unread != "" {
			return false
		}
		if l.tokens[i].text == last.text && l.tokens[i].kind == nameToken && (strings.Contains("= | , ) += =>", l.tokens[i+1].text) || i > 0 && strings.Contains("for => | , * &", l.tokens[i-1].text)) {
			return false
		}
	}
	return true
}

// documents reads the text of the here-documents that begin at this line.
func (l *lexer) documents() {
	for _, d := range l.pending {
		start, from := l.i, l.i
		for {
			if from >= len(l.text) {
				l.doubt("a here-document does not end")
				l.i = len(l.text)
				break
			}
			end := lineEnd(l.text, from)
			line := strings.TrimSuffix(l.text[from:end], "\r")
			if d.indent {
				line = strings.TrimLeft(line, " \t")
			}
			if rest, ok := strings.CutPrefix(line, d.end); ok && (rest == "" || l.language == "php" && !plain.WordByte(rest[0])) {
				l.i = end - len(rest)
				break
			}
			from = min(len(l.text), end+1)
			if end == len(l.text) {
				from = end
			}
		}
		t := &l.tokens[d.token]
		parts := l.inText(l.text[start:min(from, l.i)], d.form)
		switch {
		case len(parts) == 1 && !parts[0].expr:
			t.v.Text = parts[0].text
		case len(parts) > 0:
			t.v, t.parts = nil, parts
		}
	}
	l.pending = l.pending[:0]
}
