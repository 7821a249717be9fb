package script

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// A token is one lexical element of code.
type token struct {
	kind    tokenKind
	text    string
	v       *abstract.Value // of a string or a command; nil for others
	names   []string        // in the expressions of a string
	spaced  bool            // blanks stand before it
	newline bool            // a line break stands before it
}

type tokenKind uint8

const (
	punctToken tokenKind = iota
	nameToken
	numberToken
	stringToken
	shellToken // `…`, %x(…), qx(…): text that a shell runs
)

// maxTokens bounds how much of a program is read.
const maxTokens = 20000

// lexCode cuts code into tokens, which it appends to room. It knows the strings and comments of Python,
// Perl, Ruby, JavaScript, PHP, Lua and awk well enough to find their calls;
// what it cannot place becomes punctuation.
func lexCode(language, text string, room []token) []token {
	l := &lexer{language: language, text: text, tokens: room}
	for l.i < len(l.text) && len(l.tokens) < maxTokens {
		l.next()
	}
	return l.tokens
}

type lexer struct {
	language string
	text     string
	i        int
	spaced   bool
	newline  bool
	tokens   []token
	names    []string // of the string that is read
}

func (l *lexer) add(t token) {
	t.spaced, t.newline = l.spaced, l.newline
	t.names, l.names = l.names, nil
	l.spaced, l.newline = false, false
	l.tokens = append(l.tokens, t)
}

func (l *lexer) addValue(kind tokenKind, v abstract.Value) { l.add(token{kind: kind, v: &v}) }

func (l *lexer) next() {
	c := l.text[l.i]
	rest := l.text[l.i:]
	switch {
	case c == '\n':
		l.newline, l.spaced = true, true
		l.i++
	case c == ' ' || c == '\t' || c == '\r':
		l.spaced = true
		l.i++
	case c == '#' && l.language != "node" && l.language != "lua" || strings.HasPrefix(rest, "//") && (l.language == "node" || l.language == "php") ||
		strings.HasPrefix(rest, "--") && l.language == "lua":
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			l.i += n
		} else {
			l.i = len(l.text)
		}
	case strings.HasPrefix(rest, "/*") && (l.language == "node" || l.language == "php"):
		if n := strings.Index(rest[2:], "*/"); n >= 0 {
			l.i += n + 4
		} else {
			l.i = len(l.text)
		}
	case c == '"' || c == '\'':
		l.quoted(rest, false, false)
	case c == '`':
		l.backquoted(rest)
	case plain.WordByte(c) || (c == '$' || c == '@') && len(rest) > 1 && plain.WordByte(rest[1]) && (l.language == "perl" || l.language == "php" || l.language == "ruby"):
		l.word(rest)
	case c == '%' && l.language == "ruby" && len(rest) > 2 && (rest[1] == 'x' || rest[1] == 'q' || rest[1] == 'Q') && !plain.WordByte(rest[2]):
		kind := stringToken
		if rest[1] == 'x' {
			kind = shellToken
		}
		l.delimited(2, kind, true)
	default:
		n := 1
		if l.language == "lua" && strings.HasPrefix(rest, "..") {
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

// quoted reads a string; raw ones keep their backslashes, formatted ones hold
// expressions in braces.
func (l *lexer) quoted(rest string, raw, formatted bool) {
	q := rest[:1]
	if l.language == "python" && len(rest) > 5 && rest[1] == q[0] && rest[2] == q[0] {
		body, _, ok := strings.Cut(rest[3:], rest[:3])
		if !ok {
			body = rest[3:]
		}
		l.i += min(len(rest), len(body)+6)
		l.addValue(stringToken, l.interpolated(codeEscapes(body, raw), formatted))
		return
	}
	text, n := quotedString(rest, q[0], !raw && !(q == "'" && (l.language == "perl" || l.language == "php" || l.language == "ruby")))
	l.i += n
	double := q == `"` && (l.language == "perl" || l.language == "php" || l.language == "ruby")
	l.addValue(stringToken, l.interpolated(text, formatted || double))
}

// quotedString reads a quoted string at the start of s and returns its text
// and length. A string that does not end is taken to the end of its line.
func quotedString(s string, quote byte, escapes bool) (text string, n int) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return codeEscapes(s[1:i], !escapes), i + 1
		}
	}
	line, _, _ := strings.Cut(s[1:], "\n")
	return codeEscapes(line, !escapes), len(line) + 1
}

func codeEscapes(s string, raw bool) string {
	if raw || !strings.Contains(s, `\`) {
		return s
	}
	return plain.ANSIC(strings.ReplaceAll(s, "\\\n", ""))
}

// maxNames bounds the names that are taken from one expression in a string.
const maxNames = 16

var identifier = prefilter.Lazy(`[A-Za-z_][\w.]*`)

// interpolated returns a string in which expressions are unknown parts.
func (l *lexer) interpolated(text string, formatted bool) abstract.Value {
	if !formatted {
		return abstract.Lit(text)
	}
	var b abstract.Builder
	for i := 0; i < len(text); i++ {
		lead := 0
		switch l.language {
		case "python":
			if text[i] != '{' {
				b.Literal(text[i : i+1])
				continue
			}
		case "node", "ruby":
			if i+1 >= len(text) || text[i+1] != '{' || text[i] != '$' && text[i] != '#' {
				b.Literal(text[i : i+1])
				continue
			}
			lead = 1
		default:
			if text[i] != '$' || i+1 >= len(text) || !plain.WordByte(text[i+1]) && text[i+1] != '{' {
				b.Literal(text[i : i+1])
				continue
			}
			end := i + 1
			if text[end] == '{' {
				lead = 1
				break
			}
			for end < len(text) && plain.WordByte(text[end]) {
				end++
			}
			b.Add(abstract.Unknown(text[i:end], abstract.Foreign))
			i = end - 1
			continue
		}
		end := strings.IndexByte(text[i+lead:], '}')
		if end < 0 {
			b.Literal(text[i:])
			break
		}
		b.Add(abstract.Unknown(text[i:i+lead+end+1], abstract.Foreign))
		l.names = append(l.names, identifier().FindAllString(text[i:i+lead+end], maxNames)...)
		i += lead + end
	}
	return b.Value()
}

func (l *lexer) backquoted(rest string) {
	text, n := quotedString(rest, '`', true)
	if n > len(rest) || n == 0 {
		n = len(rest)
	}
	l.i += n
	if l.language == "node" {
		// A template runs over lines.
		if body, _, ok := strings.Cut(rest[1:], "`"); ok {
			text = body
			l.i += len(body) + 2 - n
		}
		l.addValue(stringToken, l.interpolated(text, true))
		return
	}
	kind := stringToken
	if l.language == "perl" || l.language == "ruby" || l.language == "php" {
		kind = shellToken
	}
	l.addValue(kind, l.interpolated(text, l.language != "awk"))
}

func (l *lexer) word(rest string) {
	n := 1
	for n < len(rest) && plain.WordByte(rest[n]) {
		n++
	}
	w := rest[:n]
	if n < len(rest) && (rest[n] == '"' || rest[n] == '\'') && n <= 2 && l.language == "python" {
		lower := strings.ToLower(w)
		if strings.Trim(lower, "rbfu") == "" {
			l.i += n
			l.quoted(rest[n:], strings.Contains(lower, "r"), strings.Contains(lower, "f"))
			return
		}
	}
	if l.language == "perl" && n < len(rest) {
		switch w {
		case "q", "qq", "qw":
			if !plain.WordByte(rest[n]) && rest[n] != ' ' && rest[n] != '=' && rest[n] != ',' && rest[n] != ';' && rest[n] != ')' {
				l.delimited(n, stringToken, w == "qq")
				return
			}
		case "qx":
			l.delimited(n, shellToken, true)
			return
		}
	}
	l.i += n
	if w[0] >= '0' && w[0] <= '9' {
		l.add(token{kind: numberToken, text: w})
		return
	}
	l.add(token{kind: nameToken, text: w})
}

// delimited reads q(…), qx{…}, %x[…]: any character delimits.
func (l *lexer) delimited(skip int, kind tokenKind, formatted bool) {
	rest := l.text[l.i+skip:]
	if rest == "" {
		l.i = len(l.text)
		return
	}
	closing := rest[:1]
	switch rest[0] {
	case '(':
		closing = ")"
	case '{':
		closing = "}"
	case '[':
		closing = "]"
	case '<':
		closing = ">"
	}
	body, _, ok := strings.Cut(rest[1:], closing)
	l.i += skip + 1 + len(body)
	if ok {
		l.i++
	}
	l.i = min(l.i, len(l.text))
	l.addValue(kind, l.interpolated(body, formatted))
}
