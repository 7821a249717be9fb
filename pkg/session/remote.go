package session

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A ChangedGitRemote is a git remote whose URL a session has changed, so that pushes to the remote
// go to another address.
type ChangedGitRemote struct {
	Repository         string `json:"repository,omitempty"` // the repository's .git folder, as repositoryPath returns it; "" for every repository
	Name               string `json:"name"`                 // "*" for any
	HostAndAccount     string `json:"to,omitempty"`         // a host, or a host and an account; "" if unknown
	IsPushURLOrRewrite bool   `json:"apart,omitempty"`      // set by a push URL or by a URL rewrite rule
}

const maxChangedGitRemotes = 256

// changedRemotes returns the addresses that an action sets for remotes.
func changedRemotes(c *analysis.ActionCase) (out []ChangedGitRemote) {
	runs := false
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.Execute && e.Program == "git" {
			runs = true
			if r, ok := parseRemote(command.ParseGit(e.Args)); ok {
				r.Repository = repositoryPath(c, e)
				out = append(out, r)
			}
		}
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if repo, ok := strings.CutSuffix(e.Path, "/config"); !runs && ok && e.Kind == effect.WriteFile && strings.HasSuffix(repo, "/.git") && strings.Contains(strings.ToLower(string(c.Action.Raw)), "url") {
			out = append(out, ChangedGitRemote{Repository: repo, Name: "*", IsPushURLOrRewrite: true})
		}
	}
	return out
}

// parseRemote returns the remote that a git command sets.
func parseRemote(git command.GitCommandLine) (r ChangedGitRemote, ok bool) {
	words := append([]string{git.Subcommand}, git.Operands()...)
	n := len(words)
	switch key := strings.ToLower(words[min(1, n-1)]); {
	case n < 3 || slices.ContainsFunc(git.Args, func(arg string) bool { return strings.HasPrefix(arg, "--get") || strings.HasPrefix(arg, "--unset") }):
		return r, false
	case words[0] == "remote" && (key == "add" || key == "set-url") && n > 3:
		r = ChangedGitRemote{Name: words[n-2], HostAndAccount: hostAndAccount(words[n-1]), IsPushURLOrRewrite: git.HasOption("", "--push")}
		if key == "set-url" {
			r.Name, r.HostAndAccount = words[2], hostAndAccount(words[3])
		}
		if host, _, _ := strings.Cut(r.HostAndAccount, "/"); key == "add" && command.CodeHosts[host] {
			return r, false // no suspicious redirect: a fork, or the first remote of a new project, on a code host
		}
	case words[0] == "config" && n > 3 && (words[1] == "set" || words[1] == "add"):
		return parseRemote(command.GitCommandLine{Subcommand: "config", Args: words[2:]})
	case words[0] == "config" && strings.HasPrefix(key, "remote.") && (strings.HasSuffix(key, ".url") || strings.HasSuffix(key, ".pushurl")):
		name := words[1][len("remote."):strings.LastIndexByte(words[1], '.')]
		r = ChangedGitRemote{Name: name, HostAndAccount: hostAndAccount(words[2]), IsPushURLOrRewrite: strings.HasSuffix(key, ".pushurl")}
	case words[0] == "config" && strings.HasPrefix(key, "url.") && strings.HasSuffix(key, "insteadof"):
		r = ChangedGitRemote{Name: "*", HostAndAccount: hostAndAccount(words[1][len("url."):strings.LastIndexByte(words[1], '.')]), IsPushURLOrRewrite: true}
	default:
		return r, false
	}
	return r, r.HostAndAccount != ""
}

// hostAndAccount returns the host of a repository's address and, if it has one, the account; "" for a
// local folder.
func hostAndAccount(address string) string {
	if owner := ownerOf(address); owner != "" {
		return owner
	}
	host := ""
	if strings.Contains(address, "://") {
		_, host = effect.NormalizeURL(address)
	} else if before, _, ok := strings.Cut(address, ":"); ok && !strings.Contains(before, "/") {
		host = effect.CanonicalHost(before[strings.LastIndexByte(before, '@')+1:])
	}
	if effect.IsLoopbackHost(host) {
		return ""
	}
	return host
}

// addRemotes adds remotes to a record and reports whether any is new. If there is no room, each push
// counts as going to a changed remote.
func (r *Record) addRemotes(more []ChangedGitRemote) (changed bool) {
	for _, one := range more {
		i := slices.IndexFunc(r.Remotes, func(have ChangedGitRemote) bool {
			return have.Repository == one.Repository && have.Name == one.Name && have.IsPushURLOrRewrite == one.IsPushURLOrRewrite
		})
		switch {
		case i >= 0 && r.Remotes[i] == one:
			continue
		case i >= 0:
			r.Remotes[i] = one
		case len(r.Remotes) < maxChangedGitRemotes:
			r.Remotes = append(r.Remotes, one)
		case r.Remotes[maxChangedGitRemotes-1] == ChangedGitRemote{Name: "*", IsPushURLOrRewrite: true}:
			continue
		default:
			r.Remotes[maxChangedGitRemotes-1] = ChangedGitRemote{Name: "*", IsPushURLOrRewrite: true}
		}
		changed = true
	}
	return changed
}

// MarkPushToChangedRemote marks in a case that it pushes a repository to a remote that a session has changed, if
// the remote may belong to another person.
func (s *Session) MarkPushToChangedRemote(c *analysis.ActionCase) {
	if s.err != nil || len(s.recordSharedBySessions.Remotes) == 0 {
		return
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.Execute || e.Program != "git" {
			continue
		}
		name, ok := command.ParseGit(e.Args).Pushes()
		if !ok {
			continue
		}
		name, repo := cmp.Or(name, "origin"), repositoryPath(c, e)
		for _, r := range s.recordSharedBySessions.Remotes {
			if (r.Name == name || r.Name == "*") && (r.Repository == repo || r.Repository == "") && s.remoteMayHaveForeignOwner(r) {
				host, _, _ := strings.Cut(r.HostAndAccount, "/")
				c.AddRepositoryUpload(e.Program, host)
				return
			}
		}
	}
}

// remoteMayHaveForeignOwner reports whether a remote may belong to another person. If the
// accounts of the workspace's repositories are known, it compares with them. Otherwise a remote is
// suspicious if a push URL or a rewrite rule set it, or if its host is not a known code host.
func (s *Session) remoteMayHaveForeignOwner(r ChangedGitRemote) bool {
	host, _, _ := strings.Cut(r.HostAndAccount, "/")
	if len(s.record.RepositoryOwners) == 0 {
		return r.IsPushURLOrRewrite || !command.CodeHosts[host]
	}
	return !slices.Contains(s.record.RepositoryOwners, r.HostAndAccount)
}
