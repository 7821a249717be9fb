package analysis

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// Harmless reports whether the analysis shows that the case is harmless:
// everything about it is known, and it only reads inside the workspace or does
// nothing.
func (c *Case) Harmless() bool {
	if c.Unexamined != "" || !c.readOnlyType() {
		return false
	}
	for i := range c.Effects {
		if !c.harmless(&c.Effects[i]) {
			return false
		}
	}
	return true
}

// readOnlyType reports whether the action's type can be harmless. A command can if
// it has effects, which shows that it was analysed.
func (c *Case) readOnlyType() bool {
	switch name := c.Action.Type; {
	case name == "execute_command", strings.HasPrefix(name, "git_"):
		return len(c.Effects) > 0
	default:
		t, ok := toolOf(name)
		return ok && t.readOnly
	}
}

func (c *Case) harmless(e *effect.Effect) bool {
	switch e.Kind {
	case effect.Execute:
		return e.Class == effect.ReadOnly
	case effect.ReadFile, effect.ListDirectory:
		return nowhere(e) || c.place.Inside(e.Path, e.Pattern, e.Tree)
	case effect.WriteFile:
		return nowhere(e)
	}
	return false
}

// nowhere reports whether an effect is on the null device or a standard stream.
func nowhere(e *effect.Effect) bool {
	if e.Pattern {
		return false
	}
	switch e.Path {
	case "/dev/null", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2":
		return true
	}
	return false
}
