package analysis

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// Harmless reports whether the case is harmless by analysis: everything about
// it is known, and all it does is read inside the workspace, or nothing at all.
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

// readOnlyType reports whether the action's type can be harmless. A command
// can; that it has effects at all shows that it was read.
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
