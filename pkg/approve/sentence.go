package approve

import (
	"regexp"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// decisive are the payload fields that say most of an action, the first one
// that is there.
var decisive = []string{"command", "path", "url", "to", "recipient", "host", "query", "name"}

// Bounds of the sentence that a question begins with, in bytes.
const (
	maxWhat = 200
	maxWhy  = 400
)

// ruleName is what names the rule before a reason; it stays in the tiers' own
// words, which are shown below the sentence.
var ruleName = regexp.MustCompile(`^[a-z ]*\[[^\]]*\]: `)

// sentence returns what an action would do, as what follows "An agent wants
// to", and why a person is asked. Neither holds a secret: they are shown and
// kept in more places than the question itself.
func (a *Approver) sentence(c *analysis.Case) (what, why string) {
	what = strings.ReplaceAll(c.Action.Type, "_", " ")
	if c.Action.Type == "execute_command" {
		what = "run"
	}
	for _, name := range decisive {
		if text, ok := c.Action.Payload[name].(string); ok && text != "" {
			what += " " + strings.Join(strings.Fields(text), " ")
			break
		}
	}
	why = "a person has to decide"
	for _, s := range c.Trail {
		if s.Decision != verdict.Escalate || s.Reasoning == "" {
			continue
		}
		why = s.Reasoning
		if s.Rule != "" { // later tiers may only say that they cannot decide
			break
		}
	}
	why = ruleName.ReplaceAllString(why, "")
	why, _, _ = strings.Cut(why, "; instead: ") // that is advice for the agent
	if clean := a.o.Redact; clean != nil {      // before it is cut: a part of a secret does not look like one
		what, why = clean(what), clean(why)
	}
	return brief(what, maxWhat), brief(why, maxWhy)
}
