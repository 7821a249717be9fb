package evaluate

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

//go:generate go run ./gen

// A speechRule recognises a text that is addressed to its reviewer. Rules are
// data, see folder rules.
type speechRule struct {
	id, name string
	raw      bool     // pattern reads the lower-case text instead of its words
	pattern  string   // RE2
	literals []string // of which every match contains one; none means always run
}

// A speech is what a payload says to its judge.
type speech struct {
	rule  *speechRule
	where string // in which view it was found, for people
}

// A detector holds the rules and the search for their literals.
type detector struct {
	rules   []speechRule
	set     *prefilter.Set
	always  []int                   // rules without literals
	regexps []func() *regexp.Regexp // compiled on first need
}

// theDetector is built when the first payload is about to be allowed, which
// most runs never come to.
var theDetector = sync.OnceValue(func() *detector { return newDetector(speechRules()) })

func newDetector(rules []speechRule) *detector {
	d := &detector{rules: rules, regexps: make([]func() *regexp.Regexp, len(rules))}
	literals := make([][]string, len(rules))
	for i, r := range rules {
		literals[i] = r.literals
		if len(r.literals) == 0 {
			d.always = append(d.always, i)
		}
		d.regexps[i] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.pattern) })
	}
	set, whole := prefilter.New(literals)
	if !whole {
		panic("evaluate: speech rules have too many literals")
	}
	d.set = set
	return d
}

// find returns the first rule that matches a text in one of its forms; nil if
// none does.
func (d *detector) find(text string) *speechRule {
	found := make([]uint64, d.set.Words())
	for n, form := range forms(text) {
		clear(found)
		prefilter.Scan(d.set, form, found)
		for _, i := range d.always {
			found[i>>6] |= 1 << (i & 63)
		}
		for i := range d.rules {
			if found[i>>6]&(1<<(i&63)) != 0 && d.rules[i].raw == (n == 0) && d.regexps[i]().MatchString(form) {
				return &d.rules[i]
			}
		}
	}
	return nil
}

// tooMuchEncoded stands for the part of a text that was not decoded.
var tooMuchEncoded = &speechRule{id: "EV-099", name: "more encoded text than shield decodes"}

// findSpeech looks for speech to a judge in an action: in its payload, keys
// and type included, as the one text of [payloadText], so that spreading a
// sentence over fields does not hide it; in its strings with nothing between
// them; in the case's views, which have the resolved words of a command; and in
// what is encoded in any of these. Each is read without look-alike letters as
// well.
func findSpeech(c *analysis.Case, text string) *speech {
	d := theDetector()
	if r := d.findFolded(text); r != nil {
		return &speech{r, "the payload"}
	}
	texts := payloadStrings(c)
	if len(texts) > 1 {
		joined := seams(texts)
		if r := d.findFolded(joined); r != nil {
			return &speech{r, "the payload's strings, joined"}
		}
		texts = append(texts, joined)
	}
	for _, v := range c.Views() {
		if v.Name == "raw" {
			continue // part of the payload
		}
		if r := d.findFolded(v.Text); r != nil {
			return &speech{r, "view " + v.Name + " of " + v.Field}
		}
		texts = append(texts, v.Text)
	}
	var found *speech
	whole := effect.Decoded(texts, func(l effect.Layer) bool {
		if r := d.findFolded(l.Text); r != nil {
			found = &speech{r, "the payload, decoded from " + l.Name}
		}
		return found == nil
	})
	if found == nil && !whole {
		return &speech{tooMuchEncoded, "the payload"}
	}
	return found
}

// findFolded returns the first rule that matches a text or the same without
// look-alike letters and hidden characters.
func (d *detector) findFolded(text string) *speechRule {
	if r := d.find(text); r != nil {
		return r
	}
	if folded := effect.Fold(text); folded != text {
		return d.find(folded)
	}
	return nil
}

// theOverrides are the rules for texts that anybody reads, not only a judge.
var theOverrides = sync.OnceValue(func() *detector {
	return newDetector(slices.DeleteFunc(slices.Clone(speechRules()), func(r speechRule) bool {
		return !slices.Contains([]string{"override_instructions", "instructions_revoked", "new_instructions", "prompt_wanted", "decode_and_obey", "turn_forged"}, r.name)
	}))
})

// Overrides returns the name of the rule that a text meets which tries to replace
// the instructions of whatever model reads it; "" if it meets none, which does
// not mean that it does not try.
func Overrides(text string) string {
	if r := theOverrides().findFolded(text); r != nil {
		return r.name
	}
	return ""
}

// holds reports whether an action contains a text.
func holds(c *analysis.Case, s string) bool {
	if strings.Contains(payloadText(c), s) {
		return true
	}
	for _, v := range c.Views() {
		if strings.Contains(v.Text, s) {
			return true
		}
	}
	return false
}
