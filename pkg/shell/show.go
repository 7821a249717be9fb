package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A credential that one command passes to another is only used. A credential in the final output is shown to the
// agent; one written to a file can be read by the agent later.

// isOutputCaptured reports whether the current output is input of another part of the text.
func (s *analysisState) isOutputCaptured() bool {
	return s.capturedOutputDepth > 0 && s.otherLanguageDepth == 0
}

// walkWithCapturedOutput walks a part of the text whose output is input of another part.
func (s *analysisState) walkWithCapturedOutput(walk func() abstract.Value) abstract.Value {
	s.capturedOutputDepth++
	out := walk()
	s.capturedOutputDepth--
	return out
}

// recordShownCredentials records that credentials in a command's output are shown to the agent.
func (s *analysisState) recordShownCredentials(out abstract.Value, program string, at effect.CommandTextSpan) {
	if s.capturedOutputDepth == 0 && out.Taint&(abstract.TaintUnprintedKeyStoreCredential|abstract.TaintCredentialVariable|abstract.TaintEnvironmentDump) != 0 {
		s.recordReadSecretEffect(out, program, at)
	}
}

// recordCredentialInput records that a program gets credentials on standard input, unless it is known only to
// use them or to pass them on, or its arguments are not understood.
func (s *analysisState) recordCredentialInput(base string, use command.Interpretation, in abstract.Value, at effect.CommandTextSpan) {
	if in.Taint&abstract.TaintUnprintedKeyStoreCredential == 0 || command.Keepers[base] || !use.Understood {
		return
	}
	switch use.Stdout {
	case command.StreamFilteredStdin, command.StreamDecodedStdin, command.StreamUpload, command.StreamExecutedCode:
	default:
		s.recordReadSecretEffect(in, base, at)
	}
}

func (s *analysisState) recordReadSecretEffect(v abstract.Value, program string, at effect.CommandTextSpan) {
	why := "shows " + v.SecretName()
	s.emitOnce(effect.Effect{Kind: effect.ReadSecret, Program: program, Reason: why, Span: at})
}

// searchesNonSecretVariables reports whether a search picks only settings without credentials from the environment: "grep
// NODE_ENV".
func searchesNonSecretVariables(base string, argv []abstract.Value) bool {
	if !command.Searchers[base] {
		return false
	}
	found := false
	for _, v := range argv[1:] {
		if strings.HasPrefix(v.Text, "-") {
			if v.Text != "-i" && v.Text != "-E" && v.Text != "-w" && v.Text != "-q" {
				return false
			}
			continue
		}
		name := strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(v.Text, "^"), "="))
		if found || !v.IsLiteral() || knowledge.HasSecretNamePart(name) || !command.PlainNames[name] && !isUppercaseUnderscoreName(name) {
			return false
		}
		found = true
	}
	return found
}

// isUppercaseUnderscoreName reports whether a search pattern is the full name of one variable: two words joined by an underscore.
func isUppercaseUnderscoreName(name string) bool {
	first, last, ok := strings.Cut(name, "_")
	return ok && len(first) > 1 && len(last) > 2 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
}

// outputTaint returns the taint of a program's standard output.
func (s *analysisState) outputTaint(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams, f programIO) abstract.Taint {
	passed := io.Stdin.Taint | f.readContent.Taint
	own := taintOfProgramGeneratedText(base, argv)
	if passed&abstract.TaintEnvironmentDump != 0 && searchesNonSecretVariables(base, argv) {
		passed &^= abstract.TaintEnvironmentDump
	}
	if passed&abstract.TaintEnvironmentDump != 0 && f.readFileCount == 0 && printsOnlyVariableNames(base, argv) {
		passed = passed&^abstract.TaintEnvironmentDump | abstract.TaintLocalMachineData
	}
	switch use.Stdout {
	case command.StreamDatabaseRows:
		return abstract.TaintDatabaseRows
	case command.StreamDownload:
		t := abstract.TaintNetwork
		if command.Relays[base] {
			t |= abstract.TaintSocket
		}
		if use.VariableOnlyArgIsDatabaseAddress {
			t |= own
		}
		return t
	case command.StreamCredentials:
		switch {
		case s.isOutputCaptured():
			return abstract.TaintCredentialVariable | abstract.TaintUnprintedKeyStoreCredential
		case command.Dumps[base]:
			return abstract.TaintEnvironmentDump
		}
		return abstract.TaintReadCredentials
	case command.StreamDecodedStdin:
		passed |= abstract.TaintDecoded
		fallthrough
	case command.StreamFilteredStdin, command.StreamExecutedCode, command.StreamUpload:
		if f.readFileCount == 0 && io.Stdin.IsLiteral() && io.Stdin.Text == "" {
			return passed | own
		}
		return passed
	}
	if !use.Understood {
		return passed | own
	}
	return own
}

// taintOfProgramGeneratedText returns the taint of text that a program generates itself.
func taintOfProgramGeneratedText(programBaseName string, argv []abstract.Value) abstract.Taint {
	if command.Blank[programBaseName] || len(argv) > 1 && command.Blank[programBaseName+"/"+argv[1].Text] {
		return 0
	}
	return abstract.TaintLocalMachineData
}
