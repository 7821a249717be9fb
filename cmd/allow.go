package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/state"
)

func allowCommand(w *World) *cli.Command {
	return &cli.Command{
		Name:      "allow",
		Usage:     "allow an action that was refused, this time only",
		ArgsUsage: "[REF]",
		Description: "Shows the whole action that REF names, with its folder, host, session and age, and asks for the three letters that the question shows. The agent can then do exactly this action once, in the same session and folder, within 15 minutes, as long as the files that it reads or runs stay as they are. " +
			"Refusals of the last hour can be allowed, but not what the protected core forbids. Without REF it lists them and asks for one. " +
			"It is for people: it refuses where an agent can type, such as in a terminal of an agent host.",
		Flags:  []cli.Flag{configFlag(), stateFlag()},
		Action: func(c *cli.Context) error { return allow(c, w) },
	}
}

func allow(c *cli.Context, w *World) error {
	if c.NArg() > 1 {
		return fmt.Errorf("allow: unexpected operand %q", cut(c.Args().Get(1)))
	}
	if err := requirePerson(w, "allow", atTerminal); err != nil {
		return err
	}
	set, err := settings(c, w)
	if err != nil {
		return err
	}
	store, err := openStore(set, w)
	if err != nil {
		return err
	}
	defer store.Close()
	key, err := shield.SealKey(c.Context, stateDir(&set.Settings, w), store)
	if err != nil {
		return err
	}
	refusals := shield.Refusals(key, store, w.Now)
	ref := c.Args().First()
	if c.NArg() == 0 {
		if ref, err = pickRefusal(c.Context, w, refusals); ref == "" || err != nil {
			return err
		}
	}
	r, err := refusals.Find(c.Context, w.User, strings.ToLower(strings.TrimSpace(ref)))
	if err != nil {
		return fmt.Errorf("allow %s: %w; 'shield allow' lists those that can be allowed", cut(ref), err)
	}
	by, err := confirmRefusal(c, w, set, r)
	if err != nil {
		return err
	}
	g, err := refusals.Allow(c.Context, r, by)
	if err != nil {
		return fmt.Errorf("allow %s: %w", r.Ref, err)
	}
	if err := logAllowed(c.Context, w, set, store, r, g); err != nil {
		refusals.Take(c.Context, g.Binding) // what is not logged is not allowed
		return fmt.Errorf("allow %s: not allowed, because it cannot be logged: %w", r.Ref, err)
	}
	_, err = fmt.Fprintf(w.Out, "Allowed once, until %s. Tell the agent to try again.\n", g.Until.Local().Format("15:04"))
	return err
}

// pickRefusal lists the refusals that can be allowed, and returns the name of the one that
// the person types; "" for none.
func pickRefusal(ctx context.Context, w *World, refusals *approve.Refusals) (string, error) {
	list, err := refusals.List(ctx, w.User)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w.Out, "Nothing that can be allowed was refused in the last hour.")
		return "", err
	}
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', 0)
	for i := range list {
		r := &list[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Ref, age(w.Now().Sub(time.Unix(r.At, 0))), term.Escape(cut(r.What)), term.Escape(r.CWD))
	}
	if err := t.Flush(); err != nil {
		return "", err
	}
	if !isTerminal(w.In) {
		_, err := fmt.Fprintln(w.Out, "\nTo allow one: shield allow REF")
		return "", err
	}
	fmt.Fprint(w.Out, "\nReference to allow, or Enter for none: ")
	line, err := bufio.NewReader(io.LimitReader(w.In, 100)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(line), nil
}

// confirmRefusal asks the person at the terminal, and returns who that is.
func confirmRefusal(c *cli.Context, w *World, set *config.Loaded, r *approve.Refusal) (by string, err error) {
	o := approval(set, w, "allow")
	o.Approval = set.Approval
	o.Channels, o.StateDir, o.Clock, o.Plain = nil, stateDir(&set.Settings, w), w.Now, !colour(c, w, true)
	ask := w.confirm
	if ask == nil {
		ask = approve.Confirm
	}
	answer, err := ask(c.Context, o, r)
	switch {
	case err != nil:
		return "", fmt.Errorf("allow %s: %w", r.Ref, err)
	case !answer.Approve:
		return "", fmt.Errorf("allow %s: not allowed", r.Ref)
	}
	if answer.By == "" {
		return person(w), nil
	}
	return answer.By, nil
}

// logAllowed logs who allowed what.
func logAllowed(ctx context.Context, w *World, set *config.Loaded, store *state.Store, r *approve.Refusal, g approve.Grant) error {
	file := auditFile(set, w)
	if file == "" {
		return nil
	}
	log, err := audit.Open(file, audit.Options{Clock: w.Now, Heads: store, Redactor: redact.New(set.Evaluator.CanaryToken), MaxBytes: int64(set.Audit.MaxBytes)})
	if err != nil {
		return err
	}
	ticket := log.Submit(audit.Entry{
		Kind: audit.KindAllow, Session: r.Session, Type: r.Type, CWD: r.CWD, ActionHash: r.Hash, Payload: r.Payload, Rule: r.Rule, Ref: r.Ref,
		Tier: shield.TierApprove, Confidence: 1, Channel: "tty", By: g.By, Caller: audit.Caller{Command: "allow", User: w.User, PID: w.pid, Parent: w.parent},
		Reasoning: fmt.Sprintf("%s allowed this once, until %s: %s", g.By, g.Until.UTC().Format(time.RFC3339), r.What),
	})
	return errors.Join(ticket.Wait(ctx), log.Close())
}
