package shield

import (
	"strings"

	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/verdict"
)

// builtInEscalationReason returns why a tier asked, in texts that shield ships: the evaluator trusts them as
// shield's own, so they contain nothing from an action, a file or a policy of the user.
func builtInEscalationReason(tierStep *verdict.TierStep) string {
	if tierStep.Rule != "" {
		return builtInRuleDescription(tierStep.Rule)
	}
	for _, words := range nonRuleReasonPrefixes {
		if strings.HasPrefix(tierStep.Reasoning, words) {
			return strings.TrimRight(words, ": ")
		}
	}
	return ""
}

// maxBuiltInRuleDescriptionBytes bounds a reason in bytes: the evaluator needs the cause, not the advice.
const maxBuiltInRuleDescriptionBytes = 160

// builtInRuleDescription returns what a shipped rule is about; "" for other rules.
func builtInRuleDescription(rule string) string {
	text, ok := policy.PresetRuleReason(rule)
	if !ok {
		rules := classify.Rules()
		for i := range rules {
			if rules[i].ID == rule {
				text, ok = rules[i].Description, true
			}
		}
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "; ")
	text, _, _ = strings.Cut(text, ". ")
	if len(text) > maxBuiltInRuleDescriptionBytes {
		text = text[:strings.LastIndexByte(text[:maxBuiltInRuleDescriptionBytes], ' ')]
	}
	if !ok {
		return ""
	}
	return approve.LowerFirst(text)
}

// nonRuleReasonPrefixes are the beginnings of reasons of Tier 1 that come from no rule.
var nonRuleReasonPrefixes = []string{
	"unknown effect: ", "first use of a tool that shield does not know", "unknown program or subcommand: ", "not an everyday action: ", "runs with elevated privileges: ", "contacts ",
	"changes files outside the workspace: ", "changes the system: ", "listens where other machines can connect: ", "stops processes: ", "changes a remote resource: ",
	"writes a file that runs later (persistence): ", "sends credentials to ", "sends local data to ", "prints or sends credentials: ",
	"destroys data that cannot be recovered: ", "runs a downloaded file: ", "runs downloaded, decoded or piped-in code; ", "changes shield or the agent's security settings; ",
	"unexamined: ", "model: looks like an attack", "no rule matched, and nothing shows that this is ordinary work", "the classifier model does not judge this type of action; ask the user",
}
