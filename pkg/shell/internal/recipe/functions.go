package recipe

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// function returns what a function of make yields. One that asks for files yields names in the
// folder; of one that makes another text of what it is given, nothing else is known.
func (m *makefile) function(name, args string, depth int) string {
	switch name {
	case "info", "warning", "error", "eval", "file":
		return ""
	case "strip", "sort", "subst", "addprefix", "addsuffix", "join", "firstword", "lastword", "word", "value", "call", "foreach", "if", "or", "and":
	case "guile": // code of make's own
		return "$(${" + abstract.UnsetName + "})"
	default:
		return m.names(args, depth)
	}
	given := m.expand(args, depth+1)
	if name == "call" || name == "value" {
		called, _, _ := strings.Cut(given, ",")
		given += " " + m.expand(m.vars[strings.TrimSpace(called)], depth+1)
	}
	switch unknown := "${" + abstract.UnsetName + "}"; {
	case name == "strip" || name == "sort":
		return given
	case strings.ContainsAny(strings.ReplaceAll(given, "${", ""), "$`"): // the shell may run what it becomes
		return "$(" + unknown + ") " + given
	default:
		return unknown + " " + given
	}
}

// names returns what a function yields that makes names of files, mostly, out of its arguments. What the
// shell that they ask for does is noted apart; text that the shell of the recipe may run makes the rest
// of the line unknown.
func (m *makefile) names(args string, depth int) string {
	m.within++
	given := m.expand(args, depth+1)
	m.within--
	unknown := "${" + abstract.UnsetName + "}"
	switch plain := strings.ReplaceAll(given, "${", ""); {
	case strings.ContainsAny(plain, "$`"):
		return "$(" + unknown + ") " + given
	case strings.ContainsAny(plain, ";&|<>\n"):
		return unknown + " " + given
	}
	return "names"
}
