package watch

import (
	"slices"
	"time"
)

// A Host is an agent program whose hooks begin ahead. Neutral is what it is told of
// an action that is left to its own permissions, one JSON text; "" where that names
// the action, which is left to the whole program.
type Host struct{ Name, Neutral string }

// Hosts are all hosts that shield has a hook for.
var Hosts = []Host{
	{"amp", ""},
	{"antigravity", `{"decision":"allow"}`},
	{"claude-code", `{}`},
	{"cline", `{"cancel":false}`},
	{"codex", `{}`},
	{"copilot", `{}`},
	{"crush", `{}`},
	{"cursor", `{"permission":"allow"}`},
	{"droid", `{}`},
	{"gemini-cli", `{}`},
	{"goose", `{}`},
	{"kiro", `{}`},
	{"openclaw", ""},
	{"opencode", ""},
	{"pi", ""},
	{"qwen-code", `{}`},
	{"windsurf", `{}`},
}

// Allowed returns the line that a judge answers where a host is told what is neutral.
func Allowed(neutral string) string {
	return `{"allow":true,"failed":false,"answer":` + neutral + "}\n"
}

// settled returns what the host is told, and whether that is all there is to do: the
// judge has answered, byte for byte, that the host is told what is neutral.
func settled(host string, got reply) (answer string, ok bool) {
	i := slices.IndexFunc(Hosts, func(h Host) bool { return h.Name == host })
	if i < 0 || Hosts[i].Neutral == "" || got.err != nil || string(got.line) != Allowed(Hosts[i].Neutral) {
		return "", false
	}
	return Hosts[i].Neutral + "\n", true
}

var ahead *Watch

// Ahead returns the watch that this process began before the rest of shield was
// there; nil if it began none.
func Ahead() *Watch { return ahead }

// installed reports whether a command line is one that hook install writes.
func installed(args []string) bool {
	if len(args) < 2 || args[0] != "hook" || !slices.ContainsFunc(Hosts, func(h Host) bool { return h.Name == args[1] }) {
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
