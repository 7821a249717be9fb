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

// answerHook judges one event of a host. An error is a denial.
func answerHook(c *cli.Context, w *World, name string) error {
	if _, err := operands(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	h, err := host.Named(name)
	if err != nil {
		return err
	}
	in, err := readAll(ctx, w.In)
	if err != nil {
		return err
	}
	event, err := h.Event(ctx, in)
	if err != nil {
		return err
	}
	var allow bool
	var reason string
	if len(event.Actions) > 0 {
		_, p, err := pipeline(c, w)
		if err != nil {
			return err
		}
		if allow, reason, err = judgeAll(ctx, p, event); err != nil {
			return err
		}
	}
	answer, err := h.Answer(ctx, event, allow, reason)
	if err != nil || answer == nil {
		return err
	}
	_, err = fmt.Fprintf(w.Out, "%s\n", answer)
	return err
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
