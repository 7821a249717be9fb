package sanitize

import (
	"regexp"
	"strings"
	"sync"

	"golang.org/x/net/html"

	"github.com/shieldcli/shield/internal/prefilter"
)

// A hidingCSSStyle is a way of hiding text by CSS declarations; see rules/hidden.yaml.
type hidingCSSStyle struct {
	name                      string
	prefilterLiterals         []string
	pattern, exceptionPattern string
}

// cssHidingMethodFinder returns a function that finds hiding styles in CSS declarations.
var cssHidingMethodFinder = sync.OnceValue(func() func(declarations string) string {
	literals := make([][]string, len(styles))
	patterns, unless := make([]func() *regexp.Regexp, len(styles)), make([]func() *regexp.Regexp, len(styles))
	for i, s := range styles {
		literals[i] = s.prefilterLiterals
		patterns[i], unless[i] = prefilter.LazyRegexp(s.pattern), prefilter.LazyRegexp(s.exceptionPattern)
	}
	set, _ := prefilter.TryNewLiteralSet(literals)
	return func(declarations string) string {
		found := make([]uint64, set.ExpressionBitsetWords())
		prefilter.ScanForLiterals(set, declarations, found)
		for i, s := range styles {
			if found[i>>6]&(1<<(i&63)) != 0 && patterns[i]().MatchString(declarations) && (s.exceptionPattern == "" || !unless[i]().MatchString(declarations)) {
				return s.name
			}
		}
		return ""
	}
})

// maxCSSDeclarationsBytes is how much of a style is read, in bytes.
const maxCSSDeclarationsBytes = 4 << 10

var styleComment = prefilter.LazyRegexp(`/\*(?s:.*?)(?:\*/|\z)`)

// cssHidingMethod returns how CSS declarations hide text; "" if they do not.
func cssHidingMethod(declarations string) string {
	d := declarations[:min(len(declarations), maxCSSDeclarationsBytes)]
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
	return cssHidingMethodFinder()(b.String())
}

// maxMarkupBytes is how many bytes of a hidden element or a style sheet are read.
const maxMarkupBytes = 1 << 20

// minExaminedHiddenTextBytes is the shortest hidden text that is examined, in bytes.
const minExaminedHiddenTextBytes = 8

// examineMarkup finds text that rendered HTML and Markdown do not show. Comments and hidden elements are
// removed; they are reported if they contain a prompt injection.
func (t *examinedText) examineMarkup() {
	t.examineMarkdown()
	at := strings.IndexByte(t.content, '<')
	if at < 0 || !strings.ContainsAny(t.content[at+1:], "!>") {
		return
	}
	m := markupParser{examinedText: t, tokenStart: at}
	z := html.NewTokenizer(strings.NewReader(t.content[at:]))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		z.NextIsNotRawText()
		m.tokenEnd = m.tokenStart + len(z.Raw())
		m.handleToken(z, kind)
		m.tokenStart = m.tokenEnd
	}
	if m.tokenStart < len(t.content) { // an unterminated tag
		m.examineComment(m.tokenStart, len(t.content), t.content[m.tokenStart:])
	}
	if m.hiddenElementNestingDepth > 0 {
		m.endHiddenElement(len(t.content))
	}
}

// A markupParser is the state of parsing a text's HTML tags.
type markupParser struct {
	*examinedText
	tokenStart, tokenEnd int // start and end of the token

	hiddenElementName         string // name of the hidden element; "" outside of one
	hidingMethod              string // how the element is hidden
	hiddenElementNestingDepth int    // number of open elements with the name hiddenElementName
	hiddenElementStart        int    // start of the element
	hiddenContent             strings.Builder

	hidingMethodBySelector map[string]string // how an element is hidden, by the CSS selector of the style that hides it
	inStyleElement         bool              // inside a style element
}

func (m *markupParser) handleToken(z *html.Tokenizer, kind html.TokenType) {
	switch kind {
	case html.CommentToken:
		m.examineComment(m.tokenStart, m.tokenEnd, string(z.Text()))
	case html.TextToken:
		switch {
		case m.inStyleElement:
			m.readStyleSheet(m.content[m.tokenStart:m.tokenEnd])
		case m.hiddenElementNestingDepth > 0 && m.hiddenContent.Len() > maxMarkupBytes:
			m.partlyUnexamined = true
		case m.hiddenElementNestingDepth > 0:
			m.hiddenContent.Write(z.Text())
			m.hiddenContent.WriteByte(' ')
		}
	case html.StartTagToken, html.SelfClosingTagToken:
		m.handleStartTag(z, kind == html.SelfClosingTagToken)
	case html.EndTagToken:
		name, _ := z.TagName()
		m.inStyleElement = false
		if m.hiddenElementNestingDepth > 0 && string(name) == m.hiddenElementName {
			if m.hiddenElementNestingDepth--; m.hiddenElementNestingDepth == 0 {
				m.endHiddenElement(m.tokenEnd)
			}
		}
	}
}

// voidElements are the elements without an end tag.
var voidElements = map[string]bool{"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true, "input": true, "link": true, "meta": true, "source": true, "track": true, "wbr": true}

// handleStartTag reads a tag and its attributes.
func (m *markupParser) handleStartTag(z *html.Tokenizer, closed bool) {
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
			if by := cssHidingMethod(string(value)); by != "" {
				how = "text that is " + by
			}
		case k == "hidden":
			how = "text in an HTML element that is hidden"
		case k == "color" && name == "font" && cssHidingMethod("color:"+string(value)) != "":
			how = "white text on a white background"
		case k == "class" || k == "id":
			for _, c := range strings.Fields(string(value)) {
				if by := m.hidingMethodBySelector[map[string]string{"class": ".", "id": "#"}[k]+c]; by != "" {
					how = "text that is " + by
				}
			}
		case attributes[k] && len(value) >= minExaminedHiddenTextBytes:
			m.examineHiddenText(m.tokenStart, m.tokenEnd, string(value), "the attribute "+k)
		}
	}
	switch {
	case name == "style" && !closed:
		m.inStyleElement = true
	case closed || voidElements[name]:
	case m.hiddenElementNestingDepth > 0 && name == m.hiddenElementName:
		m.hiddenElementNestingDepth++
	case m.hiddenElementNestingDepth == 0 && how != "":
		m.hiddenElementName, m.hidingMethod, m.hiddenElementNestingDepth, m.hiddenElementStart = name, how, 1, m.tokenStart
		m.hiddenContent.Reset()
	}
}

// endHiddenElement ends the current hidden element at the offset end. An element with text is marked for
// removal, and a prompt injection in the text is reported.
func (m *markupParser) endHiddenElement(end int) {
	m.hiddenElementNestingDepth = 0
	if inside := strings.TrimSpace(m.hiddenContent.String()); inside != "" {
		m.examineHiddenText(m.hiddenElementStart, end, inside, m.hidingMethod)
		m.markSpanForRemoval(m.hiddenElementStart, end)
	}
}

// examineComment examines a comment, or other markup that a page does not show.
func (m *markupParser) examineComment(start, end int, commentText string) {
	if m.hiddenElementNestingDepth > 0 {
		m.hiddenContent.WriteString(commentText)
		return
	}
	m.examineHiddenText(start, end, commentText, "a comment")
	m.markSpanForRemoval(start, end)
}

// examineHiddenText reports hidden text that contains a prompt injection.
func (t *examinedText) examineHiddenText(start, end int, hiddenText, hidingMethod string) {
	if len(hiddenText) < minExaminedHiddenTextBytes {
		return
	}
	rule, whole := firstRuleMatchingHiddenText(hiddenText)
	t.partlyUnexamined = t.partlyUnexamined || !whole
	if rule != nil {
		t.addFinding(FindingHiddenMarkup, rule.ID, SeverityHigh, start, end, hidingMethod+": "+excerpt(hiddenText))
	}
}

// styleRulePattern matches one rule of a style sheet: selectors and declarations.
var styleRulePattern = prefilter.LazyRegexp(`([^{}]{1,400})\{([^{}]{1,1000})\}`)

// maxHidingSelectors is the number of hiding selectors that are remembered.
const maxHidingSelectors = 4096

// readStyleSheet reads a style sheet for classes and ids that hide elements.
func (m *markupParser) readStyleSheet(sheet string) {
	if len(sheet) > maxMarkupBytes {
		m.partlyUnexamined = true
		return
	}
	for _, r := range styleRulePattern().FindAllStringSubmatch(sheet, maxHidingSelectors) {
		by := cssHidingMethod(r[2])
		if by == "" {
			continue
		}
		if m.hidingMethodBySelector == nil {
			m.hidingMethodBySelector = map[string]string{}
		}
		for sel := range strings.SplitSeq(r[1], ",") {
			sel = strings.TrimSpace(sel)
			if i := strings.LastIndexAny(sel, ".#"); i >= 0 && !strings.ContainsAny(sel[i+1:], " >:[") && len(m.hidingMethodBySelector) < maxHidingSelectors {
				m.hidingMethodBySelector[sel[i:]] = by
			}
		}
	}
}

// linkDefinitionComment matches a Markdown link definition that is used as a comment, so that it is never shown.
var linkDefinitionComment = prefilter.LazyRegexp(`(?m)^ {0,3}\[(?://|comment|_|-|#|\s?)\]: ?<?[^\s>]{0,200}>?[ \t]+["'(]([^\n]{8,1000})["')][ \t]*$`)

// examineMarkdown finds text that Markdown does not show, in addition to hidden HTML.
func (t *examinedText) examineMarkdown() {
	if !strings.Contains(t.content, "]: ") {
		return
	}
	for _, x := range linkDefinitionComment().FindAllStringSubmatchIndex(t.content, -1) {
		t.examineHiddenText(x[0], x[1], t.content[x[2]:x[3]], "a Markdown comment")
		t.markSpanForRemoval(x[0], x[1])
	}
}
