package classify

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	programs "github.com/shieldcli/shield/pkg/shell/command"
)

// Ordinary work of the kinds below looks like an attack by its words alone. A model that is not
// sure of its suspicion does not make it a question.

// startsOwn reports whether all that a case does is to hand settings of the workspace,
// which nothing shows, to programs that run what the project says. The
// name of such a file alone is suspicious to a model.
func startsOwn(c *analysis.Case) bool {
	hands, starts := false, false
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.Kind {
		case effect.ReadFile:
			hands = hands || e.Cause == effect.CauseUnshown
		case effect.Execute:
			switch e.Program {
			case "set", "export", "source", ".", "cd":
				continue
			}
			if starts = true; len(programs.Loaders(e.Program, e.Args)) == 0 {
				return false
			}
		}
	}
	return hands && starts
}

// readsOpen reports whether all that a case does is to read settings of the machine
// and public parts of keys, and to look for a pattern in them. Their names, which often
// stand beside those of secrets, are suspicious to a model; rules know the secrets.
func readsOpen(c *analysis.Case) bool {
	reads := false
	for i := range c.Effects {
		e := &c.Effects[i]
		switch e.Kind {
		case effect.ReadFile, effect.ListDirectory:
			if _, open := openFiles().Covers(e.Path, e.Pattern, e.Tree, e.Recursive); !open {
				return false
			}
			if _, rights := rightsFiles().Touches(e.Path, e.Pattern, e.Recursive); rights {
				return false
			}
			reads = true
		case effect.Execute:
			if e.Class != effect.ReadOnly {
				return false
			}
		default:
			return false
		}
	}
	return reads
}

// The files that [readsOpen] knows.
var (
	openFiles = sync.OnceValue(func() *effect.Globs {
		return mustGlobs(listed([]string{"@open_files", "@public_files"}, knowledge.Paths), nil)
	})
	rightsFiles = sync.OnceValue(func() *effect.Globs { return mustGlobs(listed([]string{"@rights_files"}, knowledge.Paths), nil) })
)

// clearsAway reports whether all that a case does is to delete what was put aside under a name
// below a folder that the system clears by itself, or what tools keep to be faster.
func clearsAway(c *analysis.Case) bool {
	deletes := false
	for i := range c.Effects {
		e := &c.Effects[i]
		switch e.Kind {
		case effect.DeleteFile, effect.DeleteDirectory:
			if !putAside(e) && !c.ClearsCache(e) {
				return false
			}
			deletes = true
		case effect.Execute:
			if e.Class != effect.ReadOnly && e.Class != effect.Destructive {
				return false
			}
		case effect.WriteFile:
			if e.Path != "/dev/null" {
				return false
			}
		default:
			return false
		}
	}
	return deletes
}

// putAside reports whether the path of an effect has a known name, which is not hidden, below a
// folder for temporary files.
func putAside(e *effect.Effect) bool {
	for _, folder := range [...]string{"/tmp/", "/var/tmp/", "/private/tmp/"} {
		rest, below := strings.CutPrefix(e.Path, folder)
		name, _, _ := strings.Cut(rest, "/")
		if below && name != "" && name[0] != '.' && !(e.Pattern && strings.ContainsAny(name, `*?[\`)) {
			return true
		}
	}
	return false
}

// triesOut reports whether all that a case does is to start what the project says, and to ask it for
// something: servers behind it, what they write and how they are ended look like an attack by their
// words alone. The case is ordinary, so that what is contacted is this machine.
func triesOut(c *analysis.Case) bool {
	starts, asks := false, false
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.Kind {
		case effect.Execute:
			if e.Class == effect.Destructive {
				return false
			}
			starts = starts || len(programs.Loaders(e.Program, e.Args)) > 0
		case effect.HTTPRequest, effect.Connect:
			if !effect.Loopback(e.Host) {
				return false
			}
			asks = true
		case effect.ReadFile, effect.ListDirectory, effect.WriteFile:
		default:
			return false
		}
	}
	return starts && asks
}

// writesProse reports whether all that a case does is to write documents. What they
// tell an agent to do is for rules.
func writesProse(c *analysis.Case) bool {
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.WriteFile {
			return false
		}
		if _, prose := proseFiles().Covers(e.Path, e.Pattern, e.Tree, e.Recursive); !prose {
			return false
		}
	}
	return len(c.Effects) > 0
}

var proseFiles = sync.OnceValue(func() *effect.Globs { return mustGlobs(listed([]string{"@prose_files"}, knowledge.Paths), nil) })
