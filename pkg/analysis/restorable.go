package analysis

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/committed"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

const (
	maxRestored = 64  // effects of a command that are looked at
	maxMatches  = 256 // names in a folder that are compared with a pattern
)

// restorable marks what a command deletes though version control can give it
// back: it is in the last commit of a repository in the workspace just as it
// lies there, and nothing in the command changes it first, or the repository's
// history.
func (c *Case) restorable(f *files) {
	if f == nil || c.Action.Type != "execute_command" {
		return
	}
	var deleted []int
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Path != "" && deletes(e) && c.place.Inside(e.Path, e.Pattern, e.Tree) {
			deleted = append(deleted, i)
		}
	}
	if len(deleted) == 0 || len(deleted) > maxRestored || slices.ContainsFunc(c.Effects, unsettles) {
		return
	}
	inside := func(p string) bool { return c.place.Inside(p, false, false) }
	home := strings.TrimSuffix(c.place.Home, "/") + "/"
	r := committed.New(disk{f}, inside, func(p string) bool {
		return inside(p) || len(home) > 1 && strings.HasPrefix(p, home)
	})
	defer r.Close()
	var kept []int
	for _, i := range deleted {
		if c.kept(r, f, &c.Effects[i]) {
			kept = append(kept, i)
		}
	}
	for _, store := range r.Stores() {
		if c.changes(effect.Quote(store)+"/**", func(*effect.Effect) bool { return true }) {
			return
		}
	}
	for _, i := range kept {
		c.Effects[i].Restorable = !c.changes(reach(&c.Effects[i]), func(e *effect.Effect) bool { return !deletes(e) })
	}
}

func deletes(e *effect.Effect) bool {
	return e.Kind == effect.DeleteFile || e.Kind == effect.DeleteDirectory
}

// unsettles reports whether, beside an effect, nothing is known of what a
// repository holds later: it may be anything, or rewrites history.
func unsettles(e effect.Effect) bool {
	switch e.Kind {
	case effect.Dynamic, effect.RunInput, effect.RunDownload, effect.RunDecoded, effect.RemoteShell:
		return true
	case effect.Execute:
		return e.Class == effect.Unknown || strings.HasPrefix(e.Program, "git-") || e.Program == "git" && !keepsHistory(e.Args)
	}
	return false
}

// keepsHistory reports whether git leaves the last commit, and all that it holds,
// in the history. Options before the subcommand may make it anything.
func keepsHistory(args []string) bool {
	if len(args) == 0 || command.HistoryKeepers[args[0]] {
		return true
	}
	switch args[0] {
	case "commit":
		return !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--am") })
	case "push": // to a remote by its name: a path or a URL may be this repository
		return !slices.ContainsFunc(args[1:], func(a string) bool {
			return a != "-u" && a != "--set-upstream" && (strings.ContainsAny(a, ":+.~") || strings.HasPrefix(a, "-") || strings.HasPrefix(a, "/"))
		})
	}
	return false
}

// changes reports whether an effect that counts changes something that a pattern
// matches, or may do so.
func (c *Case) changes(pattern string, counts func(*effect.Effect) bool) bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		switch e.Kind {
		case effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ChangePermissions, effect.Persist:
			return counts(&e) && (e.Path == "" || effect.Overlap(reach(&e), pattern, true))
		}
		return false
	})
}

// reach returns what an effect touches as a pattern.
func reach(e *effect.Effect) string {
	p := e.Path
	if !e.Pattern {
		p = effect.Quote(p)
	}
	if e.Recursive {
		p += "/**"
	}
	return p
}

// kept reports whether all that an effect deletes is in the last commit.
func (c *Case) kept(r *committed.Reader, f *files, e *effect.Effect) bool {
	if !e.Pattern {
		dir, err := f.follow(path.Dir(e.Path))
		return err == nil && r.Keeps(path.Join(dir, path.Base(e.Path)))
	}
	wild := strings.IndexAny(e.Path, `*?[\`)
	cut := strings.LastIndexByte(e.Path[:max(wild, 0)], '/')
	if cut <= 0 {
		return false
	}
	dir, err := f.follow(e.Path[:cut])
	if err != nil {
		return false
	}
	name := e.Path[cut+1:]
	if strings.Contains(name, "/") || strings.Contains(name, "**") {
		return r.Keeps(dir) // and so is what the pattern matches there
	}
	names, err := disk{f}.ReadDir(dir, maxMatches+1)
	if err != nil || len(names) > maxMatches {
		return false
	}
	found := false
	for _, n := range names {
		if !effect.Overlap(name, effect.Quote(n.Name()), c.place.FoldCase) {
			continue
		}
		if !r.Keeps(dir + "/" + n.Name()) {
			return false
		}
		found = true
	}
	return found
}
