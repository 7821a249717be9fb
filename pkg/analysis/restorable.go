package analysis

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/committed"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

const maxRestorableDeletions = 64 // maximum number of deletions in a command, and of paths that one deletion matches

// markRestorableDeletions marks deletions that lose nothing: of files that the session created, of
// files that do not exist, and of files that are unchanged in the last commit of a repository in
// the workspace. It marks none if the command may rewrite the history of a repository.
func (c *ActionCase) markRestorableDeletions(f *localFileInspector) {
	if f == nil || c.Action.Type != "execute_command" {
		return
	}
	var deleted []int
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Path != "" && isDeletion(e) && (c.executionContext.IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot) || isTemporaryFile(e)) {
			deleted = append(deleted, i)
		}
	}
	if len(deleted) == 0 || len(deleted) > maxRestorableDeletions || slices.ContainsFunc(c.Effects, mayRewriteGitHistory) {
		return
	}
	r := c.commitReader()
	defer r.Close()
	var unmissed, kept []int
	for _, i := range deleted {
		switch e := &c.Effects[i]; {
		case c.mayActionCreateGlobMatch(e):
		case c.allDeletedPathsMatch(e, c.isCreatedBySessionOrMissing):
			unmissed = append(unmissed, i)
		case c.allDeletedPathsMatch(e, func(p string) bool { return c.isCreatedBySessionOrMissing(p) || c.isInLastCommit(r, f, p) }):
			kept = append(kept, i)
		}
	}
	for _, store := range r.RepositoryGitDirPaths() {
		if c.mayAnyEffectChangePath(effect.QuoteGlobMeta(store) + "/**") {
			kept = nil
		}
	}
	for _, i := range append(unmissed, kept...) {
		c.Effects[i].IsRestorableWithoutBackup = true
	}
}

// allDeletedPathsMatch reports whether a condition holds for every path that an effect deletes.
func (c *ActionCase) allDeletedPathsMatch(e *effect.Effect, matchesPath func(path string) bool) bool {
	switch {
	case !e.PathIsPattern && e.Kind == effect.DeleteDirectory && !e.Recursive: // deletes only an empty folder
		return true
	case !e.PathIsPattern:
		return matchesPath(e.Path)
	}
	x := c.ExpandPathGlob(e)
	if !x.Complete || len(x.Paths)+len(x.DotFilesAmongPaths) > maxRestorableDeletions {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(x.Paths, x.DotFilesAmongPaths), func(p string) bool { return !matchesPath(p) })
}

// isCreatedBySessionOrMissing reports whether the session created the file at a path, or the path does not exist.
func (c *ActionCase) isCreatedBySessionOrMissing(p string) bool {
	return c.executionContext.IsFileCreatedBySession != nil && c.executionContext.IsFileCreatedBySession(p) || c.topmostMissingFolder(p) != ""
}

// isInLastCommit reports whether the last commit has the content of a path.
func (c *ActionCase) isInLastCommit(r *committed.LastCommitReader, f *localFileInspector, p string) bool {
	dir, err := f.resolvePath(path.Dir(p))
	if e, known := f.overlayEntryAt(p); known {
		return err == nil && e.IsIdenticalInGitHEAD
	}
	return err == nil && r.IsCommittedUnchanged(path.Join(dir, path.Base(p)))
}

func isDeletion(e *effect.Effect) bool {
	return e.Kind == effect.DeleteFile || e.Kind == effect.DeleteDirectory
}

// mayRewriteGitHistory reports whether an effect may change the history of a repository: it runs unknown code
// or a git command that can rewrite history.
func mayRewriteGitHistory(e effect.Effect) bool {
	if e.RunsUnanalysedCode() {
		return true
	}
	return e.Kind == effect.Execute && (e.Class == effect.UnknownClass || strings.HasPrefix(e.Program, "git-") || e.Program == "git" && !keepsLastCommitReachable(e.Args))
}

// keepsLastCommitReachable reports whether a git command keeps the last commit and its content in the history. It is
// false if options precede the subcommand.
func keepsLastCommitReachable(gitArgs []string) bool {
	git := command.ParseGit(gitArgs)
	switch {
	case len(gitArgs) == 0:
		return true
	case git.Subcommand != gitArgs[0]:
		return false
	case command.HistoryKeepers[git.Subcommand]:
		return true
	}
	switch git.Subcommand {
	case "commit":
		return !slices.ContainsFunc(git.Args, func(a string) bool { return strings.HasPrefix(a, "--am") })
	case "push": // only a push to a named remote keeps the history: a remote given as a path or URL may be this repository
		return !slices.ContainsFunc(git.Args, func(a string) bool {
			return a != "-u" && a != "--set-upstream" && (strings.ContainsAny(a, ":+.~") || strings.HasPrefix(a, "-") || strings.HasPrefix(a, "/"))
		})
	}
	return false
}

// mayAnyEffectChangePath reports whether an effect changes, or may change, a path that a pattern matches.
func (c *ActionCase) mayAnyEffectChangePath(pathPattern string) bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		switch e.Kind {
		case effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ChangePermissions, effect.Persist:
			return e.Path == "" || effect.PatternsOverlap(effectPathPattern(&e), pathPattern, true)
		}
		return false
	})
}

// effectPathPattern returns the path of an effect as a pattern.
func effectPathPattern(e *effect.Effect) string {
	p := e.Path
	if !e.PathIsPattern {
		p = effect.QuoteGlobMeta(p)
	}
	if e.Recursive {
		p += "/**"
	}
	return p
}
