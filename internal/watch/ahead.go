package watch

import (
	"slices"
	"strings"
	"time"
)

// A Host is an agent host whose hook events are handled before the rest of shield is initialized.
// DeferToHostJSON is the response, one JSON text, that leaves an action to the host's own
// permissions; the action's id replaces [ActionIDPlaceholder] in it.
type Host struct{ Name, DeferToHostJSON string }

// ActionIDPlaceholder is the placeholder for an action's id.
const ActionIDPlaceholder = "@"

// answerWithID is the answer that contains the action's id.
const answerWithID = `{"decision":"allow","id":"` + ActionIDPlaceholder + `"}`

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

// JudgeAllowAnswerLine returns the judge's answer for which the host gets the neutral response.
func JudgeAllowAnswerLine(deferToHostJSON string) string {
	return `{"allow":true,"failed":false,"answer":` + deferToHostJSON + "}\n"
}

// deferToHostResponse returns the response for the host, and whether nothing else has to be done: the judge's
// answer is exactly the neutral one.
func deferToHostResponse(hostName string, got judgeReply) (answer string, judgeDeferred bool) {
	i := slices.IndexFunc(Hosts, func(h Host) bool { return h.Name == hostName })
	if i < 0 || got.err != nil {
		return "", false
	}
	neutral, line := Hosts[i].DeferToHostJSON, string(got.line)
	if begin, end, names := strings.Cut(JudgeAllowAnswerLine(neutral), ActionIDPlaceholder); names {
		id, begins := strings.CutPrefix(line, begin)
		id, ends := strings.CutSuffix(id, end)
		if !begins || !ends || id == "" || strings.ContainsFunc(id, isEscapedInID) {
			return "", false
		}
		neutral = strings.Replace(neutral, ActionIDPlaceholder, id, 1)
	}
	if line != JudgeAllowAnswerLine(neutral) {
		return "", false
	}
	return neutral + "\n", true
}

// isEscapedInID reports whether a character of an id has several spellings in JSON, or can end a JSON
// string. Ids of the hosts do not contain such characters.
func isEscapedInID(c rune) bool {
	return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("_-.:|", c)
}

var watchStartedInInit *EventWatch

// WatchStartedInInit returns the watch that this process started before the rest of shield was initialized; nil if
// there is none.
func WatchStartedInInit() *EventWatch { return watchStartedInInit }

// isInstalledHookCommand reports whether a command line is one that hook install writes.
func isInstalledHookCommand(args []string) bool {
	if len(args) < 2 || args[0] != "hook" || !slices.ContainsFunc(Hosts, func(h Host) bool { return h.Name == args[1] }) {
		return false
	}
	if len(args) == 2 {
		return true
	}
	if judgesInProcess(args) {
		args = args[:4]
	}
	if len(args) != 4 || args[2] != "--timeout" {
		return false
	}
	_, err := time.ParseDuration(args[3])
	return err == nil
}

// judgesInProcess reports whether an installed command line judges in its own process.
func judgesInProcess(args []string) bool {
	return len(args) == 5 && args[4] == "--"+InProcessFlag || len(args) == 6 && args[4] == "--"+HookShellPIDFlag && ParseInvokerPID(args) != 0
}

// judgeArgs returns the judge's command line for an installed command line.
func judgeArgs(args []string) []string { return slices.Insert(slices.Clone(args), 2, "--"+JudgeFlag) }
