package watch

import (
	"slices"
	"time"
)

// Allowed is what a judge answers where the host is told nothing of an action that
// is allowed.
const Allowed = `{"allow":true,"failed":false}` + "\n"

// Hosts are the names of the agent programs whose hooks begin ahead.
var Hosts = []string{"claude-code"}

var ahead *Watch

// Ahead returns the watch that this process began before the rest of shield was
// there; nil if it began none.
func Ahead() *Watch { return ahead }

// installed reports whether a command line is one that hook install writes.
func installed(args []string) bool {
	if len(args) < 2 || args[0] != "hook" || !slices.Contains(Hosts, args[1]) {
		return false
	}
	if len(args) == 2 {
		return true
	}
	if len(args) != 4 || args[2] != "--timeout" {
		return false
	}
	_, err := time.ParseDuration(args[3])
	return err == nil
}

// judgeArgs returns the command line of the judge for one that is installed.
func judgeArgs(args []string) []string { return slices.Insert(slices.Clone(args), 2, "--"+Flag) }
