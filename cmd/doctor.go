package cmd

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

func doctorCommand(w *World) *cli.Command {
	return &cli.Command{
		Name:        "doctor",
		Usage:       "say what is missing, and the command or setting that mends it",
		Description: "Checks settings, policy, state folder and tiers, then prints the settings in force and where each came from. Ends with 1 if something has to be mended.",
		Flags: append(placeFlags(),
			&cli.BoolFlag{Name: "repair-state", Usage: "replace a damaged or missing state file; every limit counts as used"},
			&cli.BoolFlag{Name: "repair-audit", Usage: "put a damaged audit log aside and go on in a new one"},
		),
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			return doctor(c, w)
		},
	}
}

// A finding is one line of the doctor's report.
type finding struct {
	ok   bool
	what string
	mend string // what to do; "" if nothing has to be done
}

func doctor(c *cli.Context, w *World) error {
	set, err := settings(c, w)
	if err != nil {
		fmt.Fprintf(w.Out, "bad   settings: %v\n", err)
		return &statusError{statusBroken, nil}
	}
	if c.Bool("repair-state") || c.Bool("repair-audit") {
		return repair(c, set, w)
	}
	bad := false
	for _, f := range examine(set, w) {
		mark := "ok  "
		if !f.ok {
			mark, bad = "bad ", true
		}
		fmt.Fprintf(w.Out, "%s  %s\n", mark, f.what)
		if f.mend != "" {
			fmt.Fprintf(w.Out, "      %s\n", f.mend)
		}
	}
	if err := printSettings(set, w); err != nil {
		return err
	}
	if bad {
		return &statusError{statusBroken, nil}
	}
	return nil
}

func examine(set *config.Loaded, w *World) []finding {
	var out []finding
	add := func(ok bool, mend, format string, args ...any) {
		if ok {
			mend = ""
		}
		out = append(out, finding{ok, fmt.Sprintf(format, args...), mend})
	}
	for _, name := range set.Files {
		add(true, "", "settings: %s", name)
	}
	if len(set.Files) == 0 {
		add(true, "", "settings: no file, the defaults are in force")
	}
	dir := stateDir(&set.Settings, w)
	cfg := shieldConfig(set, w, "doctor")
	cfg.StateDir = ""
	model := cfg
	cfg.Classifier = shield.Classifier{}
	if _, err := shield.NewPipeline(cfg); err != nil {
		add(false, "mend it, or choose another with --policy or --root", "policy and workspace: %v", err)
	} else {
		add(true, "", "policy: %s", set.Policy)
	}
	out = append(out, examineModel(model, w))
	switch _, err := verdict.LoadKey(dir); {
	case dir == "":
		add(false, "set HOME, or name a folder with --state", "state folder: none")
	case err != nil:
		add(false, "remove what is in the way, or choose another folder with --state", "seal key: %v", err)
	default:
		add(true, "", "seal key: in %s", dir)
	}
	if dir == "" {
		return out
	}
	head, form, err := stateHolds(set, w)
	if err != nil {
		add(false, "run '"+state.RepairCommand+"' if the file is damaged or missing", "state file: %v", err)
		return out
	}
	add(true, "", "state file: in %s", dir)
	if form != "" {
		add(true, "", "evaluator: was found to understand answers of the form %s", form)
	}
	if file := auditFile(set, w); file != "" {
		if err := audit.Check(file, head); err != nil {
			add(false, "run '"+audit.RepairCommand+"' if it cannot be brought back", "audit log: %v", err)
		} else {
			add(true, "", "audit log: %s", file)
		}
	}
	return out
}

// stateHolds returns what the state file keeps of the audit log, its head, and
// of the evaluator, the form of answer that was learned. It takes a state file
// that can be relied on.
func stateHolds(set *config.Loaded, w *World) (head audit.Head, form string, err error) {
	store, err := openStore(set, w)
	if err != nil {
		return audit.Head{}, "", err
	}
	defer store.Close()
	seq, hash, err := store.Head(context.Background())
	if err != nil {
		return audit.Head{}, "", err
	}
	return audit.Head{Seq: seq, Hash: hash}, shield.LearnedForm(context.Background(), shieldConfig(set, w, "doctor"), store), nil
}

// repair mends what can only be mended by forgetting, and says what it did.
func repair(c *cli.Context, set *config.Loaded, w *World) error {
	file := auditFile(set, w)
	if c.Bool("repair-state") {
		head, err := audit.LastHead(file)
		// A log that is damaged as well is put aside next, when the state file
		// can be relied on again.
		if err != nil && !errors.Is(err, audit.ErrChanged) {
			return err
		}
		done, err := state.Repair(c.Context, stateDir(&set.Settings, w), stateOptions(set, w), head.Seq, head.Hash)
		if err != nil {
			return err
		}
		if done {
			fmt.Fprintln(w.Out, "state file replaced; budget, rate and approvals count as used until they refill")
		} else {
			fmt.Fprintln(w.Out, "the state file can be read and was left alone")
		}
	}
	if c.Bool("repair-audit") {
		store, err := openStore(set, w)
		if err != nil {
			return err
		}
		defer store.Close()
		aside, err := audit.Repair(c.Context, file, audit.Options{Clock: w.Now, Heads: store})
		if err != nil {
			return err
		}
		if aside == "" {
			fmt.Fprintln(w.Out, "the audit log is whole and was left alone")
		} else {
			fmt.Fprintf(w.Out, "damaged audit log kept as %s; a new one goes on from its head\n", aside)
		}
	}
	return nil
}

// stateOptions returns how the state file is kept.
func stateOptions(set *config.Loaded, w *World) state.Options {
	return shield.StateOptions(shieldConfig(set, w, "doctor"), w.Now)
}

// openStore opens the state file.
func openStore(set *config.Loaded, w *World) (*state.Store, error) {
	return state.Open(stateDir(&set.Settings, w), stateOptions(set, w))
}

// printSettings prints every setting and where it comes from.
func printSettings(set *config.Loaded, w *World) error {
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t)
	for _, name := range config.Names() {
		origin := set.Origin[name]
		if origin == "" {
			origin = "default"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", name, set.Value(name), origin)
	}
	return t.Flush()
}
