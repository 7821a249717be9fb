package cmd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/internal/watch"
	"github.com/shieldcli/shield/pkg/host"
)

// pinned are the variables that say where shield finds its settings and state.
// Hosts pass on what a project's own settings set, so the installed command
// sets them itself, to what they were when it was installed.
var pinned = []string{"SHIELD_CONFIG", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}

// A hookShell is the shell text around the command that runs shield. Hosts take
// silence, text that is not an answer, and the statuses of a program that is
// missing, was killed or is not one, for permission. So only an answer passes; for
// everything else the text denies in the host's own form.
type hookShell struct {
	begin, end string
	userShell  bool
	lacks      string // what is wrong with a command line that has other text around it
}

// noVerdict is what a host is told where shield said nothing that can be used.
const noVerdict = "shield: blocked, because it gave no verdict; reinstall shield, or remove this hook from the settings"

// unexamined is what an agent is told of a result where shield said nothing that can
// be used.
const unexamined = "shield: this result was not examined, so it is withheld; tell the user to reinstall shield, or to remove this hook from the settings"

// newResultShell returns the text around the command that examines results. Where
// that does not answer with status 0, the host is told what keeps the agent from
// reading the result, if anything does.
func newResultShell(ctx context.Context, h *host.Host) (hookShell, error) {
	lost, err := h.Lost(ctx, unexamined)
	if err != nil {
		return hookShell{}, err
	}
	show, otherwise := `printf '%s\n' "$o"; `, `printf '%s\n' '`+string(lost)+`'; `
	if len(lost) == 0 {
		show, otherwise = "", ""
	}
	return hookShell{
		begin:     "o=$(",
		end:       `); s=$?; case $s$o in 0"{"*"}") ` + show + `exit 0;; esac; ` + otherwise + `echo "shield: a result was not examined (status $s)" >&2; exit 0`,
		userShell: h.UserShell(),
		lacks:     "the command is not the one for results",
	}, nil
}

func newHookShell(ctx context.Context, h *host.Host) (hookShell, error) {
	denial, err := h.Deny(ctx, noVerdict, "")
	if err != nil {
		return hookShell{}, err
	}
	show, deny := `printf '%s\n' "$o"; `, `printf '%s\n' '`+string(denial)+`'; `
	if h.Silent() {
		show, deny = "", ""
	}
	return hookShell{
		begin:     "o=$(",
		end:       `); s=$?; case $s$o in [02]"{"*"}") ` + show + `exit $s;; esac; ` + deny + `echo "` + noVerdict + ` (status $s)" >&2; exit ` + strconv.Itoa(h.DenialStatus()),
		userShell: h.UserShell(),
		lacks:     "the command does not block when shield is missing, killed or unclear",
	}, nil
}

// around returns the command line for a command. Where a host uses the user's own
// shell, which need not be one of sh's kind, that starts sh.
func (t hookShell) around(command string) string {
	line := t.begin + command + t.end
	if t.userShell {
		return quotedForSh(line)
	}
	return line
}

// quotedForSh returns a line for any shell that has sh run another line.
func quotedForSh(line string) string {
	return "/bin/sh -c '" + strings.ReplaceAll(line, "'", `'\''`) + "'"
}

// inside returns the command in a command line.
func (t hookShell) inside(line string) (string, error) {
	if t.userShell {
		script, begins := strings.CutPrefix(line, "/bin/sh -c '")
		script, ends := strings.CutSuffix(script, "'")
		script = strings.ReplaceAll(script, `'\''`, "'")
		if !begins || !ends {
			return "", errUnknownLine
		}
		line = script
	}
	command, begins := strings.CutPrefix(line, t.begin)
	command, ends := strings.CutSuffix(command, t.end)
	if !begins || !ends {
		return "", errors.New(t.lacks)
	}
	return command, nil
}

var errUnknownLine = errors.New("shield did not install this command")

// hookLines returns the command lines that a host is given to run, for sh: before a
// tool runs, and after it has returned something.
func hookLines(ctx context.Context, w *World, h *host.Host, deadline time.Duration) (lines host.Lines, err error) {
	before, err := newHookShell(ctx, h)
	if err != nil {
		return lines, fmt.Errorf("hook: %w", err)
	}
	after, err := newResultShell(ctx, h)
	if err != nil {
		return lines, fmt.Errorf("hook: %w", err)
	}
	command, err := hookCommandLine(ctx, w, h, deadline)
	return host.Lines{Before: before.around(command), After: after.around(command)}, err
}

// permissionLine returns the command line for a host's event of permissions.
func permissionLine(ctx context.Context, w *World, h *host.Host, deadline time.Duration) (string, error) {
	shell, err := newHookShell(ctx, h)
	if err != nil {
		return "", fmt.Errorf("hook: %w", err)
	}
	command, err := hookCommandLine(ctx, w, h, deadline, "--"+permissionFlag)
	return shell.around(command), err
}

// hookCommandLine returns the command that runs shield. more are further words of it.
func hookCommandLine(ctx context.Context, w *World, h *host.Host, deadline time.Duration, more ...string) (string, error) {
	if w.Executable == "" {
		return "", errors.New("hook: the path of shield itself is unknown")
	}
	kills := killer(ctx, deadline)
	judge, err := fixedShield(w, kills...)
	if err != nil {
		return "", fmt.Errorf("hook: %w", err)
	}
	if kills != nil {
		more = append(more, "--"+watch.Alone)
	}
	return strings.Join(append([]string{judge, "hook", h.Name, "--timeout", deadline.String()}, more...), " "), nil
}

// killers are where systems have the program timeout. It ends a shield that hangs, in
// the place of a second process of shield.
var killers = []string{"/usr/bin/timeout", "/bin/timeout"}

// killGrace is how long after shield's deadline the killer waits. It is later than
// shield's own watchdog, and earlier than the host.
const killGrace = watch.GuardGrace + time.Second

// killer returns the words before shield's own that end it when it hangs, or none
// where the system has no such program.
func killer(ctx context.Context, deadline time.Duration) []string {
	for _, path := range killers {
		words := []string{path, "--foreground", "-s", "KILL", strconv.Itoa(int((deadline + killGrace).Seconds()))}
		if exec.CommandContext(ctx, path, append(slices.Clone(words[1:]), "true")...).Run() == nil {
			return words
		}
	}
	return nil
}

// An installedLine is what an installed command line says.
type installedLine struct {
	command  string        // that runs shield, without what is around it
	program  string        // shield
	deadline time.Duration // 0 if none is named
	kills    time.Duration // after which it is ended; 0 if nothing does that
}

// readHookLine reads a command line that was installed in a shell text for a host. An
// error says what is wrong with it.
func readHookLine(line string, shell hookShell, h *host.Host) (got installedLine, err error) {
	if got.command, err = shell.inside(line); err != nil {
		return got, err
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(got.command), "")
	if err != nil || len(file.Stmts) != 1 {
		return got, errUnknownLine
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || !bare(file.Stmts[0]) || int(call.Pos().Offset()) != 0 || int(call.End().Offset()) != len(got.command) {
		return got, errUnknownLine
	}
	var words, set []string
	for _, word := range call.Args {
		text, ok := literal(word)
		if !ok {
			return got, errors.New("the command depends on more than its text")
		}
		words = append(words, text)
	}
	for _, a := range call.Assigns {
		if _, ok := literal(a.Value); !ok || !slices.Contains(pinned, a.Name.Value) {
			return got, fmt.Errorf("the command sets %s", a.Name.Value)
		}
		set = append(set, a.Name.Value)
	}
	for _, variable := range pinned {
		if !slices.Contains(set, variable) {
			return got, fmt.Errorf("the command does not set %s", variable)
		}
	}
	if len(words) > 5 && slices.Contains(killers, words[0]) && slices.Equal(words[1:4], []string{"--foreground", "-s", "KILL"}) {
		seconds, err := strconv.Atoi(words[4])
		if err != nil || checkProgram(words[0]) != nil {
			return got, errUnknownLine
		}
		got.kills, words = time.Duration(seconds)*time.Second, words[5:]
	}
	if len(words) < 3 || words[1] != "hook" || words[2] != h.Name || !filepath.IsAbs(words[0]) {
		return got, fmt.Errorf("the command is not the absolute path of shield with hook %s", h.Name)
	}
	got.program = words[0]
	for i, word := range words {
		value, ok := strings.CutPrefix(word, "--timeout=")
		if word == "--timeout" && i+1 < len(words) {
			value, ok = words[i+1], true
		}
		if ok {
			if got.deadline, err = time.ParseDuration(value); err != nil || got.deadline <= 0 {
				return got, fmt.Errorf("--timeout %q is not a duration such as 50s", cut(value))
			}
		}
	}
	if got.kills == 0 && slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(strings.TrimLeft(word, "-"), watch.Alone) }) {
		return got, fmt.Errorf("the command has --%s, and nothing ends it when it hangs", watch.Alone)
	}
	if got.kills != 0 && got.kills <= got.deadline+watch.Grace {
		return got, fmt.Errorf("the command is ended after %s, before shield has answered", got.kills)
	}
	return got, nil
}

// bare reports whether nothing is said of a command but the command itself.
func bare(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && len(s.Redirs) == 0
}

// literal returns the text of a word in which nothing is expanded; nil is "".
func literal(word *syntax.Word) (string, bool) {
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
				b.WriteString(unescape.Replace(lit.Value))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape takes away what stands before a character in double quotes.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`")
