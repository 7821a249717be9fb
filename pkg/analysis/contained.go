package analysis

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A Container is what the kernel says of the container that actions run in.
type Container interface {
	// Holds reports whether a canonical path is on the container's own disk with all below it.
	Holds(path string) bool
}

// contain notes what stays in the container: packages that are installed by their names from
// the sources that the system has, and changes of files outside the home folders. What starts
// later, what holds credentials and what says where packages come from is no such file.
func (c *Case) contain(in Container) {
	if in == nil {
		return
	}
	sources := slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Kind == effect.ChangeRemote || e.Kind == effect.HTTPRequest })
	kept, stated := c.Effects[:0], c.stated
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case e.Cause == effect.CausePackage && e.Sure == effect.Unknown && !sources:
			if i < stated {
				c.stated--
			}
			continue
		case e.Sure == effect.Unknown || len(e.Harms) > 0:
		case e.Kind == effect.ChangeSystem && e.Cause == effect.CausePackages, e.Kind == effect.Execute && e.Class == effect.Privileged && c.installs(e):
			e.Cause = effect.CauseContained
		case changesFiles(e) && e.Cause == "" && c.disposable(e, in):
			e.Cause = effect.CauseContained
		}
		kept = append(kept, *e)
	}
	c.Effects = kept
}

// installs reports whether all that a program changes of the system are packages of its sources.
func (c *Case) installs(program *effect.Effect) (yes bool) {
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.ChangeSystem && e.Program == program.Program && e.From == program.From {
			if e.Cause != effect.CausePackages && e.Cause != effect.CauseContained {
				return false
			}
			yes = true
		}
	}
	return yes
}

func changesFiles(e *effect.Effect) bool {
	switch e.Kind {
	case effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ChangePermissions:
		return true
	}
	return false
}

// disposable reports whether the files of an effect are the container's own, and none of
// those that are looked at closely wherever they are.
func (c *Case) disposable(e *effect.Effect, in Container) bool {
	path := e.Path
	if e.Pattern {
		at := strings.IndexAny(path, `*?[\`)
		if strings.Contains(path, "**") && !e.Tree || at < 0 {
			return false
		}
		path = path[:strings.LastIndexByte(path[:at], '/')+1]
		path = strings.TrimSuffix(path, "/")
	}
	if !strings.HasPrefix(path, "/") || !in.Holds(path) || len(effect.Persists(e.Path, e.Pattern, e.Recursive)) > 0 || effect.SecretPath(e.Path, e.Pattern) {
		return false
	}
	for _, home := range [...]string{c.place.Home, "/root", "/home"} {
		if home != "" && (path == home || strings.HasPrefix(path, home+"/") || strings.HasPrefix(home, path+"/")) {
			return false
		}
	}
	_, rights := rightsFiles().Touches(e.Path, e.Pattern, e.Recursive)
	_, sources := packageSources().Touches(e.Path, e.Pattern, e.Recursive)
	if rights || sources {
		return false
	}
	// The folders of the system themselves are more than the work of an agent.
	least := 2
	for _, top := range [...]string{"/usr/", "/var/", "/etc/", "/lib/", "/bin/", "/sbin/", "/run/"} {
		if strings.HasPrefix(path, top) {
			least = 3
		}
	}
	single := e.Kind == effect.WriteFile || e.Kind == effect.CreateDirectory || e.Kind == effect.DeleteFile && !e.Recursive
	return single && !e.Pattern && !e.Recursive && strings.Count(path, "/") >= 2 || strings.Count(path, "/") >= least
}

// packageSources are the files that say where packages and names come from, and whom to trust.
var packageSources = known("package_sources")
