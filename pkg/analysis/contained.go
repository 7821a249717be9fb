package analysis

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// An ExecutionContainer describes the container in which actions run, as the kernel reports it.
type ExecutionContainer interface {
	// IsOnContainerDisk reports whether a canonical path and everything below it are on the container's
	// own disk.
	IsOnContainerDisk(path string) bool
}

// markEffectsInsideContainer marks effects that stay in the container: packages installed by name from the configured sources,
// and changes of files outside the home folders. Files that run code later, hold credentials or configure
// package sources are excepted.
func (c *ActionCase) markEffectsInsideContainer(container ExecutionContainer) {
	if container == nil {
		return
	}
	sources := slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Kind == effect.ChangeRemoteSystem || e.Kind == effect.HTTPRequest })
	kept, stated := c.Effects[:0], c.directEffectCount
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case e.Cause == effect.CauseUnknownPackage && e.Certainty == effect.Unknown && !sources:
			if i < stated {
				c.directEffectCount--
			}
			continue
		case e.Certainty == effect.Unknown || len(e.Harms) > 0:
		case e.Kind == effect.ChangeSystem && e.Cause == effect.CausePackageInstall, e.Kind == effect.Execute && e.Class == effect.Privileged && c.programOnlyInstallsPackages(e):
			e.Cause = effect.CauseInContainer
		case changesFiles(e) && e.Cause == "" && c.affectsOnlyContainerDisk(e, container):
			e.Cause = effect.CauseInContainer
		}
		kept = append(kept, *e)
	}
	c.Effects = kept
}

// programOnlyInstallsPackages reports whether a program changes the system, and does so only by installing
// packages from its configured sources or by changes that vanish with the container.
func (c *ActionCase) programOnlyInstallsPackages(program *effect.Effect) (yes bool) {
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.ChangeSystem && e.Program == program.Program && e.Span == program.Span {
			if e.Cause != effect.CausePackageInstall && e.Cause != effect.CauseInContainer {
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

// affectsOnlyContainerDisk reports whether the files of an effect are on the container's own disk, and none is sensitive by
// its path.
func (c *ActionCase) affectsOnlyContainerDisk(e *effect.Effect, in ExecutionContainer) bool {
	path := e.Path
	if e.PathIsPattern {
		at := strings.IndexAny(path, `*?[\`)
		if strings.Contains(path, "**") && !e.DoubleStarExcludesDotDot || at < 0 {
			return false
		}
		path = path[:strings.LastIndexByte(path[:at], '/')+1]
		path = strings.TrimSuffix(path, "/")
	}
	if !strings.HasPrefix(path, "/") || !in.IsOnContainerDisk(path) || len(effect.PersistenceClassName(e.Path, e.PathIsPattern, e.Recursive)) > 0 || effect.IsSecretPath(e.Path, e.PathIsPattern) {
		return false
	}
	for _, home := range [...]string{c.executionContext.Home, "/root", "/home"} {
		if home != "" && (path == home || strings.HasPrefix(path, home+"/") || strings.HasPrefix(home, path+"/")) {
			return false
		}
	}
	_, rights := permissionDefiningFiles().FirstPossibleMatch(e.Path, e.PathIsPattern, e.Recursive)
	_, sources := packageSourceConfigFiles().FirstPossibleMatch(e.Path, e.PathIsPattern, e.Recursive)
	if rights || sources {
		return false
	}
	// An agent may not change folders above this depth, such as /data, /usr and /usr/lib.
	least := 2
	for _, top := range [...]string{"/usr/", "/var/", "/etc/", "/lib/", "/bin/", "/sbin/", "/run/"} {
		if strings.HasPrefix(path, top) {
			least = 3
		}
	}
	single := e.Kind == effect.WriteFile || e.Kind == effect.CreateDirectory || e.Kind == effect.DeleteFile && !e.Recursive
	return single && !e.PathIsPattern && !e.Recursive && strings.Count(path, "/") >= 2 || strings.Count(path, "/") >= least
}

// packageSourceConfigFiles are the files that configure package sources, name resolution and trusted keys.
var packageSourceConfigFiles = lazyKnowledgeListGlobs("package_sources")
