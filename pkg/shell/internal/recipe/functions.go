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
	default:
		return "names"
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
