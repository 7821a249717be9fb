package session

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A value that an action writes down may later be sent with a file, or with the commits, branch names
// and tags of a repository.

// AddSecretFiles adds to a delta, with the label [effect.LabelFromCredentialLocation], the files and
// repositories into which an action writes a credential that its session has seen. If the action clones a
// repository of the account that owns the workspace, AddSecretFiles also removes from the delta the entries that
// label the clone as untrusted.
func (s *Store) AddSecretFiles(ctx context.Context, loaded *Session, c *analysis.ActionCase, d *RecordDelta) error {
	if loaded.err != nil {
		return nil
	}
	loaded.unlabelCloneFromWorkspaceOwner(c, d)
	if loaded.valueSetFingerprint == "" || !WritesFile(c) {
		return nil
	}
	m, err := s.loadValueMatcher(ctx, loaded)
	if err != nil {
		return err
	}
	held := []effect.TaintLabel{effect.LabelFromCredentialLocation}
	written := m.textsContainCredential(s.opts.CredentialHashKey, c.PayloadAndCommandTexts())
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case e.Kind == effect.WriteFile && written && !e.PathIsPattern && e.Path != "" && !effect.IsSecretPath(e.Path, false):
			d.LabelledFiles = append(d.LabelledFiles, effect.LabelledFile{Path: e.Path, IncludesDescendants: e.Recursive, Labels: held})
		case writesCommit(e) && (written || loaded.commitsSecretFile(c, e)):
			d.LabelledFiles = append(d.LabelledFiles, effect.LabelledFile{Path: repositoryPath(c, e), Labels: held})
		}
	}
	return nil
}

// WritesFile reports whether an action writes a file or adds to a repository.
func WritesFile(c *analysis.ActionCase) bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Kind == effect.WriteFile || writesCommit(&e) })
}

// writesCommit reports whether an effect writes into a repository something that a push sends.
func writesCommit(e *effect.Effect) bool {
	if e.Kind != effect.Execute || e.Program != "git" {
		return false
	}
	switch git := command.ParseGit(e.Args); git.Subcommand {
	case "add", "branch", "checkout", "commit", "notes", "stage", "switch", "tag":
		return true
	case "submodule", "subtree", "worktree":
		return slices.Contains(git.Args, "add")
	case "stash":
		return slices.Contains(git.Args, "branch")
	}
	return false
}

// isPush reports whether an effect pushes a repository's content.
func isPush(e *effect.Effect) bool {
	_, ok := command.ParseGit(e.Args).Pushes()
	return ok && e.Kind == effect.Execute && e.Program == "git"
}

// repositoryPath returns the path that identifies a repository: the .git folder of the workspace root or,
// outside a workspace, of the folder that git works in.
func repositoryPath(c *analysis.ActionCase, e *effect.Effect) string {
	place := c.ExecutionContext()
	dir := command.ParseGit(e.Args).Folder
	if !path.IsAbs(dir) {
		dir = path.Join(place.CWD, dir)
	}
	for _, root := range place.WorkspaceRoots {
		if dir == root || strings.HasPrefix(dir, root+"/") {
			dir = root
		}
	}
	return path.Join(dir, ".git")
}

// commitsSecretFile reports whether a git command that adds to a repository, such as add or commit, may include
// a file to which a credential was written.
func (s *Session) commitsSecretFile(c *analysis.ActionCase, e *effect.Effect) bool {
	if len(s.files) == 0 {
		return false
	}
	git, place := command.ParseGit(e.Args), c.ExecutionContext()
	top := path.Dir(repositoryPath(c, e))
	moves := slices.ContainsFunc(c.Effects, func(o effect.Effect) bool { return o.Program == "cd" || o.Program == "pushd" })
	all := git.HasOption("A", "--all") || git.Subcommand == "commit" && git.HasOption("a") || git.Subcommand == "add" && git.HasOption("u", "--update")
	var taken []string // file patterns
	for _, p := range git.Operands() {
		all = all || p == "." || strings.HasPrefix(p, ":/") || strings.HasPrefix(p, ":(")
		if moves && !path.IsAbs(p) {
			taken = append(taken, path.Join(top, "**", p))
		}
		for _, dir := range []string{git.Folder, place.CWD} {
			if !path.IsAbs(p) {
				p = path.Join(dir, p)
			}
		}
		taken = append(taken, p)
	}
	for i := range c.Effects { // add the paths that the git command itself reads
		if o := &c.Effects[i]; o.Kind == effect.ReadFile && o.Path != "" && o.Program == e.Program && o.Span.Start >= e.Span.Start && o.Span.End <= e.Span.End {
			taken = append(taken, o.Path)
		}
	}
	return s.anySecretFile(func(file string) bool {
		return all && strings.HasPrefix(file, top+"/") || slices.ContainsFunc(taken, func(p string) bool { return effect.PatternsOverlap(p+"/**", file, false) })
	})
}

// secretLabelBits are the labels of files that hold a credential.
var secretLabelBits = labelBits([]effect.TaintLabel{effect.LabelFromCredentialLocation, effect.LabelCredential})

// anySecretFile reports whether a file that choose accepts holds a credential, although its name is not that of
// a credentials file (see effect.IsSecretPath). It ignores .git folders.
func (s *Session) anySecretFile(choose func(file string) bool) bool {
	for file, e := range s.files {
		if e.taintLabelBits&secretLabelBits != 0 && choose(file) && !effect.IsSecretPath(file, false) && path.Base(file) != ".git" {
			return true
		}
	}
	return false
}

// pushesSecretFile reports whether a case may send a credential that was written to a file before: with the
// commits of a repository, a file copied to another machine, or a package.
func (s *Session) pushesSecretFile(c *analysis.ActionCase) bool {
	if len(s.files) == 0 {
		return false
	}
	away := slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return (e.KindForPolicies() == effect.SendData || e.Kind == effect.SendMessage || e.Kind == effect.ChangeRemoteSystem || e.Kind == effect.HTTPRequest) && !effect.IsLoopbackHost(e.Host)
	})
	if !away {
		return false
	}
	held := func(file string) bool {
		b, _ := s.lookUpFileLabels(fileKeySuffixOfPath(file))
		return b&secretLabelBits != 0
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case isPush(e):
			if held(repositoryPath(c, e)) || slices.ContainsFunc(c.Effects, func(o effect.Effect) bool { return writesCommit(&o) && s.commitsSecretFile(c, &o) }) {
				return true
			}
		case e.Kind == effect.SendData && e.RemoteServiceName == "registry":
			if s.anySecretFile(func(file string) bool { return strings.HasPrefix(file, c.ExecutionContext().CWD+"/") }) {
				return true
			}
		case (e.Kind == effect.ReadFile || e.Kind == effect.SendData) && e.Path != "" && !e.PathIsPattern && e.Cause != effect.CauseUnprintedFileRead:
			if held(e.Path) && !effect.IsSecretPath(e.Path, false) {
				return true
			}
		}
	}
	return false
}
