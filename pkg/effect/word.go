package effect

import "slices"

// The words for combinations: policies use them as they do kinds, and no [Effect.Kind] is one.
const (
	SendSecret  Kind = "send_secret"  // SendData that leaks
	RunDownload Kind = "run_download" // RunCode of a text that the network sends
	RunDecoded  Kind = "run_decoded"  // RunCode of a text that a decoder writes
	RunInput    Kind = "run_input"    // RunCode of a text that another part of the command writes
	Dynamic     Kind = "dynamic"      // what is unknown
)

// Word returns the word by which policies and people call an effect.
func (e *Effect) Word() Kind {
	switch {
	case e.Sure == Unknown:
		return Dynamic
	case e.Kind == SendData && e.Does(Leaks):
		return SendSecret
	case e.Kind != RunCode || e.Path != "" || e.Cause == CauseLater: // or a file
	case e.Is(LabelNetwork):
		return RunDownload
	case e.Is(LabelDecoded):
		return RunDecoded
	case e.Is(LabelInput):
		return RunInput
	}
	return e.Kind
}

// Of returns the effect that a word names.
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

// RunsText reports whether an effect runs a text that no one has read, or something unknown.
func (e *Effect) RunsText() bool {
	switch e.Word() {
	case Dynamic, RunInput, RunDownload, RunDecoded, RemoteShell:
		return true
	}
	return false
}

// Does reports whether an effect does a harm.
func (e *Effect) Does(h Harm) bool { return slices.Contains(e.Harms, h) }

// Variant returns what rules call the cause of an effect: why it is unknown, the variant of
// its kind, or, but for programs, its harm.
func (e *Effect) Variant() string {
	if e.Cause == "" && len(e.Harms) > 0 && e.Kind != Execute && e.Kind != SendData {
		return string(e.Harms[0])
	}
	return string(e.Cause)
}
