package cmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/state"
)

func approvalsCommand(w *Environment) *cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag {
		return append([]cli.Flag{configFlag(), stateFlag(), &cli.BoolFlag{Name: "json", Usage: "write JSON"}}, more...)
	}
	return &cli.Command{
		Name:  "approvals",
		Usage: "list the questions that wait for an answer, and how to answer them",
		Description: "Prints the questions that wait on the approval page, oldest first, from every process: hooks, pipes and shield exec; and, on a terminal, the address of the page and the code that it asks for. The page is served while a question waits, or as long as shield serve runs, always at the same address. Anyone who has the code can answer, " +
			"so keep it from agents; it changes soon after the last question is answered. " +
			"approvals list shows the approvals that still count: for some minutes, for a kind of action in a session, and those that shield allow wrote to answers.yaml; approvals revoke removes them.",
		Flags: flags(),
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			return printWaitingQuestions(c, w)
		},
		Subcommands: []*cli.Command{
			{
				Name:        "notify",
				Usage:       "send a test notice to each URL in approval.notify_file, and to the chats of the channels telegram, slack and discord",
				Description: "The file holds a line with a URL for each chat, mailbox or push service that gets a notice when a question waits on the page, such as telegram://TOKEN@telegram?chats=CHAT, slack://hook:A-B-C@webhook, discord://TOKEN@ID or ntfy://ntfy.sh/TOPIC; lines that begin with # are skipped. A notice names the action, without credentials; the question is answered on the page. The channels telegram, slack and discord, if they are in approval.channels, ask in their own chats, where approvers answer by a button or a reaction. Exits with 1 if a notice is not delivered.",
				Flags:       flags(),
				Action:      func(c *cli.Context) error { return sendChannelTestNotices(c, w) },
			},
			{
				Name:   "list",
				Usage:  "list remembered approvals, kinds and answers in advance",
				Flags:  flags(),
				Action: func(c *cli.Context) error { return listApprovals(c, w) },
			},
			{
				Name:        "revoke",
				Usage:       "forget a remembered approval by its ID, or all of them",
				ArgsUsage:   "ID",
				Description: "shield asks again the next time the action is proposed. approvals list prints the IDs.",
				Flags:       flags(&cli.BoolFlag{Name: "all", Usage: "revoke every approval; takes no ID"}),
				Action:      func(c *cli.Context) error { return revokeApprovals(c, w) },
			},
		},
	}
}

// printWaitingQuestions prints the address of the approval page and the waiting questions.
func printWaitingQuestions(c *cli.Context, w *Environment) error {
	set, err := loadSettings(c, w)
	if err != nil {
		return err
	}
	now := w.Now()
	q, err := approve.ReadApprovalPageState(stateDir(&set.Settings, w), now)
	if err != nil {
		return err
	}
	shown := isTerminal(w.Out) // otherwise an agent could read the code of the approval page from the output
	if shown {
		if err := requirePerson(w, "approvals", personProofAtTerminal); err != nil {
			return err
		}
	} else {
		q.PageLink, q.PageLoginCode = "", ""
	}
	if c.Bool("json") {
		return json.NewEncoder(w.Out).Encode(q)
	}
	if q.PreviousPageAddress != "" && q.PageLink != "" {
		fmt.Fprintf(w.Out, "Another program is using %s, the previous address of the approval page. Use the link below.\n", q.PreviousPageAddress)
	}
	if len(q.Waiting) == 0 {
		text := "Nothing is waiting for an answer.\n" + approvalPageOffHint(set)
		if q.PageLink != "" { // a running service serves the page
			text += "The page is open at " + q.PageLink + " with the code " + q.PageLoginCode + "\n"
		}
		_, err := fmt.Fprint(w.Out, text)
		return err
	}
	noun := "questions wait"
	if len(q.Waiting) == 1 {
		noun = "question waits"
	}
	fmt.Fprintf(w.Out, "%d %s for your answer:\n\n", len(q.Waiting), noun)
	for _, one := range q.Waiting {
		times := ""
		if one.IdenticalQuestionCount > 1 {
			times = fmt.Sprintf(", asked %d times", one.IdenticalQuestionCount)
		}
		fmt.Fprintf(w.Out, "%3d  %s\n     asked %s ago, denied in %s%s%s\n", one.Number, one.Summary, formatAge(now.Sub(one.AskedAt)), formatAge(one.DeniedAt.Sub(now)), questionLineFolderSuffix(one.CWD), times)
	}
	switch {
	case !shown:
		_, err = fmt.Fprintln(w.Out, "\nRun 'shield approvals' in a terminal to see where to answer these questions.")
	case q.PageLink == "":
		_, err = fmt.Fprintln(w.Out, "\nThe page is starting; run this again in a moment.")
	default:
		_, err = fmt.Fprintf(w.Out, "\nAnswer at %s with the code %s\n", q.PageLink, q.PageLoginCode)
	}
	return err
}

// usesApprovalPage reports whether questions can come to the approval page.
func usesApprovalPage(set *config.LoadedSettings) bool {
	wait, _ := set.Approval.UnattendedWaitDuration()
	return wait > 0 || set.Approval.Channels.IsChosenByShield() || slices.Contains(set.Approval.Channels, "web")
}

// approvalPageOffHint says why no question can wait while the page is off.
func approvalPageOffHint(set *config.LoadedSettings) string {
	if usesApprovalPage(set) {
		return ""
	}
	return "The approval page is off. To answer in a browser, set approval.channels: auto.\n"
}

func questionLineFolderSuffix(folderPath string) string {
	if folderPath == "" {
		return ""
	}
	return ", in " + folderPath
}

// formatAge formats a duration in whole seconds or minutes.
func formatAge(d time.Duration) string {
	if d >= 2*time.Minute {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d s", max(int(d.Seconds()), 0))
}

// openApprovalStore opens the state file that remembers approvals.
func openApprovalStore(c *cli.Context, w *Environment) (*state.Store, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, err
	}
	return openStore(set, w)
}

func listApprovals(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	store, err := openApprovalStore(c, w)
	if err != nil {
		return err
	}
	defer store.Close()
	list, err := approve.RememberedApprovals(c.Context, store)
	if err != nil {
		return err
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return err
	}
	kinds, err := advanceApprovals(c, w, set, store)
	if err != nil {
		return err
	}
	if len(list) == 0 && len(kinds) > 0 && !c.Bool("json") {
		return printAdvanceApprovals(w, kinds)
	}
	if err := printApprovals(c, w.Out, list, "No approval is remembered.", w.Now()); err != nil || c.Bool("json") {
		return err
	}
	return printAdvanceApprovals(w, kinds)
}

func revokeApprovals(c *cli.Context, w *Environment) error {
	id, names := "", []string{"ID"}
	if c.Bool("all") {
		names = nil
	}
	args, err := operands(c, names...)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if id = args[0]; id == "" {
			return errors.New("approvals revoke: the ID is empty; use --all to forget all")
		}
	}
	if err := requirePerson(w, "approvals revoke", personProofNoAgentAncestor); err != nil {
		return err
	}
	store, err := openApprovalStore(c, w)
	if err != nil {
		return err
	}
	defer store.Close()
	set, err := loadSettings(c, w)
	if err != nil {
		return err
	}
	n, err := revokeAdvanceApprovals(c, w, set, store, id)
	if err != nil {
		return err
	}
	if n > 0 {
		fmt.Fprintf(w.Out, "Revoked: %d\n", n)
		if id != "" {
			return nil
		}
	}
	list, err := approve.RevokeRememberedApprovals(c.Context, store, id)
	if err != nil {
		return err
	}
	if n > 0 && len(list) == 0 {
		return nil
	}
	if !c.Bool("json") && len(list) > 0 {
		fmt.Fprintln(w.Out, "Forgotten:")
	}
	return printApprovals(c, w.Out, list, "No approval was remembered.", w.Now())
}

// printApprovals prints approvals, or that none is remembered.
func printApprovals(c *cli.Context, out io.Writer, list []approve.Approval, none string, now time.Time) error {
	if c.Bool("json") {
		return json.NewEncoder(out).Encode(append([]approve.Approval{}, list...))
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, none)
		return err
	}
	t := newTableWriter(out, "ID", "TIME LEFT", "APPROVED BY", "ACTION")
	for _, a := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", a.ID, formatAge(a.Until.Sub(now)), a.By, a.ActionText)
	}
	return t.Flush()
}

// sendChannelTestNotices sends a test notice to each configured chat, mailbox and push service, and prints
// whether it was sent.
func sendChannelTestNotices(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return err
	}
	asked := slices.DeleteFunc(slices.Clone(set.Approval.Channels), func(name string) bool { return approve.ChatServiceTitle(name) == "" })
	if set.Approval.NotificationURLsFile == "" && len(asked) == 0 {
		return errors.New("approvals notify: no chat or mailbox is configured; set approval.notify_file to a file with a URL in each line")
	}
	var places []approve.QuestionNoticeTarget
	if set.Approval.NotificationURLsFile != "" {
		if places, err = approve.QuestionNoticeTargets(set.Approval.NotificationURLsFile); err != nil {
			return fmt.Errorf("approval.notify_file: %w", err)
		}
	}
	type outcome struct {
		Service string `json:"service"`
		Error   string `json:"error,omitempty"`
	}
	var list []outcome
	failed := false
	note := func(service string, err error) {
		o := outcome{Service: service}
		if err != nil {
			o.Error, failed = err.Error(), true
		}
		list = append(list, o)
	}
	const text = "Test notice: shield will send a message here when a question waits for your answer."
	for _, p := range places {
		note(p.Service, p.Send(c.Context, text))
	}
	for _, name := range asked {
		note("questions in "+approve.ChatServiceTitle(name), approve.Options{Approval: set.Approval}.SendTestMessage(c.Context, name, text))
	}
	if c.Bool("json") {
		err = json.NewEncoder(w.Out).Encode(list)
	} else {
		t := newTableWriter(w.Out, "SERVICE", "RESULT")
		for _, o := range list {
			fmt.Fprintf(t, "%s\t%s\n", o.Service, cmp.Or(o.Error, "sent"))
		}
		err = t.Flush()
	}
	if err == nil && failed {
		return errors.New("approvals notify: a notice was not delivered; correct approval.notify_file")
	}
	return err
}

// advanceApprovals returns the advance approvals of all sessions, and those stored in the user's
// file.
func advanceApprovals(c *cli.Context, w *Environment, set *config.LoadedSettings, store *state.Store) ([]approve.AdvanceApproval, error) {
	key, err := shield.LoadOrCreateSealKey(c.Context, stateDir(&set.Settings, w), store)
	if err != nil {
		return nil, err
	}
	kinds, err := shield.NewDecisionStore(key, store, w.Now).AdvanceApprovals(c.Context, "")
	if err != nil || advanceApprovalsFile(set, w) == "" {
		return kinds, err
	}
	stored, err := approve.ReadAdvanceApprovals(advanceApprovalsFile(set, w))
	return append(kinds, stored...), err
}

// revokeAdvanceApprovals removes the advance approvals with the given name from all sessions and
// from the user's file, and returns how many it removed. An empty name removes all.
func revokeAdvanceApprovals(c *cli.Context, w *Environment, set *config.LoadedSettings, store *state.Store, name string) (int, error) {
	key, err := shield.LoadOrCreateSealKey(c.Context, stateDir(&set.Settings, w), store)
	if err != nil {
		return 0, err
	}
	n, err := shield.NewDecisionStore(key, store, w.Now).RemoveAdvanceApprovals(c.Context, name)
	if err != nil || advanceApprovalsFile(set, w) == "" {
		return n, err
	}
	m, err := approve.RemoveAdvanceApprovalsFromFile(c.Context, advanceApprovalsFile(set, w), name)
	return n + m, err
}

func printAdvanceApprovals(w *Environment, list []approve.AdvanceApproval) error {
	t := newTableWriter(w.Out, "NAME", "WHERE", "APPROVED BY", "KIND")
	for i := range list {
		s := &list[i]
		where := "everywhere"
		switch {
		case !s.Until.IsZero():
			where = "session " + shortenTo80Characters(s.Session) + ", " + formatAge(s.Until.Sub(w.Now())) + " left"
		case s.Project != "":
			where = "in " + s.Project
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", term.EscapeControlAndInvisible(s.Name), term.EscapeControlAndInvisible(where), term.EscapeControlAndInvisible(s.By), term.EscapeControlAndInvisible(approve.DescribeActionKind(&s.Kind)))
	}
	return t.Flush()
}
