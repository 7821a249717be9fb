package speech

import (
	"slices"
	"sync"
)

// OverridesDetector returns what finds phrases that try to replace the instructions of
// whatever model reads them. Texts that rightly speak to a model, such as the
// descriptions of its tools, have no use for these either.
var OverridesDetector = sync.OnceValue(func() *PhraseDetector {
	return NewPhraseDetector(slices.DeleteFunc(slices.Clone(judgeRules()), func(r Rule) bool {
		return !slices.Contains(overrideRuleNames[:], r.Name)
	}))
})

// overrideRuleNames are names of rules of [JudgingModelPromptInjectionDetector].
var overrideRuleNames = [...]string{"override_instructions", "instructions_revoked", "new_instructions", "prompt_wanted", "decode_and_obey", "turn_forged"}
