package cmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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

func allowCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:      "allow",
		Usage:     "allow a refused action: once, or its kind in this session, in this project or everywhere",
		ArgsUsage: "[REF]",
		Description: "Shows the whole action that REF names, with its folder, host, session and age, and asks for the three letters that the question shows. The agent can then do exactly this action once, in the same session and folder, within 15 minutes, as long as the files that it reads or runs do not change. " +
			"Refusals of the last hour can be allowed, but not what the protected core forbids. Without REF it lists them and asks for one. " +
			"With --session, --project or --everywhere it shows the narrowest kind that covers the action, and actions that the kind would allow too, and asks the same way. A kind for a session ends with it, after 12 hours, or when a secret or untrusted text enters the session. " +
			"The others are written to answers.yaml beside your settings, with a comment; they count as your answer for exactly what they cover. For an action that runs a script, an interpreter or an unknown program, the kind is this exact command with the current content of the files " +
			"that it uses. Actions on credentials, privileges, persistence or shield itself can only be allowed once. Only a person can run this command: " +
			"it refuses in a terminal that an agent can type into.",
		Flags: []cli.Flag{
			configFlag(), stateFlag(),
			&cli.BoolFlag{Name: "session", Usage: "allow this kind for the rest of the session"},
			&cli.BoolFlag{Name: "project", Usage: "allow this kind in this project"},
			&cli.BoolFlag{Name: "everywhere", Usage: "allow this kind everywhere"},
		},
		Action: func(c *cli.Context) error { return allowRefusedAction(c, w) },
	}
}

func allowRefusedAction(c *cli.Context, w *Environment) error {
	if c.NArg() > 1 {
		return fmt.Errorf("allow: unexpected operand %q; give one REF of a refused action, which 'shield allow' lists", shortenTo80Characters(c.Args().Get(1)))
	}
	if err := requirePerson(w, "allow", personProofAtTerminal); err != nil {
		return err
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return err
	}
	store, err := openStore(set, w)
	if err != nil {
		return err
	}
	defer store.Close()
	key, err := shield.LoadOrCreateSealKey(c.Context, stateDir(&set.Settings, w), store)
	if err != nil {
		return err
	}
	refusals := shield.NewDecisionStore(key, store, w.Now)
	ref := c.Args().First()
	if c.NArg() == 0 {
		if ref, err = promptForRefusalRef(c.Context, w, refusals); ref == "" || err != nil {
			return err
		}
	}
	r, err := refusals.FindOverridableRefusal(c.Context, w.User, strings.ToLower(strings.TrimSpace(ref)))
	if err != nil {
		return fmt.Errorf("allow %s: %w; 'shield allow' lists those that can be allowed", shortenTo80Characters(ref), err)
	}
	scope, err := approvalScopeFromFlags(c)
	if err != nil {
		return err
	}
	var s *approve.AdvanceApproval
	if scope != "" {
		if s, err = previewAdvanceApproval(c, w, set, r, scope); err != nil {
			return fmt.Errorf("allow %s: %w", r.Ref, err)
		}
	}
	by, err := askUserToAllowRefusal(c, w, set, r)
	if err != nil {
		return err
	}
	if s != nil {
		s.By = by
		if err := storeAdvanceApproval(c, w, set, store, refusals, r, s, scope); err != nil {
			return fmt.Errorf("allow %s: %w", r.Ref, err)
		}
		_, err = fmt.Fprintf(w.Out, "Allowed %s as %s. Tell the agent to try again. To undo: shield approvals revoke %s\n", scopeDescriptions[scope], s.Name, s.Name)
		return err
	}
	g, err := refusals.Allow(c.Context, r, by)
	if err != nil {
		return fmt.Errorf("allow %s: %w", r.Ref, err)
	}
	if err := logRefusalOverride(c.Context, w, set, store, r, fmt.Sprintf("%s allowed this once, until %s: %s", g.By, g.Until.UTC().Format(time.RFC3339), r.RefusedActionText), g.By); err != nil {
		refusals.TakeGrant(c.Context, g.ActionKey) // Use up the approval: an approval that is not in the audit log must not allow the action.
		return fmt.Errorf("allow %s: not allowed, because the audit log cannot be written: %w; run 'shield doctor'", r.Ref, err)
	}
	_, err = fmt.Fprintf(w.Out, "Allowed once, until %s. Tell the agent to try again.\n", g.Until.Local().Format("15:04"))
	return err
}

// promptForRefusalRef lists the refusals that can be allowed, and returns the name of the one that
// the person types; "" for none.
func promptForRefusalRef(ctx context.Context, w *Environment, refusals *approve.DecisionStore) (string, error) {
	list, err := refusals.ListAllowableRefusals(ctx, w.User)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w.Out, "Nothing that can be allowed was refused in the last hour.")
		return "", err
	}
	t := newTableWriter(w.Out, "REF", "AGE", "ACTION", "FOLDER")
	for i := range list {
		r := &list[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Ref, formatAge(w.Now().Sub(time.Unix(r.RefusedAtUnixSeconds, 0))), term.EscapeControlAndInvisible(shortenTo80Characters(r.RefusedActionText)), term.EscapeControlAndInvisible(r.CWD))
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

// askUserToAllowRefusal asks the person at the terminal, and returns that person's name.
func askUserToAllowRefusal(c *cli.Context, w *Environment, set *config.LoadedSettings, r *approve.Refusal) (approverName string, err error) {
	o := approvalOptions(set, w, "allow")
	o.Approval = set.Approval
	o.Channels, o.StateDir, o.Clock, o.NoBoldText = nil, stateDir(&set.Settings, w), w.Now, !isColourEnabled(c, w, true)
	ask := w.askToAllowRefusal
	if ask == nil {
		ask = approve.AskToAllowRefusal
	}
	answer, err := ask(c.Context, o, r)
	switch {
	case err != nil:
		return "", fmt.Errorf("allow %s: %w", r.Ref, err)
	case !answer.Approve:
		return "", fmt.Errorf("allow %s: not confirmed, so nothing is allowed; run it again", r.Ref)
	}
	if answer.AnsweringPersonName == "" {
		return userNameOrAPerson(w), nil
	}
	return answer.AnsweringPersonName, nil
}

// logRefusalOverride logs who allowed what.
func logRefusalOverride(ctx context.Context, w *Environment, set *config.LoadedSettings, store *state.Store, r *approve.Refusal, reasoningText, personName string) error {
	file := auditFile(set, w)
	if file == "" {
		return nil
	}
	log, err := audit.Open(file, audit.Options{Clock: w.Now, HeadStore: store, Redactor: redact.New(set.Evaluator.FixedCanaryToken), MaxFileBytes: int64(set.Audit.MaxFileBytes)})
	if err != nil {
		return err
	}
	ticket := log.EncodeAndQueue(audit.Entry{
		Kind: audit.EntryKindRefusalAllowed, Session: r.Session, ActionType: r.ActionType, CWD: r.CWD, ActionHash: r.ActionHash, Payload: r.Payload, Rule: r.RuleNameOrID, RefusalRef: r.Ref,
		Tier: shield.TierApprove, Confidence: 1, AnswerChannel: "tty", AnsweredBy: personName, Caller: audit.Caller{ShieldSubcommand: "allow", User: w.User, PID: w.judgePID, ParentPID: w.verdictRequesterPID},
		Reasoning: reasoningText,
	})
	return errors.Join(ticket.Wait(ctx), log.Close())
}

// scopeDescriptions describes, in text for people, the scopes that the flags --session, --project
// and --everywhere of "shield allow" select. Without a flag, the approval is for one action.
var scopeDescriptions = map[string]string{"session": "this kind for this session", "project": "this kind in this project", "everywhere": "this kind everywhere"}

// approvalScopeFromFlags returns the scope that the flags choose for an approval: session, project or
// everywhere. "" means that no flag is set, and the action is allowed once.
func approvalScopeFromFlags(c *cli.Context) (scope string, err error) {
	for _, name := range []string{"session", "project", "everywhere"} {
		if c.Bool(name) {
			if scope != "" {
				return "", fmt.Errorf("allow: --%s and --%s exclude each other; use one", scope, name)
			}
			scope = name
		}
	}
	return scope, nil
}

// previewAdvanceApproval prints which actions an approval with a scope would cover, and returns
// that approval, which is not stored yet.
func previewAdvanceApproval(c *cli.Context, w *Environment, set *config.LoadedSettings, r *approve.Refusal, scope string) (*approve.AdvanceApproval, error) {
	s := r.OfferedAdvanceApproval
	if s == nil && scope != "session" {
		s = r.ExactActionApproval
	}
	switch {
	case s == nil:
		return nil, fmt.Errorf("this action can only be allowed once, because %s; leave out --%s", cmp.Or(r.NoAdvanceApprovalReason, "shield cannot check later whether the files that the action uses were changed"), scope)
	case scope == "session" && r.AdvanceApprovalSessionKey == "":
		return nil, errors.New("the action has no session; leave out --session to allow it once")
	case scope != "session" && advanceApprovalsFile(set, w) == "":
		return nil, fmt.Errorf("your organisation manages this machine's policy; use --session, or allow it once")
	case scope == "project" && r.CWD == "":
		return nil, errors.New("the action has no folder; allow it once, or with --session")
	}
	kept := *s
	if scope != "session" {
		kept.Name, kept.Session, kept.SpaceSeparatedSessionTaintLabels = "allow-"+r.Ref, "", ""
	}
	if scope == "project" {
		if len(r.WorkspaceRoots) == 0 {
			return nil, errors.New("the folder of the action is in no project; allow it once, or with --session")
		}
		kept.Project = r.WorkspaceRoots[0]
	}
	r.QuestionText = "Allow " + scopeDescriptions[scope]
	covers := approve.DescribeActionKind(&kept.Kind)
	if kept.Kind.CoversOnlyOneAction() {
		covers = "exactly this command in this folder, while the files that it reads and runs do not change"
	}
	fmt.Fprintf(w.Out, "This kind: %s\n", term.EscapeControlAndInvisible(covers))
	for _, n := range r.AdvanceApprovalActionExamples {
		if !kept.Kind.CoversOnlyOneAction() {
			fmt.Fprintf(w.Out, "  this approval also allows: %s\n", term.EscapeControlAndInvisible(n))
		}
	}
	if kept.Project != "" {
		fmt.Fprintf(w.Out, "  in: %s\n", term.EscapeControlAndInvisible(kept.Project))
	}
	if r.DeniedByRule {
		fmt.Fprintf(w.Out, "Warning: the rule %s always denies this action: %s\nApprove the action only if you are sure that it is harmless.\n", term.EscapeControlAndInvisible(r.RuleNameOrID), term.EscapeControlAndInvisible(r.RefusalReason))
	}
	return &kept, nil
}

// storeAdvanceApproval records an advance approval in the audit log, and then stores it in the
// session or in answers.yaml.
func storeAdvanceApproval(c *cli.Context, w *Environment, set *config.LoadedSettings, store *state.Store, refusals *approve.DecisionStore, r *approve.Refusal, s *approve.AdvanceApproval, scope string) error {
	if err := logRefusalOverride(c.Context, w, set, store, r, fmt.Sprintf("%s allowed %s: %s", s.By, scopeDescriptions[scope], approve.DescribeActionKind(&s.Kind)), s.By); err != nil {
		return fmt.Errorf("not allowed, because the audit log cannot be written: %w; run 'shield doctor'", err)
	}
	if scope == "session" {
		err := refusals.AddAdvanceApproval(c.Context, r.AdvanceApprovalSessionKey, *s)
		s.Name = s.Kind.Key()[:12]
		return err
	}
	comment := fmt.Sprintf("%s: %s ran 'shield allow %s --%s' to allow: %s", w.Now().Format("2006-01-02 15:04"), s.By, r.Ref, scope, r.RefusedActionText)
	return approve.AddAdvanceApprovalToFile(c.Context, advanceApprovalsFile(set, w), s, comment)
}
