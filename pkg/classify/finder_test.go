package classify

import (
	"regexp"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/prefilter"
)

// Each pattern finds in the examples of its rule, also in the midst of other text,
// what package regexp finds there.
func TestFinders(t *testing.T) {
	t.Parallel()
	for i := range ruleTable {
		r := &ruleTable[i]
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			var texts []string
			for _, c := range exampleCases(t, append(r.MatchingExamples, r.NonMatchingExamples...)) {
				for _, v := range append(c.TextVariants(), c.FieldTextVariants("content", "body", "text", "source")...) {
					texts = append(texts, v.Text, "x"+v.Text, "\n"+v.Text+"\n", "é."+strings.ToUpper(v.Text))
				}
			}
			for _, p := range append(r.patterns, r.except) {
				if p.expr == "" {
					continue
				}
				f, re := prefilter.NewRegexpFinder(p.expr), regexp.MustCompile(p.expr)
				for _, text := range texts {
					got, _ := f.Match(text)
					if want := re.MatchString(text); got != want {
						t.Errorf("%q in %q: %v, want %v", p.expr, text, got, want)
					}
				}
			}
		})
	}
}
