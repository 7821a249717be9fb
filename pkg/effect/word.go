package effect

import "slices"

// The words for combinations of kind and other fields. Policies use them like kinds, but [Effect.Kind] never
// holds one.
const (
	SendSecret  Kind = "send_secret"  // SendData with the harm Leaks
	RunDownload Kind = "run_download" // RunCode of text from the network
	RunDecoded  Kind = "run_decoded"  // RunCode of decoded text
	RunInput    Kind = "run_input"    // RunCode of text that another part of the command writes
	Dynamic     Kind = "dynamic"      // an unknown effect
)

// Word returns the kind or combination by which policies and people refer to an effect.
func (e *Effect) Word() Kind {
	switch {
	case e.Sure == Unknown:
		return Dynamic
	case e.Kind == SendData && e.Does(Leaks):
		return SendSecret
	case e.Kind != RunCode || e.Path != "" || e.Cause == CauseLater: // code from a file, or code that runs later
	case e.Is(LabelNetwork):
		return RunDownload
	case e.Is(LabelDecoded):
		return RunDecoded
	case e.Is(LabelInput):
		return RunInput
	}
	return e.Kind
}

// Of returns an effect that has a word.
func Of(word Kind) Effect {
	switch word {
	case SendSecret:
		return Effect{Kind: SendData, Harms: []Harm{Leaks}}
	case RunDownload:
		return Effect{Kind: RunCode, Labels: []Label{LabelNetwork}}
	case RunDecoded:
		return Effect{Kind: RunCode, Labels: []Label{LabelDecoded}}
	case RunInput:
		return Effect{Kind: RunCode, Labels: []Label{LabelInput}}
	case Dynamic:
		return Effect{Sure: Unknown}
	}
	return Effect{Kind: word}
}

// RunsText reports whether an effect runs text that was not analysed, or something unknown.
func (e *Effect) RunsText() bool {
	switch e.Word() {
	case Dynamic, RunInput, RunDownload, RunDecoded, RemoteShell:
		return true
	}
	return false
}

// Does reports whether an effect has a harm.
func (e *Effect) Does(h Harm) bool { return slices.Contains(e.Harms, h) }

// Variant returns the value that rules match as the cause of an effect: why it is unknown, the variant of its
// kind, or, except for programs and sent data, its first harm.
func (e *Effect) Variant() string {
	if e.Cause == "" && len(e.Harms) > 0 && e.Kind != Execute && e.Kind != SendData {
		return string(e.Harms[0])
	}
	return string(e.Cause)
}
