package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// remoteDatabaseHost returns the first host or URL in the arguments that names a database on a remote machine
// and not for development or tests; "" if there is none. If the command always works on another machine, it
// returns the program's name.
func (r *argParser) remoteDatabaseHost() string {
	if r.remoteService() != "database" {
		return ""
	}
	if r.activeActionFlags&actionFlagTargetIsRemote != 0 {
		return r.programName()
	}
	r.addRemoteTargetsFromOptions()
	places := r.targetHostsAndDatabases
	for _, w := range r.args[1:] {
		if strings.Contains(w.Text, "://") && !strings.ContainsAny(w.Text, " \n") {
			places = append(places, w)
		}
	}
	for _, w := range places {
		if w.IsGlobPattern || deploymentEnvironmentOf(w.Text) == testDeploymentEnvironment {
			continue
		}
		host := w.Text
		if i := strings.LastIndex(host, "//"); i >= 0 {
			host = host[i+2:]
		}
		host, _, _ = strings.Cut(host[strings.LastIndexByte(host, '@')+1:], "/")
		if host = effect.CanonicalHost(host); strings.Contains(host, ".") && !effect.IsLoopbackHost(host) {
			return shortenForMessage(w.Text)
		}
	}
	return ""
}

// DatabaseHost returns the host that the arguments of a database client name, "" for none. known is false if they
// may name several.
func DatabaseHost(args []string) (host string, known bool) {
	for i, arg := range args {
		name, named := strings.CutPrefix(arg, "--host=")
		short, bundled := strings.CutPrefix(arg, "-h")
		scheme, address, isURL := strings.Cut(arg, "://")
		switch {
		case i > 0 && (args[i-1] == "-h" || args[i-1] == "--host"):
			name, named = arg, true
		case bundled && short != "":
			name, named = short, true
		case isURL && !strings.ContainsAny(scheme, " =?'"):
			name, _, _ = strings.Cut(address[strings.LastIndexByte(address, '@')+1:], "/")
			named = true
		}
		if !named {
			continue
		}
		name, _, _ = strings.Cut(name, ":")
		if name = effect.CanonicalHost(name); host != "" && name != host || strings.ContainsAny(name, "?,$*") {
			return "", false
		}
		host = name
	}
	return host, true
}
