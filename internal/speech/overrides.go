package speech

import (
	"slices"
	"sync"
)

// InstructionOverrideDetector returns the detector of phrases that try to replace the instructions of a
// language model. Such phrases are suspicious even in texts that legitimately address a model, such
// as tool descriptions.
var InstructionOverrideDetector = sync.OnceValue(func() *PhraseDetector {
	return NewPhraseDetector(slices.DeleteFunc(slices.Clone(judgeRules()), func(r Rule) bool {
		return !slices.Contains(overrideRuleNames[:], r.Name)
	}))
})

// overrideRuleNames are the names of the rules that [InstructionOverrideDetector] takes from the rules of
// [JudgingModelPromptInjectionDetector].
var overrideRuleNames = [...]string{"override_instructions", "instructions_revoked", "new_instructions", "prompt_wanted", "decode_and_obey", "turn_forged"}
