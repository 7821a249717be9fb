package gateway

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/shieldcli/shield/internal/decode"
)

// A forbiddenTextRule is a pattern for text that tool definitions must not contain, from the files
// in folder rules.
type forbiddenTextRule struct{ id, name, pattern string }

var (
	toolPoisoningPatterns = sync.OnceValue(func() []*regexp.Regexp { return compileRules(poisonRules[:]) })
	secretRequestPatterns = sync.OnceValue(func() []*regexp.Regexp { return compileRules(askedRules[:]) })
)

func compileRules(rules []forbiddenTextRule) (out []*regexp.Regexp) {
	for _, r := range rules {
		out = append(out, regexp.MustCompile(r.pattern))
	}
	return out
}

// normalizeTextForMatching returns a text in lower case, with look-alike letters folded, hidden characters removed, and
// each run of white space replaced by one space.
func normalizeTextForMatching(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(decode.FoldUnicodeLookalikes(s))), " ")
}

// matchedRuleName returns the name of the first rule that matches a text; "" if none does.
func matchedRuleName(rules []forbiddenTextRule, patterns []*regexp.Regexp, text string) string {
	for i, p := range patterns {
		if p.MatchString(text) {
			return rules[i].name
		}
	}
	return ""
}

// A toolDefinitionExaminer examines the strings of tool definitions. Besides what hiddenTextAndSecretExaminer finds, it
// finds instructions to the model (tool poisoning), plain or encoded.
type toolDefinitionExaminer struct{ hiddenTextAndSecretExaminer }

func (e toolDefinitionExaminer) CleanTextAndFindings(s string) (string, []TextFinding) {
	clean, findings := e.hiddenTextAndSecretExaminer.CleanTextAndFindings(s)
	name := matchedRuleName(poisonRules[:], toolPoisoningPatterns(), normalizeTextForMatching(s))
	whole := decode.VisitPossibleDecodings([]string{s}, func(l decode.DecodedLayer) bool {
		if name == "" {
			name = matchedRuleName(poisonRules[:], toolPoisoningPatterns(), normalizeTextForMatching(l.Text))
		}
		return name == ""
	})
	if name == "" && !whole {
		name = "more encoded text than shield decodes"
	}
	if name == "" && strings.ContainsFunc(s, isInvisible) {
		name = "invisible characters"
	}
	if name != "" {
		findings = append(findings, TextFinding{Kind: name})
	}
	return clean, findings
}

// isInvisible reports whether a character is a control character (other than a tab, line break or form feed),
// changes the text direction, has zero width, or is for private use. Tool definitions must not contain these;
// results can. Joiners (for scripts and emoji), emoji variation selectors, the soft hyphen and the byte order
// mark are excepted.
func isInvisible(r rune) bool {
	switch {
	case r < 0x80:
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' || r == 0x7f
	case r == '\u200c', r == '\u200d', r == '\ufeff', r == '\u00ad':
		return false
	case r >= 0xfe00 && r <= 0xfe0f: // emoji variation selectors
		return false
	case r >= 0xe0100 && r <= 0xe01ef:
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co)
}
