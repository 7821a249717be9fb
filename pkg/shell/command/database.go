package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// DatabaseHost returns the host that the arguments of a client of databases name, ""
// for none. It is not known if they may name several.
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
		if name = effect.Host(name); host != "" && name != host || strings.ContainsAny(name, "?,$*") {
			return "", false
		}
		host = name
	}
	return host, true
}
