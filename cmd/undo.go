package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/undo"
)

func undoCommand(w *Environment) *cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag {
		return append([]cli.Flag{configFlag(), stateFlag(), &cli.BoolFlag{Name: "json", Usage: "write JSON"}}, more...)
	}
	return &cli.Command{
		Name:  "undo",
		Usage: "list and restore the files that allowed actions deleted or overwrote",
		Description: "Before a hook, shield exec or the MCP gateway allows an action that deletes or overwrites files of the workspace, it keeps them, for seven days. Without a subcommand it lists the kept sets, newest first. Only a person can run undo apply and undo prune: they refuse where an agent can " +
			"type.",
		Flags:  flags(),
		Action: func(c *cli.Context) error { return listBackupSets(c, w) },
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "list the kept sets, newest first", Flags: flags(), Action: func(c *cli.Context) error { return listBackupSets(c, w) }},
			{Name: "show", Usage: "list the files of a set", ArgsUsage: "ID", Flags: flags(), Action: func(c *cli.Context) error { return showBackupSet(c, w) }},
			{
				Name: "apply", Usage: "restore a set, or some of its paths", ArgsUsage: "ID [PATH…]",
				Description: "Asks for three letters, then restores what the action deleted or overwrote. Nothing is deleted. A file that changed after the action is not replaced: the kept copy is written beside it with the set's ID as suffix. --force replaces the file, and keeps it as another set first.",
				Flags:       flags(&cli.BoolFlag{Name: "force", Usage: "replace files that changed after the action"}),
				Action:      func(c *cli.Context) error { return applyUndo(c, w) },
			},
			{
				Name: "prune", Usage: "delete the sets that are older than undo.keep, or all",
				Flags:  flags(&cli.BoolFlag{Name: "all", Usage: "delete every set"}),
				Action: func(c *cli.Context) error { return pruneBackupSets(c, w) },
			},
		},
	}
}

// undoStore loads the settings, and opens the store with the backups of changed files.
func undoStore(c *cli.Context, w *Environment) (*config.LoadedSettings, *undo.Store, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, nil, err
	}
	cfg := pipelineConfigFromSettings(set, w, "undo")
	cfg.Settings.Undo.Enabled = true // so that files kept before can still be restored
	store := shield.UndoStore(cfg)
	if store == nil {
		return nil, nil, errors.New("undo: no state folder; set HOME or --state")
	}
	return set, store, nil
}

func listBackupSets(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	_, store, err := undoStore(c, w)
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return json.NewEncoder(w.Out).Encode(append([]undo.BackupSet{}, list...))
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w.Out, "No files are kept.")
		return err
	}
	t := newTableWriter(w.Out, "SET", "KEPT", "FILES", "SIZE", "ACTION", "STATE")
	for i := range list {
		set := &list[i]
		applied := ""
		if set.LastRestoredAtRFC3339 != "" {
			applied = "restored"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", set.ID, set.At.Local().Format("2006-01-02 15:04"), set.EntryCount, formatSize(set.BackedUpContentBytes), term.EscapeControlAndInvisible(shortenTo80Characters(set.Description)), applied)
	}
	return t.Flush()
}

// formatSize formats a number of bytes for people.
func formatSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
}

func showBackupSet(c *cli.Context, w *Environment) error {
	args, err := operands(c, "ID")
	if err != nil {
		return err
	}
	_, store, err := undoStore(c, w)
	if err != nil {
		return err
	}
	set, err := store.Get(args[0])
	if err != nil {
		return fmt.Errorf("undo show: %w", err)
	}
	if c.Bool("json") {
		return json.NewEncoder(w.Out).Encode(set)
	}
	fmt.Fprintf(w.Out, "%s, %s, in %s:\n  %s\n\n", set.ID, set.At.Local().Format("2006-01-02 15:04"), term.EscapeControlAndInvisible(set.CWD), term.EscapeControlAndInvisible(set.Description))
	t := newTableWriter(w.Out, "FILE", "SIZE", "STATE")
	for i := range set.Entries {
		e := &set.Entries[i]
		what := e.BackupMethod
		switch {
		case e.IsDiscardedAsUnchanged:
			what = "not deleted"
		case e.Kind != "file":
			what = e.Kind
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", term.EscapeControlAndInvisible(e.Path), formatSize(e.Size), what)
	}
	for _, p := range set.NotBackedUpPaths {
		fmt.Fprintf(t, "%s\t\tno backup: build output\n", term.EscapeControlAndInvisible(p))
	}
	return t.Flush()
}

func applyUndo(c *cli.Context, w *Environment) error {
	if c.NArg() == 0 {
		return errors.New("undo apply: ID is missing; 'shield undo' lists the sets")
	}
	if err := requirePerson(w, "undo apply", personProofAtTerminal); err != nil {
		return err
	}
	set, store, err := undoStore(c, w)
	if err != nil {
		return err
	}
	kept, err := store.Get(c.Args().First())
	if err != nil {
		return fmt.Errorf("undo apply: %w", err)
	}
	paths := absolutePaths(c.Args().Tail(), w.WorkingDir)
	by, err := confirmUndoReturningApproverName(c, w, set, kept, paths)
	if err != nil {
		return err
	}
	done, saved, err := store.RestoreBackupSet(c.Context, kept.ID, paths, c.Bool("force"))
	if err != nil && len(done) == 0 {
		return fmt.Errorf("undo apply %s: %w", kept.ID, err)
	}
	counts := map[string]int{}
	for i := range done {
		counts[done[i].Outcome]++
	}
	said := fmt.Sprintf("%d restored, %d unchanged, %d restored beside a newer file, %d failed", counts[undo.OutcomeRestored], counts[undo.OutcomeSameAsBackup], counts[undo.OutcomeRestoredUnderOtherName], counts[undo.OutcomeFailed])
	if saved != nil {
		said += "; what was replaced is kept as " + saved.ID
	}
	if logged := logUndo(c, w, set, kept, by, said); logged != nil && err == nil {
		err = logged
	}
	if c.Bool("json") {
		out := struct {
			Set     string               `json:"set"`
			Results []undo.RestoreResult `json:"results"`
			Saved   string               `json:"replaced_kept_as,omitempty"`
		}{Set: kept.ID, Results: done}
		if saved != nil {
			out.Saved = saved.ID
		}
		return errors.Join(err, json.NewEncoder(w.Out).Encode(out))
	}
	for i := range done {
		switch r := &done[i]; r.Outcome {
		case undo.OutcomeRestoredUnderOtherName:
			fmt.Fprintf(w.Out, "%s is newer; restored as %s\n", term.EscapeControlAndInvisible(r.Path), term.EscapeControlAndInvisible(filepath.Base(r.RestoredUnderOtherPath)))
		case undo.OutcomeFailed:
			fmt.Fprintf(w.Out, "%s: %s\n", term.EscapeControlAndInvisible(r.Path), term.EscapeControlAndInvisible(r.Why))
		}
	}
	fmt.Fprintf(w.Out, "%s: %s.\n", kept.ID, said)
	if err == nil && counts[undo.OutcomeFailed] > 0 {
		err = fmt.Errorf("undo apply %s: some files were not restored; correct the causes above, and run it again", kept.ID)
	}
	return err
}

// confirmUndoReturningApproverName asks the person at the terminal to confirm that the files are restored, and
// returns that person's name.
func confirmUndoReturningApproverName(c *cli.Context, w *Environment, set *config.LoadedSettings, kept *undo.BackupSet, paths []string) (string, error) {
	why := fmt.Sprintf("restores %d files, %s", kept.EntryCount, formatSize(kept.BackedUpContentBytes))
	if len(paths) > 0 {
		why = "restores " + strings.Join(paths, ", ")
	}
	if c.Bool("force") {
		why += ", and replaces files that changed after the action"
	}
	payload, err := json.Marshal(map[string]any{"set": kept.ID, "of": kept.Description})
	if err != nil {
		return "", err
	}
	return askUserToAllowRefusal(c, w, set, &approve.Refusal{
		Ref: kept.ID, RefusedAtUnixSeconds: kept.At.Unix(), User: w.User, AgentHostName: kept.AgentHostName, Session: kept.Session, CWD: kept.CWD, ActionType: "undo", Payload: payload, RefusedActionText: "shield undo apply " + kept.ID, RefusalReason: why,
	})
}

// logUndo logs who restored what.
func logUndo(c *cli.Context, w *Environment, set *config.LoadedSettings, kept *undo.BackupSet, approverName, restoreOutcomeSummary string) error {
	file := auditFile(set, w)
	if file == "" {
		return nil
	}
	store, err := openStore(set, w)
	if err != nil {
		return err
	}
	defer store.Close()
	log, err := audit.Open(file, audit.Options{Clock: w.Now, HeadStore: store, Redactor: redact.New(set.Evaluator.FixedCanaryToken), MaxFileBytes: int64(set.Audit.MaxFileBytes)})
	if err != nil {
		return err
	}
	ticket := log.EncodeAndQueue(audit.Entry{
		Kind: audit.EntryKindFilesRestored, Session: kept.Session, CWD: kept.CWD, ActionHash: kept.Hash, Tier: shield.TierApprove, Confidence: 1, AnswerChannel: "tty", AnsweredBy: approverName,
		Caller: audit.Caller{ShieldSubcommand: "undo", User: w.User, PID: w.judgePID, ParentPID: w.verdictRequesterPID}, Reasoning: approverName + " restored " + kept.ID + ": " + restoreOutcomeSummary,
	})
	return errors.Join(ticket.Wait(c.Context), log.Close())
}

func pruneBackupSets(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	if err := requirePerson(w, "undo prune", personProofAtTerminal); err != nil {
		return err
	}
	set, store, err := undoStore(c, w)
	if err != nil {
		return err
	}
	keep := set.Undo.BackupRetention.AsTimeDuration()
	if c.Bool("all") {
		keep = 0
	}
	n, bytes, err := store.Prune(c.Context, keep)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return json.NewEncoder(w.Out).Encode(map[string]int64{"dropped": int64(n), "bytes": bytes})
	}
	_, err = fmt.Fprintf(w.Out, "Deleted %d sets, %s.\n", n, formatSize(bytes))
	return err
}

// undoStatus returns the line of "shield status" about the backup sets that "shield undo" can restore; "" if
// there are none.
func undoStatus(store *undo.Store) string {
	list, err := store.List()
	if err != nil || len(list) == 0 {
		return ""
	}
	var bytes int64
	for i := range list {
		bytes += list[i].BackedUpContentBytes
	}
	return fmt.Sprintf("undo               %d backup sets (%s); the newest is %s, made on %s\n", len(list), formatSize(bytes), list[0].ID, list[0].At.Local().Format(time.DateTime))
}
