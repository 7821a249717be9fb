package evaluate

import (
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/speech"
	"github.com/shieldcli/shield/pkg/analysis"
)

// An evaluatorInjectionFinding is text in a payload that addresses the evaluator.
type evaluatorInjectionFinding struct {
	rule                   *speech.Rule
	textVariantDescription string // where the text was found, for people, for example "the payload, decoded from base64"
}

// undecodedTextRule is reported if part of a text was not decoded.
var undecodedTextRule = &speech.Rule{ID: "EV-099", Name: "more encoded text than shield decodes"}

// findTextAddressingEvaluator looks for text in an action that addresses the evaluator. It
// searches:
//
//   - the parameter text, which is the result of [payloadText]: the payload as one text, with keys and type, so that
//     splitting a sentence over fields does not hide it;
//   - the strings of the payload, joined without separators;
//   - the text variants of the case, which contain the resolved words of a command;
//   - all text that is encoded in the texts above.
//
// It also searches each text with look-alike letters normalised.
func findTextAddressingEvaluator(c *analysis.ActionCase, text string) *evaluatorInjectionFinding {
	if r := findRuleIgnoringLookalikes(text); r != nil {
		return &evaluatorInjectionFinding{r, "the payload"}
	}
	texts := payloadStrings(c)
	if len(texts) > 1 {
		joined := joinTextEnds(texts)
		if r := findRuleIgnoringLookalikes(joined); r != nil {
			return &evaluatorInjectionFinding{r, "the texts of the payload, joined"}
		}
		texts = append(texts, joined)
	}
	for _, v := range c.TextVariants() {
		if v.TransformationName == "raw" {
			continue // already searched as part of the payload
		}
		if r := findRuleIgnoringLookalikes(v.Text); r != nil {
			return &evaluatorInjectionFinding{r, "view " + v.TransformationName + " of " + v.Field}
		}
		texts = append(texts, v.Text)
	}
	var found *evaluatorInjectionFinding
	whole := decode.VisitPossibleDecodings(texts, func(l decode.DecodedLayer) bool {
		if r := findRuleIgnoringLookalikes(l.Text); r != nil {
			found = &evaluatorInjectionFinding{r, "the payload, decoded from " + l.Name}
		}
		return found == nil
	})
	if found == nil && !whole {
		return &evaluatorInjectionFinding{undecodedTextRule, "the payload"}
	}
	return found
}

// findEvaluatorAddressingRule returns the first rule that matches text which addresses the evaluator: in the given texts one
// after the other, joined without separators, or decoded.
func findEvaluatorAddressingRule(texts []string) (found *speech.Rule) {
	joined := joinTextEnds(texts)
	for _, text := range [...]string{strings.Join(texts, "\n"), joined} {
		if r := findRuleIgnoringLookalikes(text); r != nil {
			return r
		}
	}
	whole := decode.VisitPossibleDecodings(append(texts, joined), func(l decode.DecodedLayer) bool {
		found = findRuleIgnoringLookalikes(l.Text)
		return found == nil
	})
	if found == nil && !whole {
		return undecodedTextRule
	}
	return found
}

// findRuleIgnoringLookalikes returns the first rule that matches a text as written, or with look-alike letters normalised and
// hidden characters removed.
func findRuleIgnoringLookalikes(text string) *speech.Rule {
	d := speech.JudgingModelPromptInjectionDetector()
	if r := d.FindFirstMatchingRule(text); r != nil {
		return r
	}
	if folded := decode.FoldUnicodeLookalikes(text); folded != text {
		return d.FindFirstMatchingRule(folded)
	}
	return nil
}

// payloadOrTextVariantsContain reports whether an action contains a text.
func payloadOrTextVariantsContain(c *analysis.ActionCase, text string) bool {
	if strings.Contains(payloadText(c), text) {
		return true
	}
	for _, v := range c.TextVariants() {
		if strings.Contains(v.Text, text) {
			return true
		}
	}
	return false
}
