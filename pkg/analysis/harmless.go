package analysis

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
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
		return e.Class == effect.ReadOnly && len(e.Harms) == 0
	case effect.ReadFile, effect.ListDirectory:
		return nowhere(e) || c.place.Inside(e.Path, e.Pattern, e.Tree)
	case effect.WriteFile:
		return nowhere(e)
	}
	return false
}

// Ordinary reports whether the case is ordinary by analysis: everything about it
// is known and surely so, each program is one whose arguments shield reads, and
// it changes nothing but files of the workspace and temporary ones. Whether it
// reads what it should not is for the rules to say.
func (c *Case) Ordinary() bool {
	if c.Unexamined != "" || len(c.Effects) == 0 || !c.ordinaryType() {
		return false
	}
	for i := range c.Effects {
		if !c.ordinary(&c.Effects[i]) {
			return false
		}
	}
	return true
}

// ordinaryType reports whether an action's type is one whose effects say all
// that it does.
func (c *Case) ordinaryType() bool {
	name := c.Action.Type
	_, known := toolOf(name)
	return known || name == "execute_command" || strings.HasPrefix(name, "git_")
}

func (c *Case) ordinary(e *effect.Effect) bool {
	switch e.Kind {
	case effect.Execute:
		return e.Class != effect.Unknown && e.Class != effect.Privileged && len(e.Harms) == 0
	case effect.ReadFile, effect.ListDirectory:
		return e.Path != ""
	case effect.HTTPRequest, effect.Connect, effect.SendData:
		return e.Trusted
	case effect.Listen:
		return effect.Loopback(e.Host)
	case effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ChangePermissions:
		return nowhere(e) || c.place.Inside(e.Path, e.Pattern, e.Tree) || temporary(e) || c.ClearsCache(e) || c.worksHere(e)
	}
	return false
}

// worksHere reports whether an effect is on what the agent's host lets it keep: plans, scratch files.
func (c *Case) worksHere(e *effect.Effect) bool { return c.inHome(agentWorkings(), e) }

// ClearsCache reports whether an effect deletes nothing but what tools of the user keep to be faster.
func (c *Case) ClearsCache(e *effect.Effect) bool {
	return (e.Kind == effect.DeleteFile || e.Kind == effect.DeleteDirectory) && c.inHome(ownCaches(), e)
}

// inHome reports whether all that an effect touches is in the user's home folder and on a list.
func (c *Case) inHome(list *effect.Globs, e *effect.Effect) bool {
	rest, ok := strings.CutPrefix(e.Path, c.place.Home+"/")
	if !ok || c.place.Home == "" {
		return false
	}
	_, ok = list.Covers(anyHome+"/"+rest, e.Pattern, e.Tree, e.Recursive)
	return ok
}

// anyHome stands for the home folder of whoever it is, so that lists of what is in it are compiled once.
const anyHome = "/~"

var (
	ownCaches     = sync.OnceValue(func() *effect.Globs { return homeList("own_caches") })
	agentWorkings = sync.OnceValue(func() *effect.Globs { return homeList("agent_workings") })
)

func homeList(name string) *effect.Globs {
	list, _ := knowledge.Paths(name)
	globs, err := effect.NewGlobs(list, map[string][]string{"HOME": {anyHome}})
	if err != nil {
		panic(err) // a test reads them
	}
	return globs
}

var temporaryFolders = [...]string{"/tmp/", "/var/tmp/", "/private/tmp/"}

// temporary reports whether an effect is on a file that the system clears away.
func temporary(e *effect.Effect) bool {
	for _, folder := range temporaryFolders {
		if rest, ok := strings.CutPrefix(e.Path, folder); ok {
			return !e.Pattern || e.Tree || !strings.Contains(rest, "**")
		}
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

// Notable reports whether an effect is neither harmless nor ordinary.
func (c *Case) Notable(e *effect.Effect) bool { return !c.harmless(e) && !c.ordinary(e) }

// Unread reports whether the effect with an index is a program whose doubt is
// that of the script which it would run, and which is an effect of its own.
func (c *Case) Unread(i int) bool {
	at := c.Effects[i].From
	for _, e := range c.Effects[i+1 : min(i+1+maxParts, len(c.Effects))] {
		if e.From.Start < at.Start || e.From.End > at.End {
			break
		}
		if e.Kind == effect.Dynamic {
			return true
		}
	}
	return false
}

// maxParts is the maximum number of effects behind a program that are taken for
// its own.
const maxParts = 16
