package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

func doctorCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "check the installation and print fixes",
		Description: "Checks settings, workspace, policy, state folder, all tiers and the servers of MCP clients, and prints all findings, the most severe first: 'bad' must be fixed, 'warn' should be fixed, 'note' is information. The evaluator is asked for " +
			"its list of models, and sees no action. After the findings come the settings that differ from the defaults, each with its source; --all " +
			"prints every setting. Exits with 1 if a finding is bad.",
		Flags: append(commonJudgeFlags(),
			&cli.BoolFlag{Name: "all", Usage: "print the settings that have their default, too"},
			&cli.StringFlag{Name: "release", Usage: "verify signature and checksums of the downloaded release in `FOLDER`, or of one file"},
			&cli.StringFlag{Name: "key", Usage: "verify --release with the public key of minisign in `FILE`, in place of those in this program"},
			&cli.BoolFlag{Name: "repair-state", Usage: "replace a damaged or missing state file; every limit counts as used"},
			&cli.BoolFlag{Name: "repair-audit", Usage: "move a damaged audit log aside and continue in a new one"},
		),
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			if c.IsSet("release") {
				return verifyDownloadedRelease(c, w)
			}
			if c.IsSet("key") {
				return errors.New("doctor: --key is used only with --release; add --release FOLDER, or leave out --key")
			}
			return doctor(c, w)
		},
	}
}

// A findingSeverity says how urgent a finding of the doctor is.
type findingSeverity string

const (
	severityOK      findingSeverity = "ok"
	severityNote    findingSeverity = "note" // information
	severityWarning findingSeverity = "warn" // should be fixed
	severityBad     findingSeverity = "bad"  // must be fixed
)

// A doctorFinding is one line of the doctor's report.
type doctorFinding struct {
	severity       findingSeverity
	description    string
	fixInstruction string // the fix; "" if nothing must be done
}

// doctorFindings are the lines of a report.
type doctorFindings []doctorFinding

//go:noinline
func (f *doctorFindings) add(m findingSeverity, fix, format string, args ...any) {
	*f = append(*f, doctorFinding{m, fmt.Sprintf(format, args...), fix})
}

func doctor(c *cli.Context, w *Environment) error {
	src, err := settingsSources(c, w)
	if err != nil {
		return &statusError{statusFailure, err}
	}
	set, settingsErr := config.LoadDespiteErrors(src)
	if c.Bool("repair-state") || c.Bool("repair-audit") {
		if settingsErr != nil {
			return settingsErr
		}
		return repairState(c, set, w)
	}
	found := collectFindings(c.Context, set, settingsErr, w)
	order := []findingSeverity{severityBad, severityWarning, severityNote, severityOK}
	sorted.SortStableBy(found, func(a, b doctorFinding) int {
		return cmp.Compare(slices.Index(order, a.severity), slices.Index(order, b.severity))
	})
	bad := false
	for _, f := range found {
		bad = bad || f.severity == severityBad
		fmt.Fprintf(w.Out, "%-4s  %s\n", f.severity, f.description)
		if f.fixInstruction != "" {
			fmt.Fprintf(w.Out, "      %s\n", f.fixInstruction)
		}
	}
	if err := printSettings(set, w, c.Bool("all")); err != nil {
		return err
	}
	if bad {
		return &statusError{statusFailure, nil}
	}
	return nil
}

// collectFindings returns all findings. With invalid settings (settingsErr) it uses defaults instead, and does not
// touch the state.
func collectFindings(ctx context.Context, set *config.LoadedSettings, settingsErr error, w *Environment) []doctorFinding {
	var out doctorFindings
	for _, name := range set.Files {
		out.add(severityOK, "", "settings: %s", name)
	}
	if len(set.Files) == 0 {
		out.add(severityOK, "", "settings: no file, so the defaults apply")
	}
	if settingsErr != nil {
		for _, err := range unwrapYAMLFileErrors(settingsErr) {
			out.add(severityBad, "", "settings: %v", err)
		}
		out.add(severityNote, "", "correct the settings; until then every action is blocked, and the rest of this report uses the defaults")
	}
	cfg := pipelineConfigFromSettings(set, w, "doctor")
	cfg.StateDir = ""
	examinePlatform(&out, w.OS)
	examineContainerDetection(&out, set, w)
	examineWorkspace(&out, set, w)
	examineContainmentMechanisms(&out, set)
	examinePolicy(ctx, &out, set, cfg)
	out = append(out, examineClassifierModel(set, cfg, w))
	examineClassifierSkippedActionTypes(&out, set)
	examineEvaluator(ctx, &out, set, cfg.EvaluatorEndpoint())
	examineApproval(&out, set, cfg)
	examineHosts(ctx, &out, set, w)
	if !set.FailClosed {
		out.add(severityNote, "to block such actions, set fail_closed: true", "fail_closed is false: an action is allowed if the evaluator fails (%s)", set.SettingSourceFileAndLine("fail_closed"))
	}
	if settingsErr == nil {
		examineState(&out, set, w)
		examineGateway(&out, set, w)
	}
	return out
}

// examineState checks the files of the state folder.
func examineState(out *doctorFindings, set *config.LoadedSettings, w *Environment) {
	dir := stateDir(&set.Settings, w)
	if _, err := stateOptions(set, w); err != nil {
		out.add(severityBad, "correct the setting or the file; until then every action is blocked", "store: %v", err)
		return
	}
	switch _, err := loadVerdictSealKey(set, w); {
	case dir == "":
		out.add(severityBad, "set HOME, or name a folder with --state", "state folder: none")
		return
	case err != nil:
		out.add(severityBad, "remove the file at that path, or choose another folder with --state", "seal key: %v", err)
	default:
		out.add(severityOK, "", "seal key, with which shield signs verdicts: in %s", dir)
	}
	head, form, err := readAuditHeadAndEvaluatorFormat(set, w)
	if err != nil {
		out.add(severityBad, "run '"+state.RepairCommand+"' if the file is damaged or missing", "state file: %v", err)
		return
	}
	out.add(severityOK, "", "state file: in %s", dir)
	if form != "" {
		out.add(severityOK, "", "evaluator: the service accepts the answer format %s", form)
	}
	if examineStateStoreReadability(out, set, w) {
		examineSessions(out, set, w)
		examineModelApprovalAuthority(out, set, w)
	}
	if file := auditFile(set, w); file != "" {
		if err := audit.CheckLogMatchesStoredHead(file, head); err != nil {
			out.add(severityBad, "restore the log from a backup, or run '"+audit.RepairCommand+"' to move the damaged log aside", "audit log: %v", err)
		} else {
			out.add(severityOK, "", "audit log: %s", file)
		}
	}
}

// loadVerdictSealKey returns the seal key, and creates it on first use.
func loadVerdictSealKey(set *config.LoadedSettings, w *Environment) (key [verdict.KeySize]byte, err error) {
	store, err := openStore(set, w)
	if err != nil {
		return key, err
	}
	defer store.Close()
	return shield.LoadOrCreateSealKey(context.Background(), stateDir(&set.Settings, w), store)
}

// readAuditHeadAndEvaluatorFormat returns the last audit entry and the evaluator's answer format that the state file records.
// The state file must be valid.
func readAuditHeadAndEvaluatorFormat(set *config.LoadedSettings, w *Environment) (head audit.ChainHead, evaluatorAnswerFormat string, err error) {
	store, err := openStore(set, w)
	if err != nil {
		return audit.ChainHead{}, "", err
	}
	defer store.Close()
	seq, hash, err := store.AuditHead(context.Background())
	if err != nil {
		return audit.ChainHead{}, "", err
	}
	return audit.ChainHead{Seq: seq, Hash: hash}, shield.LearnedModelReplyFormat(context.Background(), pipelineConfigFromSettings(set, w, "doctor"), store), nil
}

// repairState replaces damaged state, and prints what it did. A replaced state file counts the
// limits (budget, rate and approvals) as used up.
func repairState(c *cli.Context, set *config.LoadedSettings, w *Environment) error {
	file := auditFile(set, w)
	if c.Bool("repair-state") {
		head, err := audit.ReadChainHead(file)
		// A damaged audit log is moved aside only after the state file was repaired.
		if err != nil && !errors.Is(err, audit.ErrLogChanged) {
			return err
		}
		opts, err := stateOptions(set, w)
		if err != nil {
			return err
		}
		done, err := state.RepairIfDamaged(c.Context, stateDir(&set.Settings, w), opts, head.Seq, head.Hash)
		if err != nil {
			return err
		}
		if done {
			fmt.Fprintln(w.Out, "state replaced; shield counts its limits as reached: no model calls until midnight, no approval questions for an hour")
		} else {
			fmt.Fprintln(w.Out, "the state file is valid; it was not changed")
		}
	}
	if c.Bool("repair-audit") {
		store, err := openStore(set, w)
		if err != nil {
			return err
		}
		defer store.Close()
		aside, err := audit.Repair(c.Context, file, audit.Options{Clock: w.Now, HeadStore: store, MaxFileBytes: int64(set.Audit.MaxFileBytes)})
		if err != nil {
			return err
		}
		if aside == "" {
			fmt.Fprintln(w.Out, "the audit log is intact; it was not changed")
		} else {
			fmt.Fprintf(w.Out, "damaged audit log moved to %s; the new audit log continues after the last entry that the state file records\n", aside)
		}
	}
	return nil
}

// stateOptions returns the options of the state file.
func stateOptions(set *config.LoadedSettings, w *Environment) (state.Options, error) {
	return shield.StateOptions(pipelineConfigFromSettings(set, w, "doctor"), w.Now)
}

// openStore opens the state file.
func openStore(set *config.LoadedSettings, w *Environment) (*state.Store, error) {
	opts, err := stateOptions(set, w)
	if err != nil {
		return nil, err
	}
	return state.Open(stateDir(&set.Settings, w), opts)
}

// printSettings prints the settings in force and where each was set. It prints settings that have
// their default value only if the parameter all is true.
func printSettings(set *config.LoadedSettings, w *Environment, all bool) error {
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', 0)
	defaults := 0
	fmt.Fprintln(t)
	for _, name := range config.SettingNames() {
		origin := set.OriginBySetting[name]
		if origin == "" {
			if defaults++; !all {
				continue
			}
			origin = "default"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", name, set.Value(name), origin)
	}
	if !all {
		fmt.Fprintf(t, "%d settings have their default; 'shield doctor --all' prints them\n", defaults)
	}
	return t.Flush()
}
