package gateway

import (
	"regexp"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/speech"
	"github.com/shieldcli/shield/pkg/effect"
)

// A rule recognises what a text should not say. Rules are data, see folder rules.
type rule struct{ id, name, pattern string }

var (
	poison = sync.OnceValue(func() []*regexp.Regexp { return compiled(poisonRules[:]) })
	asked  = sync.OnceValue(func() []*regexp.Regexp { return compiled(askedRules[:]) })
)

func compiled(rules []rule) (out []*regexp.Regexp) {
	for _, r := range rules {
		out = append(out, regexp.MustCompile(r.pattern))
	}
	return out
}

// folded returns a text in lower case, without look-alike letters and hidden
// characters, and with one space for all white space.
func folded(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(effect.Fold(s))), " ")
}

// met returns the name of the first rule that a text meets; "" if it meets none.
func met(rules []rule, patterns []*regexp.Regexp, text string) string {
	for i, p := range patterns {
		if p.MatchString(text) {
			return rules[i].name
		}
	}
	return ""
}

// A toolExaminer looks at the strings of tools: what any text of a server should
// not hold, and orders to the model, also encoded.
type toolExaminer struct{ Examiner }

func (e toolExaminer) Examine(s string) (string, []Finding) {
	clean, findings := e.Examiner.Examine(s)
	name := met(poisonRules[:], poison(), folded(s))
	whole := effect.Decoded([]string{s}, func(l effect.Layer) bool {
		if name == "" {
			name = met(poisonRules[:], poison(), folded(l.Text))
		}
		if name == "" && speech.Overrides().Find(l.Text) != nil {
			name = kindSpeech
		}
		return name == ""
	})
	if name == "" && !whole {
		name = "more encoded text than shield decodes"
	}
	if name != "" {
		findings = append(findings, Finding{Kind: name})
	}
	return clean, findings
}
