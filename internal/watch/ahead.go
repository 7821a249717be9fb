package watch

import (
	"slices"
	"strings"
	"time"
)

// A Host is an agent program whose hooks begin ahead. Neutral is what it is told about
// an action that is left to its own permissions, one JSON text, in which [ID] stands
// for the id of the action where the host is told that.
type Host struct{ Name, Neutral string }

// ID stands for the id of an action.
const ID = "@"

// answerWithID is the answer that names the action.
const answerWithID = `{"decision":"allow","id":"` + ID + `"}`

// Hosts are all hosts that shield has a hook for.
var Hosts = []Host{
	{"amp", answerWithID},
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
	{"openclaw", answerWithID},
	{"opencode", answerWithID},
	{"pi", answerWithID},
	{"qwen-code", `{}`},
	{"windsurf", `{}`},
}

// Allowed returns the line that a judge answers where a host is told what is neutral.
func Allowed(neutral string) string {
	return `{"allow":true,"failed":false,"answer":` + neutral + "}\n"
}

// finalAnswer returns what the host is told, and whether that is all there is to do: the
// judge has answered, byte for byte, that the host is told what is neutral.
func finalAnswer(host string, got reply) (answer string, ok bool) {
	i := slices.IndexFunc(Hosts, func(h Host) bool { return h.Name == host })
	if i < 0 || got.err != nil {
		return "", false
	}
	neutral, line := Hosts[i].Neutral, string(got.line)
	if begin, end, names := strings.Cut(Allowed(neutral), ID); names {
		id, begins := strings.CutPrefix(line, begin)
		id, ends := strings.CutSuffix(id, end)
		if !begins || !ends || id == "" || strings.ContainsFunc(id, isEscapedInID) {
			return "", false
		}
		neutral = strings.Replace(neutral, ID, id, 1)
	}
	if line != Allowed(neutral) {
		return "", false
	}
	return neutral + "\n", true
}

// isEscapedInID reports whether a character of an id may be written in several ways, or may
// end a text of JSON. Hosts' own ids have none.
func isEscapedInID(c rune) bool {
	return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("_-.:|", c)
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
	if judgesAlone(args) {
		args = args[:4]
	}
	if len(args) != 4 || args[2] != "--timeout" {
		return false
	}
	_, err := time.ParseDuration(args[3])
	return err == nil
}

// judgesAlone reports whether an installed command line has its process judge by itself.
func judgesAlone(args []string) bool {
	return len(args) == 5 && args[4] == "--"+Alone || len(args) == 6 && args[4] == "--"+Line && Asker(args) != 0
}

// judgeArgs returns the command line of the judge for one that is installed.
func judgeArgs(args []string) []string { return slices.Insert(slices.Clone(args), 2, "--"+Flag) }
