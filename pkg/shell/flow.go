package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// upload records that a value goes to the network.
func (s *state) upload(v value, program string, at effect.Span) {
	e := effect.Effect{Program: program, From: at}
	switch {
	case v.taint&(secret|credential|dump) != 0:
		e.Kind, e.Reason = effect.SendSecret, "sends "+v.secretName()+" to the network"
	case v.taint&private != 0:
		e.Kind, e.Reason = effect.SendSecret, "sends clipboard or screen to the network"
	default:
		return
	}
	s.once(e)
}

func (v value) secretName() string {
	switch {
	case v.secrets != "":
		return v.secrets
	case v.taint&dump != 0:
		return "the environment"
	}
	return "credentials"
}

// runText records that a value of another part of the command is executed as
// code of a language, and walks it if it is known.
func (s *state) runText(language string, v value, how string, at effect.Span, args []value) value {
	switch {
	case v.taint&socket != 0:
		s.once(effect.Effect{Kind: effect.RemoteShell, Reason: how + " runs what a network connection sends", From: at})
	case v.taint&network != 0:
		s.once(effect.Effect{Kind: effect.RunDownload, Reason: how + " runs what the network sends", From: at})
	case v.taint&decoded != 0:
		s.once(effect.Effect{Kind: effect.RunDecoded, Reason: how + " runs decoded text", From: at})
	}
	if v.known() {
		return s.code(language, v.text, at, args)
	}
	if v.taint == 0 && language == "shell" && !strings.Contains(v.text, "**") {
		// Only numbers and names such as $? and $USER are missing.
		return s.partly(v, at)
	}
	if v.taint&(network|decoded|socket) == 0 && !inherited(v) {
		s.once(effect.Effect{Kind: effect.RunInput, Reason: how + " runs text from another part of the command", From: at})
	}
	s.dynamic(how+" runs text that is not known: "+clip(v.String()), at)
	if language == "shell" && v.pattern {
		s.partly(v, at)
	}
	return unknown("…", foreign|v.taint&(network|secret))
}

// inherited reports whether all that is unknown in a value are variables that
// nothing in the command sets.
func inherited(v value) bool {
	return v.taint == 0 && strings.Contains(v.show, "$") && !strings.Contains(v.show, "$(") && !strings.Contains(v.show, "<(") && !strings.Contains(v.show, "`")
}

// partly walks code of which some part is unknown, with the unknown part taken
// as a variable: `eval "rm -rf $X"` runs rm whatever X holds.
func (s *state) partly(v value, at effect.Span) value {
	if v.bare || v.text == "" {
		return unknown("…", foreign)
	}
	return s.nested(unpattern(v.text), at)
}

// unpattern writes a pattern as shell text: what is unknown becomes a variable
// that nothing sets.
func unpattern(p string) string {
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
			b = append(b, "${"+unsetName+"}"...)
		default:
			b = append(b, p[i])
		}
	}
	return string(b)
}

// unsetName is a variable that text cannot be expected to set.
const unsetName = "__unknown"

func clip(s string) string {
	const most = 80
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// code walks text of a language that is executed.
func (s *state) code(language, text string, at effect.Span, args []value) value {
	if !s.step(1 + len(text)/512) {
		return unknown("…", foreign)
	}
	switch language {
	case "shell", "":
		old := s.args
		s.args = args
		out := s.nested(text, at)
		s.args = old
		return out
	case "powershell":
		return s.nestedPowershell(text, at)
	case "cmd":
		return s.nestedCmd(text, at)
	}
	return s.inline(language, text, at)
}
