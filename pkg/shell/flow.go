package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// recordUpload records that a value goes to the network.
func (s *analysisState) recordUpload(v abstract.Value, program string, at effect.CommandTextSpan) {
	s.recordSecretUpload(v, effect.Effect{Program: program, Span: at})
}

// recordPossibleUpload records that an unknown program gets a value and may send it to the network.
func (s *analysisState) recordPossibleUpload(v abstract.Value, program string, at effect.CommandTextSpan) {
	s.recordSecretUpload(v, effect.Effect{Program: program, Span: at, Certainty: effect.Possible})
}

func (s *analysisState) recordSecretUpload(v abstract.Value, e effect.Effect) {
	switch {
	case v.Taint&(abstract.TaintReadCredentials|abstract.TaintCredentialVariable|abstract.TaintEnvironmentDump) != 0:
		e.Reason = "sends " + v.SecretName() + " to the network"
	case v.Taint&abstract.TaintClipboardOrScreen != 0:
		e.Reason = "sends the clipboard or screen to the network"
		e.Certainty = effect.Possible // the clipboard or screen may contain no secret at that time
	default:
		return
	}
	e.Kind, e.Harms, e.DataLabels = effect.SendData, []effect.Harm{effect.LeaksSecrets}, labelsOf(v.Taint&thisMachineTaints)
	s.emitOnce(e)
}

// recordCodeRun records the execution of code whose origin is given by a label, such as network or
// decoded.
func (s *analysisState) recordCodeRun(from effect.TaintLabel, why string, at effect.CommandTextSpan) {
	s.emitOnce(effect.Effect{Kind: effect.RunCode, DataLabels: []effect.TaintLabel{from}, Reason: why, Span: at})
}

// walkExecutedText records that a value is executed as code of a language, and walks it if it is known.
func (s *analysisState) walkExecutedText(language string, v abstract.Value, runnerName string, at effect.CommandTextSpan, args []abstract.Value) abstract.Value {
	switch {
	case v.Taint&abstract.TaintSocket != 0:
		s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Reason: runnerName + " runs code from a network connection", Span: at})
	case v.Taint&abstract.TaintNetwork != 0:
		s.recordCodeRun(effect.LabelFromNetwork, runnerName+" runs code straight from the network", at)
	case v.Taint&abstract.TaintDecoded != 0:
		s.recordCodeRun(effect.LabelDecoderOutput, runnerName+" runs decoded text", at)
	case v.Taint&abstract.TaintUntrustedText != 0:
		s.recordCodeRun(effect.LabelUntrusted, runnerName+" runs code from a fresh clone", at)
	}
	cause := s.unknownCodeCause(v)
	if (cause == effect.CauseVariableNotSetByCommand || cause == effect.CauseCodeIsVariableValue) && v.HasUnknownPartWithoutOrigin {
		cause = effect.CauseOtherUnresolvedCommandText // the unknown part is a file name, not a variable: the creator of the file chose it
	}
	if v.IsLiteral() {
		return s.walkCode(language, v.Text, at, args)
	}
	if v.IsNumber() && !s.canNumberBeCommandName() {
		return abstract.Value{}
	}
	partly := language == "shell" || language == "powershell"
	if v.HasOnlyTaintsHarmlessToRun() && partly && (!strings.Contains(v.Text, "**") || onlyFoldersUnknown(v)) {
		// The unknown parts of the code are only numbers, names such as $? and $USER, folders and file names, so
		// the rest of the code can be walked.
		if s.remoteOrContainerDepth == 0 && (v.HasUnknownPartWithoutOrigin || cause == effect.CauseOtherUnresolvedCommandText) {
			s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, runnerName+" runs file names as code: "+abstract.ClipForMessage(v.String())+"; instead: write each file name in full", at)
		}
		return s.walkPartlyUnknownCode(language, v, at)
	}
	if v.Taint&(abstract.TaintNetwork|abstract.TaintDecoded|abstract.TaintSocket) == 0 && !hasOnlyEnvironmentUnknowns(v) {
		s.emitOnce(effect.Effect{Kind: effect.RunCode, DataLabels: []effect.TaintLabel{effect.LabelCommandOutput}, Cause: cause, Reason: runnerName + " runs the output of another command as code", Span: at})
	}
	s.unknownExecutedTextCount++
	s.emitUnknownEffect(cause, runnerName+" runs unknown code: "+abstract.ClipForMessage(v.String()), at)
	if partly && v.IsGlobPattern {
		s.walkPartlyUnknownCode(language, v, at)
	}
	return abstract.Unknown("…", abstract.TaintUnknownText|v.Taint&(abstract.TaintNetwork|abstract.TaintReadCredentials))
}

// hasOnlyEnvironmentUnknowns reports whether the only unknown parts of a value are variables that the command does not set.
func hasOnlyEnvironmentUnknowns(v abstract.Value) bool {
	return v.HasOnlyTaintsHarmlessToRun() && v.Origin == abstract.OriginUnsetVariable
}

// walkPartlyUnknownCode walks code with an unknown part, which is treated as a variable: `eval "rm -rf $X"` runs rm
// whatever X holds.
func (s *analysisState) walkPartlyUnknownCode(language string, v abstract.Value, at effect.CommandTextSpan) abstract.Value {
	if v.FullyUnknown || v.Text == "" {
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	if language == "powershell" {
		return s.walkCode(language, patternAsShellText(v.Text), at, nil)
	}
	return s.walkNestedShellText(patternAsShellText(v.Text), at)
}

// patternAsShellText writes a pattern as shell text, with a variable that is never set in place of each unknown part.
func patternAsShellText(p string) string {
	var b []byte
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\\' && i+1 < len(p):
			i++
			b = append(b, p[i])
		case p[i] == '*':
			for i+1 < len(p) && p[i+1] == '*' {
				i++
			}
			b = append(b, "${"+abstract.UnknownPlaceholderVariable+"}"...)
		default:
			b = append(b, p[i])
		}
	}
	return string(b)
}
