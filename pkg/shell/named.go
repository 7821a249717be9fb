package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// stopsNamed says about the processes that are stopped whether a name, a port or a search says which
// they are: others may have started some of them.
func (s *state) stopsNamed() {
	searched := slices.ContainsFunc(s.effects, func(e effect.Effect) bool {
		return e.Kind == effect.Execute && processListers[e.Program]
	})
	for i := range s.effects {
		e := &s.effects[i]
		if e.Kind == effect.StopProcess && slices.ContainsFunc(s.effects, func(o effect.Effect) bool {
			return o.Kind == effect.Execute && o.Program == e.Program && slices.ContainsFunc(o.Args, func(a string) bool { return endsNothing[strings.TrimPrefix(strings.TrimPrefix(a, "-"), "SIG")] })
		}) {
			continue
		}
		if e.Kind == effect.StopProcess && e.Cause == "" && (killByName[e.Program] || idConsumers[e.Program] && (searched || s.givenName(e.Program))) {
			e.Cause = effect.CauseNamed
		}
	}
}

// givenName reports whether a program that is given processes is given the name of one.
func (s *state) givenName(program string) bool {
	return slices.ContainsFunc(s.effects, func(e effect.Effect) bool {
		return e.Kind == effect.Execute && e.Program == program && slices.ContainsFunc(e.Args, func(a string) bool {
			a = strings.ToLower(a)
			return a == "-name" || a == "-processname" || a == "/im"
		})
	})
}

// searchers tell the numbers of processes by their name, their files or their ports; takers are
// given such numbers; enders look for processes themselves.
var (
	processListers = map[string]bool{"pgrep": true, "pidof": true, "lsof": true, "get-process": true, "ps": true, "ss": true, "netstat": true}
	idConsumers    = map[string]bool{"kill": true, "stop-process": true, "xargs": true, "taskkill": true}
	endsNothing    = map[string]bool{"0": true, "CONT": true, "HUP": true, "USR1": true, "USR2": true, "WINCH": true}

	killByName = map[string]bool{"pkill": true, "killall": true, "skill": true, "killall5": true, "fuser": true, "xkill": true}
)
