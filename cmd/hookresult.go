package cmd

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
)

// examineResult examines the result of a tool and, if the host supports it, returns a replacement for
// the agent to read. There a failure withholds the result; on other hosts it is an error.
func examineResult(ctx context.Context, c *cli.Context, w *World, h *host.Host, event host.Event) (hookAnswer, error) {
	got, err := examineReturned(ctx, c, w, h, event)
	switch {
	case err != nil && (!h.Replaces(event.Name) || w.served != nil):
		return hookAnswer{}, err
	case err != nil:
		got.Changed, got.Withheld = true, "shield: the result of this tool could not be scanned for prompt injection, so it is withheld; tell the user to run 'shield doctor': "+withoutSecrets(err)
	}
	if !got.Changed || !h.Replaces(event.Name) {
		answer, err := h.Answer(ctx, event, true, "")
		return hookAnswer{Allow: true, Answer: answer}, err
	}
	answer, err := h.Replace(ctx, event, got.Result, got.Withheld)
	return hookAnswer{Allow: true, Answer: answer}, err
}

// examineReturned examines and remembers the result of a tool with a pipeline.
func examineReturned(ctx context.Context, c *cli.Context, w *World, h *host.Host, event host.Event) (got shield.Examined, err error) {
	line, err := newResultShell(ctx, h)
	if err != nil {
		return got, err
	}
	r := shield.Returned{Result: event.Returned.Result, Files: event.Returned.Files, Agent: event.Returned.Agent, Heard: sentByHost(w, h, line) != nil}
	for _, raw := range event.Actions {
		a, err := action.Parse(raw)
		if err != nil {
			return got, fmt.Errorf("hook: %w", err)
		}
		r.Actions = append(r.Actions, a)
	}
	set, p, err := pipelineOf(c, w, func(cfg *shield.Config) {
		cfg.Keeps = true
		sessionsOf(cfg, w, h.Name, event.Parent)
	})
	if err != nil {
		return got, err
	}
	recordRanCall(w, set, p, h, event)
	got, err = p.Returned(ctx, r)
	if closing := p.Close(); err == nil {
		err = closing
	}
	return got, err
}
