package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// environmentCode looks at an assignment to a variable whose value programs
// run, or in whose folders they look for code.
func (s *state) environmentCode(name string, v abstract.Value, at effect.Span) {
	if strings.HasPrefix(name, guardVariables) {
		s.guard(name, "gives shield other settings", at)
		return
	}
	switch name {
	case "HISTFILE":
		if v.Known() && (v.Text == "" || v.Text == "/dev/null") {
			s.emit(effect.Effect{Kind: effect.Destroy, Program: name, Cause: effect.CauseHistory, Reason: "stops the command history", From: at})
		}
		return
	case "HISTSIZE", "HISTFILESIZE":
		if v.Text == "0" {
			s.emit(effect.Effect{Kind: effect.Destroy, Program: name, Cause: effect.CauseHistory, Reason: "stops the command history", From: at})
		}
		return
	case "PATH":
		s.searchPath(v)
		return
	case "PS4", "PROMPT_COMMAND":
		// Prompts run the command substitutions in them.
		if !v.Known() && v.Origin&abstract.FromCommand != 0 {
			s.runText("shell", v, "$"+name, at, nil)
		} else if v.Known() && v.Text != "" {
			text := v.Text
			if name == "PS4" {
				text = "echo \"" + strings.ReplaceAll(text, `"`, `\"`) + "\""
			}
			s.nested(text, at)
		}
		return
	}
	if v.Known() && strings.TrimSpace(v.Text) == "" {
		return
	}
	setting := name + "=" + v.Text
	n, ok := command.Variable(command.Word{Text: setting, Pattern: v.IsPattern, From: at})
	if !ok {
		return
	}
	v.From = at
	if !v.Known() {
		// From the environment into the environment, as in PYTHONPATH=.:$PYTHONPATH.
		fixed := strings.ReplaceAll(v.Text, "*", "")
		_, runs := command.Variable(command.Word{Text: name + "=" + fixed})
		if computed(v) {
			_, runs = command.Variable(command.Word{Text: name + "=x"})
		} else if v.Bare {
			return
		}
		if v.Taint == 0 && !runs {
			return
		}
	}
	if v.Known() {
		s.quietDefault(n, abstract.Value{Text: n.Words[0].Text, From: at, Taint: v.Taint})
		return
	}
	s.runText(n.Language, v, "$"+name, at, nil)
}

// computed reports whether a value that is not known is what a command writes,
// and not what a variable held before.
func computed(v abstract.Value) bool {
	return !v.Known() && v.Lead&abstract.FromCommand != 0
}

// quietDefault walks the command or code that a variable names.
func (s *state) quietDefault(n command.Nested, v abstract.Value) {
	switch n.Language {
	case "file":
		s.runFile(v, n.Of, nil, abstract.Streams{}, v.From)
	case "code":
		// Options and settings that name what is to run, in no language of ours.
		s.dynamic(effect.CauseCode, "a variable makes programs run what its value names: "+abstract.Clip(v.Text), v.From)
	case "argv":
		s.invoke([]abstract.Value{v}, abstract.Streams{})
	default:
		s.code(n.Language, v.Text, v.From, nil)
	}
}

// searchPath looks at the folders that programs are looked for in. Those of
// the system change nothing.
func (s *state) searchPath(v abstract.Value) {
	first, _, _ := strings.Cut(v.Text, ":")
	if !v.Known() && (v.Bare || first == "**") || v.Known() && systemFolder(first+"/") {
		return
	}
	s.bind(binding{name: pathChanged, val: abstract.Lit(first)})
}

// pathChanged is bound where $PATH starts with a folder that is not the
// system's: no program is then certain to be the one that its name says.
const pathChanged = "\x00path"
