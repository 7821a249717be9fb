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
		Name:  "doctor",
		Usage: "say what is missing, and the command or setting that mends it",
		Description: "Checks settings, workspace, policy, state folder and all tiers, and prints all findings at once: 'bad' has to be mended, 'warn' should be, 'note' is worth knowing. " +
			"Of an evaluator it asks for the list of models, once and for a few seconds at most, and shows it no action. " +
			"Then it prints the settings in force and where each came from. Ends with 1 if something has to be mended.",
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

// A mark says how much a finding matters.
type mark string

const (
	fine  mark = "ok"
	note  mark = "note" // worth knowing
	doubt mark = "warn" // should be mended
	wrong mark = "bad"  // has to be mended
)

// A finding is one line of the doctor's report.
type finding struct {
	mark mark
	what string
	mend string // what to do; "" if nothing has to be done
}

// findings are the lines of a report.
type findings []finding

func (f *findings) add(m mark, mend, format string, args ...any) {
	*f = append(*f, finding{m, fmt.Sprintf(format, args...), mend})
}

func doctor(c *cli.Context, w *World) error {
	src, err := settingsSources(c, w)
	if err != nil {
		return &statusError{statusBroken, err}
	}
	set, settingsErr := config.Inspect(src)
	if c.Bool("repair-state") || c.Bool("repair-audit") {
		if settingsErr != nil {
			return settingsErr
		}
		return repair(c, set, w)
	}
	bad := false
	for _, f := range examine(c.Context, set, settingsErr, w) {
		bad = bad || f.mark == wrong
		fmt.Fprintf(w.Out, "%-4s  %s\n", f.mark, f.what)
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

// examine returns all findings. With settings that are wrong, settingsErr, it
// goes on with defaults in their place, but leaves the state alone.
func examine(ctx context.Context, set *config.Loaded, settingsErr error, w *World) []finding {
	var out findings
	for _, name := range set.Files {
		out.add(fine, "", "settings: %s", name)
	}
	if len(set.Files) == 0 {
		out.add(fine, "", "settings: no file, the defaults are in force")
	}
	if settingsErr != nil {
		for _, err := range eachOf(settingsErr) {
			out.add(wrong, "", "settings: %v", err)
		}
		out.add(note, "", "until they are mended every action is blocked; what follows holds for defaults in their place")
	}
	cfg := shieldConfig(set, w, "doctor")
	cfg.StateDir = ""
	examineWorkspace(&out, set, w)
	examinePolicy(ctx, &out, set, cfg)
	out = append(out, examineModel(set, cfg, w))
	examineSkipTypes(&out, set)
	examineEvaluator(ctx, &out, set, cfg.Endpoint())
	examineApproval(&out, set, cfg)
	if !set.FailClosed {
		out.add(note, "", "fail_closed is false: where Tier 2 fails, actions are allowed (%s)", set.Where("fail_closed"))
	}
	if settingsErr == nil {
		examineState(&out, set, w)
	}
	return out
}

// examineState looks at what the state folder holds.
func examineState(out *findings, set *config.Loaded, w *World) {
	dir := stateDir(&set.Settings, w)
	switch _, err := sealKey(set, w); {
	case dir == "":
		out.add(wrong, "set HOME, or name a folder with --state", "state folder: none")
		return
	case err != nil:
		out.add(wrong, "remove what is in the way, or choose another folder with --state", "seal key: %v", err)
	default:
		out.add(fine, "", "seal key: in %s", dir)
	}
	head, form, err := stateHolds(set, w)
	if err != nil {
		out.add(wrong, "run '"+state.RepairCommand+"' if the file is damaged or missing", "state file: %v", err)
		return
	}
	out.add(fine, "", "state file: in %s", dir)
	if form != "" {
		out.add(fine, "", "evaluator: was found to understand answers of the form %s", form)
	}
	if file := auditFile(set, w); file != "" {
		if err := audit.Check(file, head); err != nil {
			out.add(wrong, "run '"+audit.RepairCommand+"' if it cannot be brought back", "audit log: %v", err)
		} else {
			out.add(fine, "", "audit log: %s", file)
		}
	}
}

// sealKey returns the key of seals, and creates it on first use.
func sealKey(set *config.Loaded, w *World) (key [verdict.KeySize]byte, err error) {
	store, err := openStore(set, w)
	if err != nil {
		return key, err
	}
	defer store.Close()
	return shield.SealKey(context.Background(), stateDir(&set.Settings, w), store)
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
		aside, err := audit.Repair(c.Context, file, audit.Options{Clock: w.Now, Heads: store, MaxBytes: int64(set.Audit.MaxBytes)})
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
