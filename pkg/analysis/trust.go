package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
)

// TrustedDestinations lists the places to which data may be sent, and that may be changed, in ordinary work. This machine
// is always trusted.
type TrustedDestinations struct {
	Hosts               []string // names, globs or CIDR prefixes; HOST/PATH limits the trust to a path
	GitRemotes          []string // names of git remotes
	Recipients          []string // globs of addresses and channels, in which * matches any text
	RemoteResourceGlobs []string // globs of databases, clusters and resources
}

// A trustMatcher is a Trusted prepared for matching.
type trustMatcher struct {
	TrustedDestinations
	hosts []trustedHost
}

type trustedHost struct {
	pattern effect.HostPattern
	path    string // path prefix required of URLs, with a slash at both ends; "" allows all
}

func (t TrustedDestinations) compile() (*trustMatcher, error) {
	out := &trustMatcher{TrustedDestinations: t}
	for _, entry := range t.Hosts {
		pattern, err := effect.ParseHostPattern(entry)
		path := ""
		if host, rest, ok := strings.Cut(entry, "/"); err != nil && ok {
			path = "/" + strings.Trim(rest, "/") + "/"
			pattern, err = effect.ParseHostPattern(host)
		}
		if err != nil {
			return nil, fmt.Errorf("trusted.hosts: %w", err)
		}
		out.hosts = append(out.hosts, trustedHost{pattern, path})
	}
	return out, nil
}

// markTrustedDestinations marks those effects of a command as trusted that send to, or change, a trusted host or repository.
func (t *trustMatcher) markTrustedDestinations(effects []effect.Effect, commandText string) {
	for i := range effects {
		e := &effects[i]
		switch e.KindForPolicies() {
		case effect.SendData, effect.ChangeRemoteSystem, effect.HTTPRequest, effect.Connect, effect.SendMessage:
			e.IsTargetTrusted = t.allDestinationsTrusted(e)
		}
	}
	for i := range effects {
		if e := &effects[i]; e.Kind == effect.ChangeRemoteSystem && e.RemoteOperationVerb == "change" && e.Host+e.RemoteTargetName+e.URL+e.CauseOrFirstHarm() == "" && !e.PathIsPattern {
			e.IsTargetTrusted = t.isTrustedRemoteChange(effects, e, commandText)
		}
	}
}

// isTrustedRemoteChange reports whether a remote change whose host, URL and target are unknown is
// trusted. The program that makes the change must connect only to trusted places, and must send
// data there or edit issues of the workspace's own repository. No setting in shellCommand may
// redirect the program to another host or repository.
func (t *trustMatcher) isTrustedRemoteChange(effects []effect.Effect, change *effect.Effect, shellCommand string) bool {
	sends, runs := false, false
	for i := range effects {
		e := &effects[i]
		if e.Program != change.Program || e.Span.Start < change.Span.Start || e.Span.End > change.Span.End {
			continue
		}
		switch e.KindForPolicies() {
		case effect.SendData, effect.Connect, effect.HTTPRequest:
			if !e.IsTargetTrusted {
				return false
			}
			sends = sends || e.Kind == effect.SendData
		case effect.Execute:
			if e.Class != effect.Network {
				return false
			}
			runs = true
			sends = sends || t != nil && len(t.GitRemotes) > 0 && changesWorkspaceRepoIssues(e)
		}
	}
	return runs && sends && !hostRedirectSettingPattern().MatchString(shellCommand)
}

// hostRedirectSettingPattern matches settings that make programs contact another repository or host.
var hostRedirectSettingPattern = prefilter.LazyRegexp(`GH_|GITHUB_|GITLAB_|GLAB_|\bset-default\b|(?i:_proxy|sshcommand|insteadof)`)

// changesWorkspaceRepoIssues reports whether a program creates, comments on or edits issues or pull requests of the
// workspace's own repository.
func changesWorkspaceRepoIssues(e *effect.Effect) bool {
	if len(e.Args) < 2 {
		return false
	}
	switch e.Program + " " + e.Args[0] {
	case "gh pr", "gh issue", "glab mr", "glab issue":
	default:
		return false
	}
	switch e.Args[1] {
	case "create", "comment", "note", "edit", "update":
	default:
		return false
	}
	return !slices.ContainsFunc(e.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "-R") || strings.HasPrefix(arg, "--repo") || strings.Contains(arg, "://")
	})
}

// allDestinationsTrusted reports whether an effect names a place and all places it names are trusted.
func (t *trustMatcher) allDestinationsTrusted(e *effect.Effect) bool {
	switch {
	case e.PathIsPattern: // in a pattern of a URL, any character after the host may be a wildcard
		return e.RemoteTargetName == "" && effect.IsLoopbackHost(e.Host)
	case e.Host != "" && !t.isTrustedHost(e):
		return false
	case e.RemoteTargetName != "":
		return t != nil && (slices.Contains(t.GitRemotes, e.RemoteTargetName) && e.Program == "git" || t.isTrustedRecipient(e.RemoteTargetName) || matchesAnyGlob(t.RemoteResourceGlobs, e.RemoteTargetName))
	}
	return e.Host != ""
}

// isTrustedRecipient reports whether a text is a single trusted address or channel.
func (t *trustMatcher) isTrustedRecipient(text string) bool {
	return !strings.ContainsAny(text, " \t\r\n,;<>") && matchesAnyGlob(t.Recipients, text)
}

func (t *trustMatcher) isTrustedHost(e *effect.Effect) bool {
	switch {
	case effect.IsLoopbackHost(e.Host):
		return true
	case t == nil:
		return false
	}
	addr := effect.ParseAddr(e.Host)
	for _, h := range t.hosts {
		if h.pattern.Match(e.Host, addr) && strings.HasPrefix(urlPath(e.URL)+"/", h.path) {
			return true
		}
	}
	return false
}

// urlPath returns the path of a URL without its query; "" if the path contains ".." or an escaped character.
func urlPath(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return ""
	}
	path := rest[slash:]
	if end := strings.IndexAny(path, "?#"); end >= 0 {
		path = path[:end]
	}
	if strings.Contains(path, "..") || strings.ContainsAny(path, `%\`) {
		return ""
	}
	return path
}

func matchesAnyGlob(globs []string, s string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		return effect.MatchStars(strings.ToLower(glob), strings.ToLower(s))
	})
}
