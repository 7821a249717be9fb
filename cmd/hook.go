package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/internal/watch"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
)

func hookCommand(w *Environment) *cli.Command {
	cmd := &cli.Command{
		Name:  "hook",
		Usage: "judge an agent host's tool call, and answer in the host's own format",
		Description: "shield hook HOST reads the host's hook JSON from standard input and judges the tool call in it. A denial is the host's own JSON on standard output, the reason on standard error, and status 2 (0 for " +
			"Antigravity and Gemini CLI, which treat any other status as a failed hook). Every failure, including a usage error, is a denial. An allowed " +
			"call is left to the host's own permissions, unless the setting hook.answer is allow. Tool results are scanned as the settings under sanitize " +
			"say, and replaced where the host supports that. A second process judges; the first one denies when the second is late, stopped or dead. The command line that hook install writes denies by itself, also when shield was replaced, and starts no second process. " +
			"With --permission-request it answers the event that Claude Code and Codex raise before their own permission prompt: a call that the policy " +
			"or the classifier allows is allowed if the setting hook.permission_request is on and no permission rule of the user can match it, a call " +
			"that they deny is denied, and all others are left to the prompt. hook install edits the settings of hosts, hook uninstall restores them, " +
			"hook status verifies that a denial is enforced, hook list lists the hosts.",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return fmt.Errorf("hook: unknown host %q; supported: %s", shortenTo80Characters(c.Args().First()), strings.Join(host.Names(), ", "))
			}
			return fmt.Errorf("hook: HOST is missing; supported: %s", strings.Join(host.Names(), ", "))
		},
	}
	for _, name := range host.Names() {
		cmd.Subcommands = append(cmd.Subcommands, &cli.Command{
			Name:  name,
			Usage: "answer one hook call of this host",
			Flags: append(commonJudgeFlags(), unattendedFlag(),
				&cli.DurationFlag{Name: "timeout", Usage: "deny after `TIME` at the latest, waiting for a person included"},
				&cli.BoolFlag{Name: permissionRequestEventFlagName, Usage: "answer the event that the host raises before its permission prompt"},
				&cli.IntFlag{Name: watch.HookShellPIDFlagName, Hidden: true},
				&cli.BoolFlag{Name: watch.JudgeInProcessFlagName, Usage: "judge in this process, without a second one as watchdog; for command lines that older versions installed"},
				&cli.BoolFlag{Name: watch.JudgeFlagName, Hidden: true}),
			Action: func(c *cli.Context) error {
				if _, err := operands(c); err != nil {
					return err
				}
				if w.requestFromServiceClient != nil {
					return answerQuestionFromHookWatchdog(c, w, name)
				}
				deadline, err := hookTimeout(c, w)
				switch {
				case err != nil && c.IsSet("timeout"):
					return err
				case err != nil: // the settings cannot be read; judging the event then fails too, and answers in the host's format
					deadline = config.Default().Hook.Timeout.AsTimeDuration()
				}
				switch {
				case c.Bool(watch.JudgeFlagName):
					return judgeHookEventForWatchdog(c, w, name, deadline)
				case (c.Bool(watch.JudgeInProcessFlagName) || c.IsSet(watch.HookShellPIDFlagName)) && w.HookEventWatchFromInit == nil:
					return judgeHostEventInProcess(c, w, name, deadline)
				}
				return runHookWatchdog(c.Context, w, name, deadline)
			},
		})
	}
	cmd.Subcommands = append(cmd.Subcommands, hookSettingsCommands(w)...)
	return cmd
}

// hookTimeout returns the time limit of a hook: --timeout, or else the setting.
func hookTimeout(c *cli.Context, w *Environment) (time.Duration, error) {
	if c.IsSet("timeout") {
		return c.Duration("timeout"), nil
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return 0, err
	}
	return set.Hook.Timeout.AsTimeDuration(), nil
}

// A toolCallDenial is the reason why a tool must not run: the text for the agent, and the text for
// its user. If reasonForUser is "", the user gets reasonForAgent.
type toolCallDenial struct {
	reasonForAgent, reasonForUser string
	hostName                      string // the host of the event, if it is not the host of the command line
	toolHasRun                    bool   // the tool has already run, so its result must be withheld
}

func (d toolCallDenial) Error() string { return d.reasonForAgent }

// failureDenial returns the denial after an internal failure.
func failureDenial(cause, hostName string, toolHasRun bool) toolCallDenial {
	return toolCallDenial{unjudgedText, "shield blocked an action that it could not judge; run 'shield doctor'. Cause: " + redactedErrorText(errors.New(cause)), hostName, toolHasRun}
}

// escapeAndShorten returns a denial without control characters, cut to maxDenialTextCharacters.
func (d toolCallDenial) escapeAndShorten() toolCallDenial {
	for _, text := range []*string{&d.reasonForAgent, &d.reasonForUser} {
		*text = brief.TruncateWithEllipsis(strings.ToValidUTF8(term.EscapeControlAndInvisible(*text), "?"), maxDenialTextCharacters)
	}
	return d
}

// maxDenialTextCharacters limits the reason that a host gets, in characters.
const maxDenialTextCharacters = 4000

// unjudgedText is the text for the agent about an internal failure of shield.
const unjudgedText = "shield could not judge this, so it is blocked. Tell the user to run: shield doctor. Do not retry. [shield]"

// hookDenialError returns the error with which Run ends after err, for a command line that a host may run
// as its hook: it prints the host's own form of denial to standard output, the reason and the user's
// text to standard error, and sets the status that the host treats as a denial. Other command lines
// return err unchanged.
func hookDenialError(w *Environment, args []string, err error) error {
	name, hooked := hookHostName(args)
	if err == nil || !hooked {
		return err
	}
	var d toolCallDenial
	if !errors.As(err, &d) {
		d = failureDenial(err.Error(), "", false)
	}
	d = d.escapeAndShorten()
	h, err := hostForHookCommand(cmp.Or(d.hostName, name), d.hostName == "" && slices.Contains(args, "--"+permissionRequestEventFlagName))
	if errors.Is(err, host.ErrNoPermissionPromptHook) {
		h, err = host.Named(name)
	}
	if err != nil {
		return &statusError{statusBlock, d.errorForStderr(false)}
	}
	var answer []byte
	if d.toolHasRun {
		answer, err = h.UnexaminedResultResponse(context.Background(), d.reasonForAgent)
	} else {
		answer, err = h.DenialResponse(context.Background(), d.reasonForAgent, d.reasonForUser)
	}
	if err == nil && len(answer) > 0 {
		_, err = fmt.Fprintf(w.Out, "%s\n", answer)
	}
	status := statusBlock
	switch {
	case err != nil:
		d.reasonForAgent += fmt.Sprintf("; the host was not answered: %v", err)
	case !d.toolHasRun:
		status = h.DenialExitStatus()
	}
	return &statusError{status, d.errorForStderr(h.RequiresEmptyHookStdout())}
}

// errorForStderr returns the text of a denial for standard error. agentReadsStderr means that
// the host shows standard error to the agent.
func (d toolCallDenial) errorForStderr(agentReadsStderr bool) error {
	if agentReadsStderr || d.reasonForUser == "" {
		return errors.New(d.reasonForAgent)
	}
	return errors.New(d.reasonForAgent + "\n" + d.reasonForUser)
}

// hookHostName reports whether args are the arguments of "shield hook" with which an agent host calls shield,
// and returns the name of that host; "" if it is unknown.
func hookHostName(args []string) (name string, isHookCall bool) {
	i := slices.Index(args, "hook")
	if i < 0 || i > 0 && !strings.HasPrefix(args[0], "-") {
		return "", false
	}
	for _, arg := range args[i+1:] {
		switch {
		case slices.Contains(host.Names(), arg):
			return arg, true
		case slices.Contains([]string{"install", "uninstall", "status", "list"}, arg):
			return "", false
		}
	}
	return "", true
}
