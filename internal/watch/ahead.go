package watch

import (
	"slices"
	"strings"
	"time"
)

// An AgentHost is an agent host whose hook events are handled before the rest of shield is initialized.
// DeferToHostPermissionsJSON is the response, one JSON text, that leaves an action to the host's own
// permissions; the action's id replaces [ActionIDPlaceholder] in it.
type AgentHost struct{ Name, DeferToHostPermissionsJSON string }

// ActionIDPlaceholder is the placeholder for an action's id.
const ActionIDPlaceholder = "@"

// allowResponseWithIDPlaceholder is the answer that contains the action's id.
const allowResponseWithIDPlaceholder = `{"decision":"allow","id":"` + ActionIDPlaceholder + `"}`

// AgentHosts are all hosts that shield has a hook for.
var AgentHosts = []AgentHost{
	{"amp", allowResponseWithIDPlaceholder},
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
	{"openclaw", allowResponseWithIDPlaceholder},
	{"opencode", allowResponseWithIDPlaceholder},
	{"pi", allowResponseWithIDPlaceholder},
	{"qwen-code", `{}`},
	{"windsurf", `{}`},
}

// FormatJudgeAllowAnswerLine returns the judge's answer line that allows an action and leaves it to the
// host's own permissions. hookResponseJSON is the response for the host.
func FormatJudgeAllowAnswerLine(hookResponseJSON string) string {
	return `{"allow":true,"failed":false,"answer":` + hookResponseJSON + "}\n"
}

// deferToHostResponse returns the response that leaves an action to the host's own permissions.
// judgeDeferred is true if the judge's answer is exactly that response, so that nothing else has to
// be done.
func deferToHostResponse(hostName string, got judgeReply) (answer string, judgeDeferred bool) {
	i := slices.IndexFunc(AgentHosts, func(h AgentHost) bool { return h.Name == hostName })
	if i < 0 || got.err != nil {
		return "", false
	}
	neutral, line := AgentHosts[i].DeferToHostPermissionsJSON, string(got.line)
	if begin, end, names := strings.Cut(FormatJudgeAllowAnswerLine(neutral), ActionIDPlaceholder); names {
		id, begins := strings.CutPrefix(line, begin)
		id, ends := strings.CutSuffix(id, end)
		if !begins || !ends || id == "" || strings.ContainsFunc(id, isEscapedInID) {
			return "", false
		}
		neutral = strings.Replace(neutral, ActionIDPlaceholder, id, 1)
	}
	if line != FormatJudgeAllowAnswerLine(neutral) {
		return "", false
	}
	return neutral + "\n", true
}

// isEscapedInID reports whether a character of an id is neither an ASCII letter nor a digit nor one of _-.:| and
// so may be written as an escape in JSON, or end a JSON string. Ids of the hosts do not contain such characters.
func isEscapedInID(c rune) bool {
	return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("_-.:|", c)
}

var hookEventWatchFromPackageInit *EventWatch

// HookEventWatchFromPackageInit returns the watch that this process started before the rest of shield was initialized; nil if
// there is none.
func HookEventWatchFromPackageInit() *EventWatch { return hookEventWatchFromPackageInit }

// isInstalledHookCommand reports whether a command line is one that hook install writes.
func isInstalledHookCommand(args []string) bool {
	if len(args) < 2 || args[0] != "hook" || !slices.ContainsFunc(AgentHosts, func(h AgentHost) bool { return h.Name == args[1] }) {
		return false
	}
	if len(args) == 2 {
		return true
	}
	if isHookCommandJudgingInProcess(args) {
		args = args[:4]
	}
	if len(args) != 4 || args[2] != "--timeout" {
		return false
	}
	_, err := time.ParseDuration(args[3])
	return err == nil
}

// isHookCommandJudgingInProcess reports whether an installed command line judges in its own process.
func isHookCommandJudgingInProcess(args []string) bool {
	return len(args) == 5 && args[4] == "--"+JudgeInProcessFlagName || len(args) == 6 && args[4] == "--"+HookShellPIDFlagName && ParseInvokerPID(args) != 0
}

// insertJudgeFlag returns the command line of the judge process for args, the command line of an installed hook:
// it adds the flag --judge.
func insertJudgeFlag(args []string) []string {
	return slices.Insert(slices.Clone(args), 2, "--"+JudgeFlagName)
}
