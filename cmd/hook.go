package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// hookDeadline is how long a hook may take unless installed otherwise. Hosts
// that give up waiting run the tool.
const hookDeadline = 50 * time.Second

func hookCommand(w *World) *cli.Command {
	cmd := &cli.Command{
		Name:  "hook",
		Usage: "judge what an agent host is about to do, and answer in the host's own form",
		Description: "shield hook HOST reads the host's hook JSON from standard input, judges what it proposes, and prints the host's own answer: allow or deny. Every failure ends with 2, which hosts take for a denial. " +
			"hook install edits the host's settings, hook uninstall undoes it, hook status proves that a denial bites.",
	}
	for _, name := range host.Names() {
		cmd.Subcommands = append(cmd.Subcommands, &cli.Command{
			Name:  name,
			Usage: "answer one hook of this host",
			Flags: append(placeFlags(), &cli.DurationFlag{Name: "timeout", Value: hookDeadline, Usage: "deny after `TIME` at the latest, persons included"}),
			Action: func(c *cli.Context) error {
				if err := answerHook(c, w, name); err != nil {
					return &statusError{statusBlock, err}
				}
				return nil
			},
		})
	}
	cmd.Subcommands = append(cmd.Subcommands, hookSettingsCommands(w)...)
	return cmd
}

// hookGrace is how long after its deadline a hook waits for the verdict that
// the deadline makes.
const hookGrace = time.Second

// answerHook judges one event of a host and prints the answer. An error is a
// denial. The deadline holds whatever judging waits for, such as a lock.
func answerHook(c *cli.Context, w *World, name string) error {
	if _, err := operands(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	type result struct {
		answer []byte
		err    error
	}
	done := make(chan result, 1)
	go func() {
		answer, err := hookAnswer(ctx, c, w, name)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		return printAnswer(w, r.answer, r.err)
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return printAnswer(w, r.answer, r.err)
	case <-time.After(hookGrace):
		return errors.New("hook: no verdict in time")
	}
}

func printAnswer(w *World, answer []byte, err error) error {
	if err != nil || answer == nil {
		return err
	}
	_, err = fmt.Fprintf(w.Out, "%s\n", answer)
	return err
}

// hookAnswer returns what the host is to be told, nil if nothing.
func hookAnswer(ctx context.Context, c *cli.Context, w *World, name string) ([]byte, error) {
	h, err := host.Named(name)
	if err != nil {
		return nil, err
	}
	in, err := readAll(ctx, w.In)
	if err != nil {
		return nil, err
	}
	event, err := h.Event(ctx, in)
	if err != nil {
		return nil, err
	}
	var allow bool
	var reason string
	if len(event.Actions) > 0 {
		_, p, err := pipeline(c, w)
		if err != nil {
			return nil, err
		}
		if allow, reason, err = judgeAll(ctx, p, event); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		allow, reason = false, "no verdict in time" // the host may have given up
	}
	return h.Answer(context.WithoutCancel(ctx), event, allow, reason)
}

// judgeAll judges the actions of an event until one is not allowed.
func judgeAll(ctx context.Context, p *shield.Pipeline, event host.Event) (allow bool, reason string, err error) {
	for _, raw := range event.Actions {
		a, err := action.Parse(raw)
		if err != nil {
			return false, "", fmt.Errorf("hook: %w", err)
		}
		v := p.Evaluate(ctx, a)
		reason = fmt.Sprintf("shield tier %d: %s", v.Tier, v.Reasoning)
		if v.Decision != verdict.Allow {
			return false, reason, nil
		}
	}
	return true, reason, nil
}

// readAll reads a hook's input, bounded in size and by the context.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(r, host.MaxBytes+1))
		done <- result{data, err}
	}()
	select {
	case res := <-done:
		if res.err == nil && strings.TrimSpace(string(res.data)) == "" {
			return nil, errors.New("hook: standard input is empty")
		}
		return res.data, res.err
	case <-ctx.Done():
		return nil, errors.New("hook: standard input did not end in time")
	}
}
