package effect

import "slices"

// The words for combinations of kind and other fields. Policies use them like kinds, but [Effect.Kind] never
// holds one.
const (
	SendSecret       Kind = "send_secret"  // SendData with the harm LeaksSecrets
	RunDownload      Kind = "run_download" // RunCode of text from the network
	RunDecodedText   Kind = "run_decoded"  // RunCode of decoded text
	RunCommandOutput Kind = "run_input"    // RunCode of text that another part of the command writes
	UnknownEffect    Kind = "dynamic"      // an unknown effect
)

// KindForPolicies returns the word by which policies and people refer to an effect: its kind, or the word for a
// combination of its kind with other fields, for example [RunDownload].
func (e *Effect) KindForPolicies() Kind {
	switch {
	case e.Certainty == Unknown:
		return UnknownEffect
	case e.Kind == SendData && e.HasHarm(LeaksSecrets):
		return SendSecret
	case e.Kind != RunCode || e.Path != "" || e.Cause == CauseWrittenCodeRunsLater: // return e.Kind: the words below are only for RunCode of a text that runs now
	case e.HasLabel(LabelFromNetwork):
		return RunDownload
	case e.HasLabel(LabelDecoderOutput):
		return RunDecodedText
	case e.HasLabel(LabelCommandOutput):
		return RunCommandOutput
	}
	return e.Kind
}

// EffectOfPolicyKind returns an effect for which [Effect.KindForPolicies] returns policyKind.
func EffectOfPolicyKind(policyKind Kind) Effect {
	switch policyKind {
	case SendSecret:
		return Effect{Kind: SendData, Harms: []Harm{LeaksSecrets}}
	case RunDownload:
		return Effect{Kind: RunCode, DataLabels: []TaintLabel{LabelFromNetwork}}
	case RunDecodedText:
		return Effect{Kind: RunCode, DataLabels: []TaintLabel{LabelDecoderOutput}}
	case RunCommandOutput:
		return Effect{Kind: RunCode, DataLabels: []TaintLabel{LabelCommandOutput}}
	case UnknownEffect:
		return Effect{Certainty: Unknown}
	}
	return Effect{Kind: policyKind}
}

// RunsUnanalysedCode reports whether an effect runs text that was not analysed, or something unknown.
func (e *Effect) RunsUnanalysedCode() bool {
	switch e.KindForPolicies() {
	case UnknownEffect, RunCommandOutput, RunDownload, RunDecodedText, RemoteShell:
		return true
	}
	return false
}

// HasHarm reports whether an effect has a harm.
func (e *Effect) HasHarm(h Harm) bool { return slices.Contains(e.Harms, h) }

// CauseOrFirstHarm returns the value that policy rules match as the cause of an effect: its Cause.
// If Cause is empty, it returns the first harm, except for effects of kind [Execute] or [SendData].
func (e *Effect) CauseOrFirstHarm() string {
	if e.Cause == "" && len(e.Harms) > 0 && e.Kind != Execute && e.Kind != SendData {
		return string(e.Harms[0])
	}
	return string(e.Cause)
}
