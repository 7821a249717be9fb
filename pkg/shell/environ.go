package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// environmentCode looks at an assignment to a variable whose value programs
// run, or in whose folders they look for code.
func (s *state) environmentCode(name string, v value, at effect.Span) {
	switch name {
	case "HISTFILE":
		if v.known() && (v.text == "" || v.text == "/dev/null") {
			s.emit(effect.Effect{Kind: effect.Destroy, Program: name, Reason: "stops the command history", From: at})
		}
		return
	case "SHIELD_CONFIG":
		s.emit(effect.Effect{Kind: effect.ChangeGuard, Program: name, Reason: "gives shield other settings", From: at})
		return
	case "HISTSIZE", "HISTFILESIZE":
		if v.text == "0" {
			s.emit(effect.Effect{Kind: effect.Destroy, Program: name, Reason: "stops the command history", From: at})
		}
		return
	case "PATH":
		s.searchPath(v)
		return
	case "PS4", "PROMPT_COMMAND":
		// Prompts run the command substitutions in them.
		if computed(v) {
			s.runText("shell", v, "$"+name, at, nil)
		} else if v.known() && v.text != "" {
			text := v.text
			if name == "PS4" {
				text = "echo \"" + strings.ReplaceAll(text, `"`, `\"`) + "\""
			}
			s.nested(text, at)
		}
		return
	}
	if v.known() && strings.TrimSpace(v.text) == "" {
		return
	}
	setting := name + "=" + v.text
	n, ok := command.Variable(command.Word{Text: setting, Pattern: v.pattern, From: at})
	if !ok {
		return
	}
	v.from = at
	if !v.known() {
		// From the environment into the environment, as in PYTHONPATH=.:$PYTHONPATH.
		fixed := strings.ReplaceAll(v.text, "*", "")
		_, runs := command.Variable(command.Word{Text: name + "=" + fixed})
		if computed(v) {
			_, runs = command.Variable(command.Word{Text: name + "=x"})
		} else if v.bare {
			return
		}
		if v.taint == 0 && !runs {
			return
		}
	}
	if v.known() {
		s.quietDefault(n, value{text: n.Words[0].Text, from: at, taint: v.taint})
		return
	}
	s.runText(n.Language, v, "$"+name, at, nil)
}

// computed reports whether a value that is not known is what a command writes,
// and not what a variable held before.
func computed(v value) bool {
	return !v.known() && (strings.HasPrefix(v.show, "$(") || strings.HasPrefix(v.show, "`"))
}

// quietDefault walks the command or code that a variable names.
func (s *state) quietDefault(n command.Nested, v value) {
	switch n.Language {
	case "file":
		s.runFile(v, n.Of, nil, streams{}, v.from)
	case "argv":
		s.invoke([]value{v}, streams{})
	default:
		s.code(n.Language, v.text, v.from, nil)
	}
}

// searchPath looks at the folders that programs are looked for in. Those of
// the system change nothing.
func (s *state) searchPath(v value) {
	first, _, _ := strings.Cut(v.text, ":")
	if !v.known() && (v.bare || first == "**") || v.known() && systemFolder(first+"/") {
		return
	}
	s.bind(binding{name: pathChanged, val: lit(first)})
}

// pathChanged is bound where $PATH starts with a folder that is not the
// system's: no program is then certain to be the one that its name says.
const pathChanged = "\x00path"
