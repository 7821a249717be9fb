package cmd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/internal/watch"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// envVariablesSetInHookCommand are the variables that determine shield's settings and state, and the user's files.
// Hosts forward variables that a project's settings set, so the installed command sets them itself, to
// their values at installation.
var envVariablesSetInHookCommand = []string{"HOME", "SHIELD_CONFIG", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}

// A wrapperShellScript is the shell script around the command that runs shield. Hosts treat no output,
// output that is not an answer, death by a signal, and a hook that exceeds its timeout as
// permission. So the script passes on only a complete answer. In all other cases it prints a denial
// in the host's format, at the deadline at the latest, even if one of its processes is stopped or
// killed:
//
//   - The reader process reads lines from a pipe and exits at the first line that decides. It does not
//     wait until another process exits or the pipe is closed.
//   - shield writes its answer to the pipe. Until the reader has exited, shield sends SIGCONT to its
//     process group.
//   - sleep exits at the deadline. The subshell that waits for sleep then writes the line "late" to
//     the reader.
//
// So the three programs enforce the deadline for each other: shield continues a stopped sh or
// sleep, and sleep ends the wait for a stopped shield. None of them keeps a stream of the host
// open, since some hosts wait until their streams are closed.
//
// Some hosts replace $NAME, ${NAME} and ${NAME:-TEXT} in their settings by values from their own
// environment, to which a project's .env file can add. So the script uses only ${NAME%} and
// ${NAME#?}, which hosts leave to the shell. ${NAME%} is the value of the variable; ${NAME#?} is
// the value without its first character.
type wrapperShellScript struct {
	commandPrefix, commandSuffix string // the shell text before and after the command that runs shield
	runsInUserShell              bool
}

// noVerdictText is the text for the host if shield gave no usable answer.
const noVerdictText = "shield: blocked, because it gave no verdict; reinstall shield, or remove this hook from the settings"

// unexaminedToolResultText is the text for the agent about a result for which shield gave no usable answer.
const unexaminedToolResultText = "shield: this result was not examined, so it is withheld; tell the user to reinstall shield, or to remove this hook from the settings"

// programReplacedText is the text for the host if shield's executable was replaced.
const programReplacedText = "shield: blocked, because the program shield changed after this hook was installed. If the user updated shield, the user runs this in a terminal: shield hook status --accept"

// newToolResultWrapperShellScript returns the shell text around the command that examines results. If that command
// fails, the text withholds the result from the agent, where the host supports that.
func newToolResultWrapperShellScript(ctx context.Context, h *host.Host) (wrapperShellScript, error) {
	lost, err := h.UnexaminedResultResponse(ctx, unexaminedToolResultText)
	if err != nil {
		return wrapperShellScript{}, err
	}
	show, otherwise := printAnswerScript, "printf '%s\\n' '"+string(lost)+"'; "
	if len(lost) == 0 {
		show, otherwise = "", ""
	}
	no := otherwise + `echo "shield: a result was not examined (${1%})" >&2; exit 0`
	return newWrapperShellScript(h, no, otherwise+`echo "`+programReplacedText+`" >&2; exit 0`, `0"{"*"}") `+show+`kill ${t%}; exit 0;; `, "0"), nil
}

// newUserPromptHookWrapper returns the shell text around the command that records the user's prompts: whatever
// it answers, the prompt is not blocked.
func newUserPromptHookWrapper(h *host.Host) wrapperShellScript {
	return newWrapperShellScript(h, `echo "shield: a prompt was not read (${1%})" >&2; exit 0`, `echo "`+programReplacedText+`" >&2; exit 0`, `0"{"*"}") kill ${t%}; exit 0;; `, "0")
}

// printAnswerScript is shell code that prints shield's answer. The variable l holds the line that
// the reader process read; its first character, the exit status, is dropped.
const printAnswerScript = `printf '%s\n' "${l#?}"; `

func newFailClosedWrapper(ctx context.Context, h *host.Host) (wrapperShellScript, error) {
	denial, err := h.DenialResponse(ctx, noVerdictText, "")
	if err != nil {
		return wrapperShellScript{}, err
	}
	changed, err := h.DenialResponse(ctx, programReplacedText, "")
	if err != nil {
		return wrapperShellScript{}, err
	}
	show, no, other := printAnswerScript, "printf '%s\\n' '"+string(denial)+"'; ", "printf '%s\\n' '"+string(changed)+"'; "
	if h.RequiresEmptyHookStdout() {
		show, no, other = "", "", ""
	}
	exit := "exit " + strconv.Itoa(h.DenialExitStatus())
	no += `echo "` + noVerdictText + ` (${1%})" >&2; ` + exit
	other += `echo "` + programReplacedText + `" >&2; ` + exit
	return newWrapperShellScript(h, no, other, `0"{"*"}") `+show+`kill ${t%}; exit 0;; 2"{"*"}") `+show+`kill ${t%}; exit 2;; `, "[02]"), nil
}

// newWrapperShellScript returns a script that runs shield's hook. It runs noAnswerScript if shield gives
// no valid answer, and programReplacedScript if the program file of shield was replaced.
// answerCaseBranches are the branches of a case statement that accept answers; exitStatusPattern is
// a glob of accepted exit statuses.
func newWrapperShellScript(h *host.Host, noAnswerScript, programReplacedScript, answerCaseBranches, exitStatusPattern string) wrapperShellScript {
	return wrapperShellScript{
		commandPrefix: "n() { " + noAnswerScript + "; }; { exec 3<&0 2>/dev/null; { ",
		commandSuffix: `exec 3<&- </dev/null; wait $!; echo "status $?"; } & { exec 3<&- </dev/null; @SLEEP@ & echo "t$!"; wait $!; echo late; } & }` +
			` | { exec 4>&2 2>/dev/null; s= t=; while IFS= read -r l; do case ${l%} in s[0-9]*) s=${l#?};; t[0-9]*) t=${l#?};; "!"*) printf '%s\n' "${l#?}" >&4;; ` + answerCaseBranches +
			`changed) kill ${t%}; exec 2>&4; ` + programReplacedScript + `;; *) break;; esac; done; kill -KILL ${s%} ${t%}; exec 2>&4; n "${l%}"; }; s=$?; case ${s%} in ` + exitStatusPattern + `) exit ${s%};; esac; n "status ${s%}"`,
		runsInUserShell: h.RunsHooksInUserShell(),
	}
}

// runShieldInBackgroundScript is the shell text that follows the shield command in a hook line, and
// runs shield in the background. $$ is the PID of the shell that the host waits for, even in a
// subshell.
const runShieldInBackgroundScript = ` --` + watch.HookShellPIDFlagName + ` $$ <&3 & echo "s$!"; `

// wrapCommand returns the command line for a command, with a check before it. If a host uses the
// user's own shell, which may not be a POSIX shell, the line starts sh.
func (t wrapperShellScript) wrapCommand(check, command string, sleep []string) string {
	line := t.commandPrefix + check + command + runShieldInBackgroundScript + strings.Replace(t.commandSuffix, "@SLEEP@", strings.Join(sleep, " "), 1)
	if t.runsInUserShell {
		return quotedForSh(line)
	}
	return line
}

// quotedForSh returns a line, valid in any shell, that runs another line with sh.
func quotedForSh(line string) string {
	return "/bin/sh -c " + command.Quote(line)
}

// splitCommandLine splits an installed hook line into the command that runs shield, with the check
// before it, and the deadline in seconds.
func (t wrapperShellScript) splitCommandLine(line string) (command string, timeoutSeconds int, err error) {
	if t.runsInUserShell {
		script, begins := strings.CutPrefix(line, "/bin/sh -c '")
		script, ends := strings.CutSuffix(script, "'")
		script = strings.ReplaceAll(script, `'\''`, "'")
		if !begins || !ends {
			return "", 0, errForeignHookLine
		}
		line = script
	}
	if strings.HasPrefix(line, "o=$(") {
		return "", 0, errOutdatedHookLine
	}
	command, begins := strings.CutPrefix(line, t.commandPrefix)
	command, rest, cut := strings.Cut(command, runShieldInBackgroundScript)
	head, tail, _ := strings.Cut(t.commandSuffix, "@SLEEP@")
	rest, heads := strings.CutPrefix(rest, head)
	rest, tails := strings.CutSuffix(rest, tail)
	if !begins || !cut || !heads || !tails {
		return "", 0, errNonBlockingHookLine
	}
	words := strings.Fields(rest)
	if len(words) != 2 || path.Base(words[0]) != "sleep" || !path.IsAbs(words[0]) || checkProgramRunnableAndProtected(words[0]) != nil || strings.Join(words, " ") != rest {
		return "", 0, errForeignHookLine
	}
	if timeoutSeconds, err = strconv.Atoi(words[1]); err != nil {
		return "", 0, errForeignHookLine
	}
	return command, timeoutSeconds, nil
}

var (
	errForeignHookLine     = errors.New("the hook command is not one that shield installs")
	errOutdatedHookLine    = errors.New("an older version of shield installed this hook, which does not deny when shield is stopped or replaced")
	errNonBlockingHookLine = errors.New("the hook command does not block when shield is missing, killed or gives no clear answer")
)

// hookCommandLines returns the command lines that a host runs, for sh: before a tool runs, and after it has
// returned.
func hookCommandLines(ctx context.Context, w *Environment, h *host.Host, deadline time.Duration) (lines host.HookCommands, err error) {
	before, err := newFailClosedWrapper(ctx, h)
	if err != nil {
		return lines, fmt.Errorf("hook: %w", err)
	}
	after, err := newToolResultWrapperShellScript(ctx, h)
	if err != nil {
		return lines, fmt.Errorf("hook: %w", err)
	}
	if lines.BeforeTool, err = buildWrappedHookCommandLine(w, h, before, deadline); err != nil {
		return lines, err
	}
	if lines.AfterTool, err = buildWrappedHookCommandLine(w, h, after, deadline); err == nil && h.ReportsPrompts() {
		lines.UserPrompt, err = buildWrappedHookCommandLine(w, h, newUserPromptHookWrapper(h), deadline)
	}
	return lines, err
}

// permissionHookCommandLine returns the command line for a host's permission event.
func permissionHookCommandLine(ctx context.Context, w *Environment, h *host.Host, deadline time.Duration) (string, error) {
	shell, err := newFailClosedWrapper(ctx, h)
	if err != nil {
		return "", fmt.Errorf("hook: %w", err)
	}
	return buildWrappedHookCommandLine(w, h, shell, deadline, "--"+permissionRequestEventFlagName)
}

// buildWrappedHookCommandLine returns the command line that runs shield. extraArgs are additional
// arguments.
func buildWrappedHookCommandLine(w *Environment, h *host.Host, shell wrapperShellScript, deadline time.Duration, extraArgs ...string) (string, error) {
	if w.ShieldExecutablePath == "" {
		return "", errors.New("hook: shield cannot find its own program file; start it by its full path")
	}
	judge, err := shieldCommandLinePrefix(w, true)
	if err != nil {
		return "", fmt.Errorf("hook: %w", err)
	}
	sleep, err := findSystemProgram("sleep")
	if err != nil {
		return "", fmt.Errorf("hook: %w", err)
	}
	check := ""
	if canCurrentUserReplaceProgram(w.ShieldExecutablePath) {
		r, err := newHookProgramRecord(w, w.ShieldExecutablePath)
		if err == nil {
			check, err = r.programCheckShellCode()
		}
		if err != nil {
			return "", fmt.Errorf("hook: %w", err)
		}
	}
	command := strings.Join(append([]string{judge, "hook", h.Name, "--timeout", deadline.String()}, extraArgs...), " ")
	return shell.wrapCommand(check, command, []string{sleep, strconv.Itoa(int((deadline + wrapperDenialDelay).Seconds()))}), nil
}

// systemProgramFolders are the system folders with the programs that a hook line uses. A project can set PATH, so
// it is not searched.
var systemProgramFolders = []string{"/usr/bin", "/bin", "/sbin", "/run/current-system/sw/bin"}

// findSystemProgram returns the path of a system program.
func findSystemProgram(name string) (string, error) {
	for _, dir := range systemProgramFolders {
		if path := filepath.Join(dir, name); checkProgramRunnableAndProtected(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the hook needs the program %s, which is in none of the folders %s; install %[1]s in one of them", name, strings.Join(systemProgramFolders, ", "))
}

// wrapperDenialDelay is how long after shield's deadline the installed hook command itself denies the
// action. This is later than shield's own watchdog denies, and earlier than the host's timeout.
const wrapperDenialDelay = watch.WatchdogKillDelay + time.Second

// An installedHookCommand is a parsed installed command line.
type installedHookCommand struct {
	command                   string        // the command that runs shield, without the shell text around it
	shieldPath                string        // the path of shield
	stateFolder               string        // shield's state folder, as XDG_STATE_HOME in the hook command sets it
	programCheckShellCode     string        // the shell text that checks the program before it runs
	timeoutFlagValue          time.Duration // the value of --timeout; 0 if the hook command has no --timeout
	wrapperShellScriptTimeout time.Duration // time after which the shell text around the command stops waiting for shield
}

// parseHookLine parses the hook command line of a host, which must have the form that shield
// installs with the given shell script around it. The error says what differs from that form.
func parseHookLine(line string, shell wrapperShellScript, h *host.Host) (got installedHookCommand, err error) {
	command, seconds, err := shell.splitCommandLine(line)
	if err != nil {
		return got, err
	}
	got.programCheckShellCode, got.command = splitProgramCheck(command)
	got.wrapperShellScriptTimeout = time.Duration(seconds) * time.Second
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(got.command), "")
	if err != nil || len(file.Stmts) != 1 {
		return got, errForeignHookLine
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || !isPlainStatement(file.Stmts[0]) || int(call.Pos().Offset()) != 0 || int(call.End().Offset()) != len(got.command) {
		return got, errForeignHookLine
	}
	var words, set []string
	for _, word := range call.Args {
		text, ok := literalText(word)
		if !ok {
			return got, errors.New("the hook command contains a variable or a wildcard")
		}
		words = append(words, text)
	}
	for _, a := range call.Assigns {
		if _, ok := literalText(a.Value); !ok || !slices.Contains(envVariablesSetInHookCommand, a.Name.Value) {
			return got, fmt.Errorf("the hook command sets the variable %s", a.Name.Value)
		}
		if text, _ := literalText(a.Value); a.Name.Value == "XDG_STATE_HOME" {
			got.stateFolder = filepath.Join(text, "shield")
		}
		set = append(set, a.Name.Value)
	}
	for _, variable := range envVariablesSetInHookCommand {
		if !slices.Contains(set, variable) {
			return got, fmt.Errorf("the hook command does not set the variable %s", variable)
		}
	}
	if len(words) < 3 || words[1] != "hook" || words[2] != h.Name || !filepath.IsAbs(words[0]) {
		return got, fmt.Errorf("the hook command is not ABSOLUTE-PATH/shield hook %s", h.Name)
	}
	got.shieldPath = words[0]
	for i, word := range words {
		value, ok := strings.CutPrefix(word, "--timeout=")
		if word == "--timeout" && i+1 < len(words) {
			value, ok = words[i+1], true
		}
		if ok {
			if got.timeoutFlagValue, err = time.ParseDuration(value); err != nil || got.timeoutFlagValue <= 0 {
				return got, fmt.Errorf("--timeout %q in the hook command is not a duration such as 50s", shortenTo80Characters(value))
			}
		}
	}
	if got.wrapperShellScriptTimeout <= got.timeoutFlagValue+watch.WatchdogGraceAfterHookDeadline {
		return got, fmt.Errorf("the hook command denies after %s, before shield can answer", got.wrapperShellScriptTimeout)
	}
	return got, nil
}

// isPlainStatement reports whether a shell statement is a plain command, without redirection, negation or background.
func isPlainStatement(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && len(s.Redirs) == 0
}

// literalText returns the text of a word without expansions; "" for nil.
func literalText(word *syntax.Word) (string, bool) {
	var b strings.Builder
	if word == nil {
		return "", true
	}
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(part.Value, `\*?[~`) {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(doubleQuoteUnescaper.Replace(lit.Value))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// doubleQuoteUnescaper removes the backslashes of a text in double quotes.
var doubleQuoteUnescaper = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`")
