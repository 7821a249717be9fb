package objects

import (
	"net/url"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// An ExternalResource is something that an action fetches, installs or sends to, with its names: a program, a host, a
// package, a recipient, or a URL path on a host where anybody can publish.
type ExternalResource struct {
	CanonicalNames []string // canonical; the first is shown to people
	Host           string   // the host, if the action only reads from it; else ""
}

// fetchingSubcommands are subcommands of programs that fetch what their operands name, for programs whose table
// entries do not mark operands as packages.
var fetchingSubcommands = map[string][]string{
	"cargo": {"add"}, "go": {"get", "install", "run"}, "gem": {"install"}, "bundle": {"add"}, "brew": {"install", "tap"}, "apt": {"install"}, "apt-get": {"install"}, "dnf": {"install"},
	"yum": {"install"}, "apk": {"add"}, "pacman": {"-S"}, "composer": {"require"}, "dotnet": {"add", "tool"}, "nuget": {"install"}, "luarocks": {"install"}, "snap": {"install"},
	"conda": {"install"}, "mamba": {"install"}, "flatpak": {"install"}, "choco": {"install"}, "winget": {"install"}, "scoop": {"install"}, "gh": {"repo", "extension", "release"},
	"docker": {"pull", "run", "create"}, "podman": {"pull", "run", "create"}, "nerdctl": {"pull", "run", "create"}, "helm": {"install", "pull", "upgrade"}, "code": {"--install-extension"},
	"ollama": {"pull", "run"}, "huggingface-cli": {"download"}, "deno": {"add", "install", "run"}, "cpan": nil, "cpanm": nil,
}

// ExternalResources returns what an action fetches, installs or sends to, except what the settings trust.
func ExternalResources(c *analysis.ActionCase) (parts []ExternalResource) {
	add := func(host string, names ...string) {
		if names = canonicalNames(names...); len(names) > 0 && len(parts) < maxObjectsUserMustName && !slices.ContainsFunc(parts, func(p ExternalResource) bool { return slices.Equal(p.CanonicalNames, names) }) {
			parts = append(parts, ExternalResource{names, host})
		}
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case e.Kind == effect.Execute:
			for _, name := range fetchedResourceNames(c, e) {
				add("", withoutVersion(name), name)
			}
			if e.Class == effect.UnknownClass && e.Program != "" && !command.IsProgramWithKnownSyntax(e.Program) {
				add("", e.Program)
			}
		case e.IsTargetTrusted || e.Host != "" && effect.IsLoopbackHost(e.Host):
		case e.Kind == effect.HTTPRequest, e.Kind == effect.Connect, e.Kind == effect.SendData, e.Kind == effect.SendMessage, e.Kind == effect.ChangeRemoteSystem && e.Host != "":
			host := ""
			if e.Kind == effect.HTTPRequest && e.RemoteOperationVerb == "" {
				host = e.Host
			}
			if shared := publicHostAndPathPrefix(e); shared != "" {
				add("", shared, strings.TrimPrefix(shared, e.Host+"/"))
			} else if e.Host != "" {
				add(host, e.Host)
			}
			if e.Kind != effect.ChangeRemoteSystem && e.RemoteTargetName != "" {
				add("", e.RemoteTargetName)
			}
		}
	}
	return parts
}

// publicHostAndPathPrefix returns the host and the first two path segments of a URL on a host where anybody can publish; ""
// for other hosts.
func publicHostAndPathPrefix(e *effect.Effect) string {
	if !command.CodeHosts[e.Host] && !command.Installers[e.Host] {
		return ""
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return e.Host
	}
	folders := strings.Split(strings.Trim(u.Path, "/"), "/")
	return strings.TrimSuffix(strings.Trim(e.Host+"/"+strings.Join(folders[:min(len(folders), 2)], "/"), "/"), ".git")
}

// fetchedResourceNames returns the operands by which a program names what it fetches.
func fetchedResourceNames(c *analysis.ActionCase, e *effect.Effect) (names []string) {
	words := []command.Word{{Text: e.Program}}
	for _, a := range e.Args {
		words = append(words, command.Word{Text: a})
	}
	use := command.Interpret(words)
	for _, w := range use.Packages {
		names = append(names, w.Text)
	}
	verbs, listed := fetchingSubcommands[e.Program]
	if len(names) > 0 || !listed && !use.SendsArgumentsToOtherMachine {
		return names
	}
	if len(verbs) > 0 && !slices.ContainsFunc(e.Args, func(a string) bool { return slices.Contains(verbs, a) }) {
		return nil
	}
	left := command.Subcommands(e.Program, e.Args)
	for _, a := range e.Args {
		switch {
		case len(left) > 0 && a == left[0]:
			left = left[1:]
		case slices.Contains(verbs, a), a == "", strings.ContainsAny(a[:1], "-./~+"), strings.ContainsAny(a, " $*?{}"), readsWorkspaceFile(c, e, a):
		default:
			names = append(names, a)
		}
	}
	if slices.Contains(verbs, "run") && len(names) > 1 { // the arguments after the first name are for the program that is run
		names = slices.DeleteFunc(names, func(n string) bool { return !strings.ContainsAny(n, "/:") })
	}
	return names
}

// withoutVersion returns the name of a package or image without its version.
func withoutVersion(name string) string {
	if i := strings.LastIndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	if i := strings.IndexAny(name, "=<>!~[;"); i > 0 {
		name = name[:i]
	}
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		name = name[:at]
	}
	return name
}
