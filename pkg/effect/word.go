package effect

import "slices"

// The words for combinations of kind and other fields. Policies use them like kinds, but [Effect.Kind] never
// holds one.
const (
	SendSecret  Kind = "send_secret"  // SendData with the harm LeaksSecrets
	RunDownload Kind = "run_download" // RunCode of text from the network
	RunDecoded  Kind = "run_decoded"  // RunCode of decoded text
	RunInput    Kind = "run_input"    // RunCode of text that another part of the command writes
	Dynamic     Kind = "dynamic"      // an unknown effect
)

// RuleKind returns the kind or combination by which policies and people refer to an effect.
func (e *Effect) RuleKind() Kind {
	switch {
	case e.Certainty == Unknown:
		return Dynamic
	case e.Kind == SendData && e.HasHarm(LeaksSecrets):
		return SendSecret
	case e.Kind != RunCode || e.Path != "" || e.Cause == CauseDeferred: // code from a file, or code that runs later
	case e.HasLabel(LabelNetwork):
		return RunDownload
	case e.HasLabel(LabelDecoded):
		return RunDecoded
	case e.HasLabel(LabelInput):
		return RunInput
	}
	return e.Kind
}

// WithRuleKind returns an effect for which [Effect.RuleKind] returns word.
func WithRuleKind(word Kind) Effect {
	switch word {
	case SendSecret:
		return Effect{Kind: SendData, Harms: []Harm{LeaksSecrets}}
	case RunDownload:
		return Effect{Kind: RunCode, Labels: []Label{LabelNetwork}}
	case RunDecoded:
		return Effect{Kind: RunCode, Labels: []Label{LabelDecoded}}
	case RunInput:
		return Effect{Kind: RunCode, Labels: []Label{LabelInput}}
	case Dynamic:
		return Effect{Certainty: Unknown}
	}
	return Effect{Kind: word}
}

// RunsText reports whether an effect runs text that was not analysed, or something unknown.
func (e *Effect) RunsText() bool {
	switch e.RuleKind() {
	case Dynamic, RunInput, RunDownload, RunDecoded, RemoteShell:
		return true
	}
	return false
}

// HasHarm reports whether an effect has a harm.
func (e *Effect) HasHarm(h Harm) bool { return slices.Contains(e.Harms, h) }

// Variant returns the value that rules match as the cause of an effect: why it is unknown, the variant of its
// kind, or, except for programs and sent data, its first harm.
func (e *Effect) Variant() string {
	if e.Cause == "" && len(e.Harms) > 0 && e.Kind != Execute && e.Kind != SendData {
		return string(e.Harms[0])
	}
	return string(e.Cause)
}
