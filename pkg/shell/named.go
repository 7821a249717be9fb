package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// markProcessesStoppedByName sets the cause [effect.CauseProcessSelectedByName] on effects that
// stop processes found by name, port or search, because these processes may belong to other users
// or sessions.
func (s *analysisState) markProcessesStoppedByName() {
	searched := slices.ContainsFunc(s.effects, func(e effect.Effect) bool {
		return e.Kind == effect.Execute && processListers[e.Program]
	})
	for i := range s.effects {
		e := &s.effects[i]
		if e.Kind == effect.StopProcess && slices.ContainsFunc(s.effects, func(o effect.Effect) bool {
			return o.Kind == effect.Execute && o.Program == e.Program && slices.ContainsFunc(o.Args, func(a string) bool {
				return signalsNotStoppingDaemons[strings.TrimPrefix(strings.TrimPrefix(a, "-"), "SIG")]
			})
		}) {
			continue
		}
		if e.Kind == effect.StopProcess && e.Cause == "" && (killByNamePrograms[e.Program] || processIDConsumers[e.Program] && (searched || s.hasProcessNameOption(e.Program))) {
			e.Cause = effect.CauseProcessSelectedByName
		}
	}
}

// hasProcessNameOption reports whether a program that stops processes gets a process name as an option.
func (s *analysisState) hasProcessNameOption(program string) bool {
	return slices.ContainsFunc(s.effects, func(e effect.Effect) bool {
		return e.Kind == effect.Execute && e.Program == program && slices.ContainsFunc(e.Args, func(a string) bool {
			a = strings.ToLower(a)
			return a == "-name" || a == "-processname" || a == "/im"
		})
	})
}

// processListers output process IDs for a name, file or port. processIDConsumers take such IDs.
// signalsNotStoppingDaemons are the signals that stop no process, or with which daemons are told to reload or
// report. killByNamePrograms are programs that search for the processes to stop.
var (
	processListers            = map[string]bool{"pgrep": true, "pidof": true, "lsof": true, "get-process": true, "ps": true, "ss": true, "netstat": true}
	processIDConsumers        = map[string]bool{"kill": true, "stop-process": true, "xargs": true, "taskkill": true}
	signalsNotStoppingDaemons = map[string]bool{"0": true, "CONT": true, "HUP": true, "USR1": true, "USR2": true, "WINCH": true}

	killByNamePrograms = map[string]bool{"pkill": true, "killall": true, "skill": true, "killall5": true, "fuser": true, "xkill": true}
)
