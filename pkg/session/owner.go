package session

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// Repositories of the account that owns the workspace are trusted like the workspace itself: a build of their
// clones needs no question. The account is learned from the output of git or gh commands that print only the
// workspace's remotes.

// gitRemotePrintCommands are the commands that print the remote of the workspace.
var gitRemotePrintCommands = []string{
	"git remote -v", "git remote --verbose", "git remote get-url origin", "git config --get remote.origin.url", "git config remote.origin.url",
	"git ls-remote --get-url origin", "gh repo view --json nameWithOwner", "gh repo view --json nameWithOwner -q .nameWithOwner", "gh repo view --json nameWithOwner --jq .nameWithOwner",
}

var (
	// cloneCommandPattern is a command that clones one repository and does nothing else.
	cloneCommandPattern = prefilter.LazyRegexp(`^(?:git clone(?: (?:--depth[ =][0-9]+|(?:-b |--branch[ =])[A-Za-z0-9._/]+|--single-branch|--no-tags|-q|--quiet))* ([A-Za-z0-9][A-Za-z0-9@:/._-]*)|gh repo clone ([A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+))(?: [A-Za-z0-9./_~][A-Za-z0-9./_-]*)?$`)
	// repositoryURLPattern matches the URL of a repository: its host, and the account there.
	repositoryURLPattern = prefilter.LazyRegexp(`^(?:https://|ssh://git@|git@)([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?::22)?[:/]([A-Za-z0-9][A-Za-z0-9._-]*)/[A-Za-z0-9._/-]+$`)
	// ghRepositoryOutputPattern matches the output of "gh repo view --json nameWithOwner", as JSON or plain
	// text, and captures the account.
	ghRepositoryOutputPattern = prefilter.LazyRegexp(`^(?:\{"nameWithOwner":")?([A-Za-z0-9][A-Za-z0-9-]*)/[A-Za-z0-9._-]+(?:"\})?$`)
)

// ownerOf returns HOST/ACCOUNT for the URL of a repository, in lower case; "" if the URL does not
// match repositoryURLPattern.
func ownerOf(url string) string {
	m := repositoryURLPattern().FindStringSubmatch(url)
	if m == nil || strings.Contains(url, "..") || strings.Contains(url[len("https://"):], "//") {
		return ""
	}
	return strings.ToLower(m[1] + "/" + m[2])
}

// repositoryOwners returns the account that owns the workspace according to a command's output.
func repositoryOwners(c *analysis.ActionCase, texts []string) []string {
	command := strings.TrimSpace(c.Action.Text("command"))
	if len(texts) != 1 || c.Action.Type != "execute_command" || !slices.Contains(gitRemotePrintCommands, command) || !isCWDInWorkspaceRepository(c) {
		return nil
	}
	owner := ""
	for line := range strings.Lines(texts[0]) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "origin"); ok && strings.HasPrefix(command, "git remote -") {
			line, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
		} else if line == "" || strings.HasPrefix(command, "git remote -") {
			continue
		}
		one := ownerOf(line)
		if m := ghRepositoryOutputPattern().FindStringSubmatch(line); m != nil && strings.HasPrefix(command, "gh ") {
			one = "github.com/" + strings.ToLower(m[1])
		}
		if one == "" || owner != "" && one != owner || !gitRemotesHaveOwner(c, one) {
			return nil
		}
		owner = one
	}
	if owner == "" {
		return nil
	}
	return []string{owner}
}

// isCWDInWorkspaceRepository reports whether the working folder belongs to the workspace's own repository:
// no nested repository begins between it and the root.
func isCWDInWorkspaceRepository(c *analysis.ActionCase) bool {
	place := c.ExecutionContext()
	if place.OriginLabels != nil && len(place.OriginLabels(place.CWD)) > 0 || place.ReadScript == nil {
		return false
	}
	for dir := place.CWD; place.IsInsideRoots(dir, false, false); dir = path.Dir(dir) {
		if slices.Contains(place.WorkspaceRoots, dir) {
			return true
		}
		if _, err := place.ReadScript(dir + "/.git"); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return false
}

// gitRemotesHaveOwner reports whether the git configuration of each workspace root contains the URL
// of a repository of the account. A configuration that cannot be read is skipped.
func gitRemotesHaveOwner(c *analysis.ActionCase, owner string) bool {
	place := c.ExecutionContext()
	for _, root := range place.WorkspaceRoots {
		text, err := place.ReadScript(root + "/.git/config")
		if err == nil && !slices.ContainsFunc(strings.Fields(string(text)), func(word string) bool { return ownerOf(word) == owner }) {
			return false
		}
	}
	return true
}

// mayChangeGitOrigin reports whether an action may change the remote of the workspace.
func mayChangeGitOrigin(c *analysis.ActionCase) bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		switch {
		case e.Kind == effect.WriteFile || e.Kind == effect.Persist:
			return path.Base(e.Path) == ".gitconfig" || strings.Contains(e.Path, "/.git/") || strings.HasSuffix(e.Path, "/git/config")
		case e.Kind != effect.Execute || e.Program != "git" && e.Program != "gh":
			return false
		}
		has := func(word string) bool { return slices.Contains(e.Args, word) }
		switch git := command.ParseGit(e.Args); git.Subcommand {
		case "repo":
			return has("set-default")
		case "remote":
			return has("set-url") || has("rename") || has("add") && has("origin")
		case "config":
			return slices.ContainsFunc(git.Args, func(arg string) bool {
				arg = strings.ToLower(arg)
				return strings.Contains(arg, "insteadof") || strings.HasPrefix(arg, "include") || strings.HasPrefix(arg, "remote.") && !has("--get") && len(git.Args) > 1 || arg == "-e" || arg == "--edit"
			})
		}
		return false
	})
}

// unlabelCloneFromWorkspaceOwner removes from a delta the clone of a repository of the account that owns the workspace.
func (s *Session) unlabelCloneFromWorkspaceOwner(c *analysis.ActionCase, d *RecordDelta) {
	if d.GitOriginMayHaveChanged || s.gitOriginMayHaveChanged() || len(s.record.RepositoryOwners) == 0 {
		return
	}
	m := cloneCommandPattern().FindStringSubmatch(strings.TrimSpace(c.Action.Text("command")))
	if m == nil || c.Action.Type != "execute_command" {
		return
	}
	owner := ownerOf(m[1])
	if m[2] != "" {
		account, _, _ := strings.Cut(m[2], "/")
		owner = "github.com/" + strings.ToLower(account)
	}
	if slices.Contains(s.record.RepositoryOwners, owner) {
		d.LabelledFiles = slices.DeleteFunc(d.LabelledFiles, func(f effect.LabelledFile) bool {
			return slices.Equal(f.Labels, []effect.TaintLabel{effect.LabelUntrusted})
		})
	}
}
