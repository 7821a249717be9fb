package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
)

// Trusted are the places that data may go to, and that may be changed, in the
// course of ordinary work. This machine always is one.
type Trusted struct {
	Hosts      []string // names, globs or CIDR prefixes; HOST/PATH for a part of a host
	GitRemotes []string // names of git remotes
	Recipients []string // globs in which * stands for any text, of addresses and channels
	Targets    []string // globs of databases, clusters and resources
}

// A trust is Trusted in the form that effects are compared with.
type trust struct {
	Trusted
	hosts []trustedHost
}

type trustedHost struct {
	pattern effect.HostPattern
	path    string // "" or the path that URLs have to be below, with a slash at both ends
}

func (t Trusted) compile() (*trust, error) {
	out := &trust{Trusted: t}
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

// mark notes which effects of a command concern a trusted place.
func (t *trust) mark(effects []effect.Effect, text string) {
	for i := range effects {
		e := &effects[i]
		switch e.Word() {
		case effect.SendData, effect.ChangeRemote, effect.HTTPRequest, effect.Connect, effect.SendMessage:
			e.Trusted = t.allTrusted(e)
		}
	}
	for i := range effects {
		if e := &effects[i]; e.Kind == effect.ChangeRemote && e.Verb == "change" && e.Host+e.Target+e.URL+e.Variant() == "" && !e.Pattern {
			e.Trusted = t.delivers(effects, e, text)
		}
	}
}

// delivers reports whether a remote change that names no place is what a program does in
// delivering data to trusted places only, without taking anything away there, or what an
// account does every day to its own repository.
func (t *trust) delivers(effects []effect.Effect, change *effect.Effect, text string) bool {
	sends, runs := false, false
	for i := range effects {
		e := &effects[i]
		if e.Program != change.Program || e.From.Start < change.From.Start || e.From.End > change.From.End {
			continue
		}
		switch e.Word() {
		case effect.SendData, effect.Connect, effect.HTTPRequest:
			if !e.Trusted {
				return false
			}
			sends = sends || e.Kind == effect.SendData
		case effect.Execute:
			if e.Class != effect.Network {
				return false
			}
			runs = true
			sends = sends || t != nil && len(t.GitRemotes) > 0 && changesOwnIssues(e)
		}
	}
	return runs && sends && !otherPlace().MatchString(text)
}

// otherPlace finds what makes programs contact another repository or host.
var otherPlace = prefilter.Lazy(`GH_|GITHUB_|GITLAB_|GLAB_|\bset-default\b|(?i:_proxy|sshcommand|insteadof)`)

// changesOwnIssues reports whether a program creates, comments or edits issues and requests of
// the repository that the workspace is a clone of.
func changesOwnIssues(e *effect.Effect) bool {
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

// allTrusted reports whether all that an effect names is trusted, and that it names
// something.
func (t *trust) allTrusted(e *effect.Effect) bool {
	switch {
	case e.Pattern: // of a URL, what follows the host may be one
		return e.Target == "" && effect.Loopback(e.Host)
	case e.Host != "" && !t.host(e):
		return false
	case e.Target != "":
		return t != nil && (slices.Contains(t.GitRemotes, e.Target) && e.Program == "git" || t.recipient(e.Target) || matches(t.Targets, e.Target))
	}
	return e.Host != ""
}

// recipient reports whether a text is one address or channel, and a trusted one.
func (t *trust) recipient(text string) bool {
	return !strings.ContainsAny(text, " \t\r\n,;<>") && matches(t.Recipients, text)
}

func (t *trust) host(e *effect.Effect) bool {
	switch {
	case effect.Loopback(e.Host):
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

// urlPath returns the path of a URL without its query. One that climbs, or hides
// a character, has none.
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

func matches(globs []string, s string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		return effect.MatchStars(strings.ToLower(glob), strings.ToLower(s))
	})
}
