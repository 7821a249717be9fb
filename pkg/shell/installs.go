package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
)

// plainFetch matches an argument of curl or wget that changes neither where a
// file comes from nor whether its sender is checked.
var plainFetch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:-[fsSLqoO]*|-qO-|-o-|-|--proto|=https|--proto==?https|--tlsv1\.[23]|--fail|--silent|--show-error|--location|--quiet|--retry(?:=\d+)?|-m|--max-time(?:=\d+)?|\d+|--output-document=-|--https-only|https://[^\s\\@]+)$`)
})

// installs marks what a text runs straight from the network if all of it comes
// from installers of known tools, fetched so that nobody else can answer.
func (s *state) installs() {
	marked := slices.ContainsFunc(s.effects, func(e effect.Effect) bool { return e.Kind == effect.RunDownload })
	if !marked || !wellKnown(s.effects) || len(s.funcs) > 0 || len(s.aliases) > 0 {
		return
	}
	for _, word := range [...]string{"proxy", "path=", "curl_", "ssl_", "curlrc", "wgetrc", "/etc/hosts"} {
		if strings.Contains(strings.ToLower(s.text), word) {
			return
		}
	}
	for i := range s.effects {
		switch e := &s.effects[i]; e.Kind {
		case effect.Execute:
			switch e.Program {
			case "curl", "wget":
				if slices.ContainsFunc(e.Args, func(a string) bool { return !plainFetch().MatchString(a) }) {
					return
				}
			case "sh", "bash", "zsh", "dash", "sudo", "env":
			default:
				return
			}
		case effect.RunDecoded, effect.RemoteShell, effect.Connect:
			return
		}
	}
	for i := range s.effects {
		if e := &s.effects[i]; e.Kind == effect.RunDownload {
			e.Cause, e.Reason = effect.CauseInstaller, e.Reason+", by the installer of a known tool"
		}
	}
}
