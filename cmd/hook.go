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

func hookCommand(w *World) *cli.Command {
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
				return fmt.Errorf("hook: unknown host %q; supported: %s", shortenText(c.Args().First()), strings.Join(host.Names(), ", "))
			}
			return fmt.Errorf("hook: HOST is missing; supported: %s", strings.Join(host.Names(), ", "))
		},
	}
	for _, name := range host.Names() {
		cmd.Subcommands = append(cmd.Subcommands, &cli.Command{
			Name:  name,
			Usage: "answer one hook call of this host",
			Flags: append(placeFlags(), unattendedFlag(),
				&cli.DurationFlag{Name: "timeout", Usage: "deny after `TIME` at the latest, waiting for a person included"},
				&cli.BoolFlag{Name: permissionFlag, Usage: "answer the event that the host raises before its permission prompt"},
				&cli.IntFlag{Name: watch.Line, Hidden: true},
				&cli.BoolFlag{Name: watch.Alone, Usage: "judge in this process, without a second one as watchdog; for command lines that older versions installed"},
				&cli.BoolFlag{Name: watch.Flag, Hidden: true}),
			Action: func(c *cli.Context) error {
				if _, err := operands(c); err != nil {
					return err
				}
				if w.served != nil {
					return answerHook(c, w, name)
				}
				deadline, err := hookDeadline(c, w)
				switch {
				case err != nil && c.IsSet("timeout"):
					return err
				case err != nil: // the settings cannot be read; the judge reports that in the format of the event
					deadline = config.Default().Hook.Timeout.Std()
				}
				switch {
				case c.Bool(watch.Flag):
					return judgeHook(c, w, name, deadline)
				case (c.Bool(watch.Alone) || c.IsSet(watch.Line)) && w.Ahead == nil:
					return judgeAlone(c, w, name, deadline)
				}
				return watchHook(c.Context, w, name, deadline)
			},
		})
	}
	cmd.Subcommands = append(cmd.Subcommands, hookSettingsCommands(w)...)
	return cmd
}

// hookDeadline returns the time limit of a hook: --timeout, or else the setting.
func hookDeadline(c *cli.Context, w *World) (time.Duration, error) {
	if c.IsSet("timeout") {
		return c.Duration("timeout"), nil
	}
	set, err := settings(c, w)
	if err != nil {
		return 0, err
	}
	return set.Hook.Timeout.Std(), nil
}

// A denial is the reason why a tool must not run: the text for the agent, and the text for its user
// ("": the same).
type denial struct {
	agent, user string
	host        string // the host of the event, if it is not the host of the command line
	after       bool   // the tool has already run, so its result must be withheld
}

func (d denial) Error() string { return d.agent }

// failureDenial returns the denial after an internal failure.
func failureDenial(cause, host string, after bool) denial {
	return denial{unjudged, "shield could not judge an action, so it was stopped: " + withoutSecrets(errors.New(cause)), host, after}
}

// sanitized returns a denial without control characters, cut to maxReason.
func (d denial) sanitized() denial {
	for _, text := range []*string{&d.agent, &d.user} {
		*text = brief.Text(strings.ToValidUTF8(term.Escape(*text), "?"), maxReason)
	}
	return d
}

// maxReason limits the reason that a host gets, in characters.
const maxReason = 4000

// unjudged is the text for the agent about an internal failure of shield.
const unjudged = "shield could not judge this, so it is blocked. Tell the user to run: shield doctor. Do not retry. [shield]"

// deniedHook returns the error with which Run ends after err, for a command line that a host may run
// as its hook: it prints the host's own form of denial to standard output, the reason and the user's
// text to standard error, and sets the status that the host treats as a denial. Other command lines
// return err unchanged.
func deniedHook(w *World, args []string, err error) error {
	name, hooked := hookedBy(args)
	if err == nil || !hooked {
		return err
	}
	var d denial
	if !errors.As(err, &d) {
		d = failureDenial(err.Error(), "", false)
	}
	d = d.sanitized()
	h, err := hookedHost(cmp.Or(d.host, name), d.host == "" && slices.Contains(args, "--"+permissionFlag))
	if errors.Is(err, host.ErrNoPermission) {
		h, err = host.Named(name)
	}
	if err != nil {
		return &statusError{statusBlock, d.stderrText(false)}
	}
	var answer []byte
	if d.after {
		answer, err = h.Lost(context.Background(), d.agent)
	} else {
		answer, err = h.Deny(context.Background(), d.agent, d.user)
	}
	if err == nil && len(answer) > 0 {
		_, err = fmt.Fprintf(w.Out, "%s\n", answer)
	}
	status := statusBlock
	switch {
	case err != nil:
		d.agent += fmt.Sprintf("; the host was not answered: %v", err)
	case !d.after:
		status = h.DenialStatus()
	}
	return &statusError{status, d.stderrText(h.Silent())}
}

// stderrText returns the text of a denial for standard error. agent means that the host shows standard
// error to the agent.
func (d denial) stderrText(agent bool) error {
	if agent || d.user == "" {
		return errors.New(d.agent)
	}
	return errors.New(d.agent + "\n" + d.user)
}

// hookedBy reports whether a command line answers a host, and returns the host's name, "" if unknown.
func hookedBy(args []string) (name string, hooked bool) {
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
