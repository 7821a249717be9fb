package sanitize

import (
	"regexp"
	"strings"
	"sync"

	"golang.org/x/net/html"

	"github.com/shieldcli/shield/internal/prefilter"
)

// A style is a way of hiding text by CSS declarations; see rules/hidden.yaml.
type style struct {
	name            string
	literals        []string
	pattern, unless string
}

// hidingStyles returns a function that finds hiding styles in CSS declarations.
var hidingStyles = sync.OnceValue(func() func(declarations string) string {
	literals := make([][]string, len(styles))
	patterns, unless := make([]func() *regexp.Regexp, len(styles)), make([]func() *regexp.Regexp, len(styles))
	for i, s := range styles {
		literals[i] = s.literals
		patterns[i], unless[i] = prefilter.Lazy(s.pattern), prefilter.Lazy(s.unless)
	}
	set, _ := prefilter.New(literals)
	return func(declarations string) string {
		found := make([]uint64, set.Words())
		prefilter.Scan(set, declarations, found)
		for i, s := range styles {
			if found[i>>6]&(1<<(i&63)) != 0 && patterns[i]().MatchString(declarations) && (s.unless == "" || !unless[i]().MatchString(declarations)) {
				return s.name
			}
		}
		return ""
	}
})

// maxStyle is how much of a style is read, in bytes.
const maxStyle = 4 << 10

var styleComment = prefilter.Lazy(`/\*(?s:.*?)(?:\*/|\z)`)

// hidingStyle returns how CSS declarations hide text; "" if they do not.
func hidingStyle(declarations string) string {
	d := declarations[:min(len(declarations), maxStyle)]
	if strings.Contains(d, "/*") {
		d = styleComment().ReplaceAllString(d, "")
	}
	var b strings.Builder
	b.WriteByte(';')
	for _, r := range strings.ToLower(d) {
		if r != ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' {
			b.WriteRune(r)
		}
		if r == ';' {
			b.WriteByte(';') // so that a pattern can match two adjacent declarations
		}
	}
	b.WriteByte(';')
	return hidingStyles()(b.String())
}

// maxMarkup is how many bytes of a hidden element or a style sheet are read.
const maxMarkup = 1 << 20

// minHidden is the shortest hidden text that is examined, in bytes.
const minHidden = 8

// markup finds text that rendered HTML and Markdown do not show. Comments and hidden elements are
// removed; they are reported if they contain a prompt injection.
func (t *text) markup() {
	t.markdown()
	at := strings.IndexByte(t.s, '<')
	if at < 0 || !strings.ContainsAny(t.s[at+1:], "!>") {
		return
	}
	m := markup{text: t, at: at}
	z := html.NewTokenizer(strings.NewReader(t.s[at:]))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		z.NextIsNotRawText()
		m.end = m.at + len(z.Raw())
		m.token(z, kind)
		m.at = m.end
	}
	if m.at < len(t.s) { // an unterminated tag
		m.comment(m.at, len(t.s), t.s[m.at:])
	}
	if m.depth > 0 {
		m.close(len(t.s))
	}
}

// A markup is the state of parsing a text's HTML tags.
type markup struct {
	*text
	at, end int // start and end of the token

	name   string // name of the hidden element; "" outside of one
	how    string // how the element is hidden
	depth  int    // nesting of elements of that name
	from   int    // start of the element
	inside strings.Builder

	classes map[string]string // selectors of styles that hide text → how
	style   bool              // inside a style element
}

func (m *markup) token(z *html.Tokenizer, kind html.TokenType) {
	switch kind {
	case html.CommentToken:
		m.comment(m.at, m.end, string(z.Text()))
	case html.TextToken:
		switch {
		case m.style:
			m.rules(m.s[m.at:m.end])
		case m.depth > 0 && m.inside.Len() > maxMarkup:
			m.unread = true
		case m.depth > 0:
			m.inside.Write(z.Text())
			m.inside.WriteByte(' ')
		}
	case html.StartTagToken, html.SelfClosingTagToken:
		m.start(z, kind == html.SelfClosingTagToken)
	case html.EndTagToken:
		name, _ := z.TagName()
		m.style = false
		if m.depth > 0 && string(name) == m.name {
			if m.depth--; m.depth == 0 {
				m.close(m.end)
			}
		}
	}
}

// voidElements are the elements without an end tag.
var voidElements = map[string]bool{"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true, "input": true, "link": true, "meta": true, "source": true, "track": true, "wbr": true}

// start reads a tag and its attributes.
func (m *markup) start(z *html.Tokenizer, closed bool) {
	b, more := z.TagName()
	name := string(b)
	how := ""
	if name == "template" || name == "noembed" || name == "noframes" {
		how = "text in an HTML element that is not displayed"
	}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch k := string(key); {
		case k == "style":
			if by := hidingStyle(string(value)); by != "" {
				how = "text that is " + by
			}
		case k == "hidden":
			how = "text in an HTML element that is hidden"
		case k == "color" && name == "font" && hidingStyle("color:"+string(value)) != "":
			how = "white text on a white background"
		case k == "class" || k == "id":
			for _, c := range strings.Fields(string(value)) {
				if by := m.classes[map[string]string{"class": ".", "id": "#"}[k]+c]; by != "" {
					how = "text that is " + by
				}
			}
		case attributes[k] && len(value) >= minHidden:
			m.hidden(m.at, m.end, string(value), "the attribute "+k)
		}
	}
	switch {
	case name == "style" && !closed:
		m.style = true
	case closed || voidElements[name]:
	case m.depth > 0 && name == m.name:
		m.depth++
	case m.depth == 0 && how != "":
		m.name, m.how, m.depth, m.from = name, how, 1, m.at
		m.inside.Reset()
	}
}

// close ends a hidden element.
func (m *markup) close(end int) {
	m.depth = 0
	if inside := strings.TrimSpace(m.inside.String()); inside != "" {
		m.hidden(m.from, end, inside, m.how)
		m.cut(m.from, end)
	}
}

// comment examines a comment, or other markup that a page does not show.
func (m *markup) comment(start, end int, inside string) {
	if m.depth > 0 {
		m.inside.WriteString(inside)
		return
	}
	m.hidden(start, end, inside, "a comment")
	m.cut(start, end)
}

// hidden reports hidden text that contains a prompt injection.
func (t *text) hidden(start, end int, inside, how string) {
	if len(inside) < minHidden {
		return
	}
	rule, whole := hiddenTextRule(inside)
	t.unread = t.unread || !whole
	if rule != nil {
		t.find(Hidden, rule.ID, High, start, end, how+": "+excerpt(inside))
	}
}

// ruleSet matches one rule of a style sheet: selectors and declarations.
var ruleSet = prefilter.Lazy(`([^{}]{1,400})\{([^{}]{1,1000})\}`)

// maxClasses is the number of hiding selectors that are remembered.
const maxClasses = 4096

// rules reads a style sheet for classes and ids that hide elements.
func (m *markup) rules(sheet string) {
	if len(sheet) > maxMarkup {
		m.unread = true
		return
	}
	for _, r := range ruleSet().FindAllStringSubmatch(sheet, maxClasses) {
		by := hidingStyle(r[2])
		if by == "" {
			continue
		}
		if m.classes == nil {
			m.classes = map[string]string{}
		}
		for sel := range strings.SplitSeq(r[1], ",") {
			sel = strings.TrimSpace(sel)
			if i := strings.LastIndexAny(sel, ".#"); i >= 0 && !strings.ContainsAny(sel[i+1:], " >:[") && len(m.classes) < maxClasses {
				m.classes[sel[i:]] = by
			}
		}
	}
}

// reference matches a Markdown link definition that is used as a comment, so that it is never shown.
var reference = prefilter.Lazy(`(?m)^ {0,3}\[(?://|comment|_|-|#|\s?)\]: ?<?[^\s>]{0,200}>?[ \t]+["'(]([^\n]{8,1000})["')][ \t]*$`)

// markdown finds text that Markdown does not show, in addition to hidden HTML.
func (t *text) markdown() {
	if !strings.Contains(t.s, "]: ") {
		return
	}
	for _, x := range reference().FindAllStringSubmatchIndex(t.s, -1) {
		t.hidden(x[0], x[1], t.s[x[2]:x[3]], "a Markdown comment")
		t.cut(x[0], x[1])
	}
}
