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

// isCaptured reports whether the current output is input of another part of the text.
func (s *state) isCaptured() bool { return s.captureDepth > 0 && s.otherLanguageDepth == 0 }

// walkCaptured walks a part of the text whose output is input of another part.
func (s *state) walkCaptured(walk func() abstract.Value) abstract.Value {
	s.captureDepth++
	out := walk()
	s.captureDepth--
	return out
}

// recordShownCredentials records that credentials in a command's output are shown to the agent.
func (s *state) recordShownCredentials(out abstract.Value, program string, at effect.Span) {
	if s.captureDepth == 0 && out.Taint&(abstract.StoredCredential|abstract.Credential|abstract.EnvironmentDump) != 0 {
		s.recordShownSecret(out, program, at)
	}
}

// recordCredentialInput records that a program gets credentials on standard input, unless it is known only to use them or to pass
// them on.
func (s *state) recordCredentialInput(base string, use command.Interpretation, in abstract.Value, at effect.Span) {
	if in.Taint&abstract.StoredCredential == 0 || command.Keepers[base] || !use.Understood {
		return
	}
	switch use.Stdout {
	case command.Input, command.Decoded, command.Upload, command.Code:
	default:
		s.recordShownSecret(in, base, at)
	}
}

func (s *state) recordShownSecret(v abstract.Value, program string, at effect.Span) {
	why := "shows " + v.SecretName()
	s.emitOnce(effect.Effect{Kind: effect.ReadSecret, Program: program, Reason: why, Span: at})
}

// searchesPlainSettings reports whether a search picks only settings without credentials from the environment: "grep
// NODE_ENV".
func searchesPlainSettings(base string, argv []abstract.Value) bool {
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
		if found || !v.Known() || knowledge.SecretWord(name) || !command.PlainNames[name] && !isFullVariableName(name) {
			return false
		}
		found = true
	}
	return found
}

// isFullVariableName reports whether a search pattern is the full name of one variable: two words joined by an underscore.
func isFullVariableName(name string) bool {
	first, last, ok := strings.Cut(name, "_")
	return ok && len(first) > 1 && len(last) > 2 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
}

// outputTaint returns the taint of a program's standard output.
func (s *state) outputTaint(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams, f programIO) abstract.Taint {
	passed := io.In.Taint | f.readContent.Taint
	own := generatedTextTaint(base, argv)
	if passed&abstract.EnvironmentDump != 0 && searchesPlainSettings(base, argv) {
		passed &^= abstract.EnvironmentDump
	}
	if passed&abstract.EnvironmentDump != 0 && f.readCount == 0 && printsOnlyNames(base, argv) {
		passed = passed&^abstract.EnvironmentDump | abstract.Local
	}
	switch use.Stdout {
	case command.Rows:
		return abstract.DatabaseRows
	case command.Download:
		t := abstract.Network
		if command.Relays[base] {
			t |= abstract.Socket
		}
		if use.VariableIsDatabase {
			t |= own
		}
		return t
	case command.Secret:
		switch {
		case s.isCaptured():
			return abstract.Credential | abstract.StoredCredential
		case command.Dumps[base]:
			return abstract.EnvironmentDump
		}
		return abstract.Secret
	case command.Decoded:
		passed |= abstract.Decoded
		fallthrough
	case command.Input, command.Code, command.Upload:
		if f.readCount == 0 && io.In.Known() && io.In.Text == "" {
			return passed | own
		}
		return passed
	}
	if !use.Understood {
		return passed | own
	}
	return own
}

// generatedTextTaint returns the taint of text that a program generates itself.
func generatedTextTaint(base string, argv []abstract.Value) abstract.Taint {
	if command.Blank[base] || len(argv) > 1 && command.Blank[base+"/"+argv[1].Text] {
		return 0
	}
	return abstract.Local
}
