package cmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/report"
)

// auditTailPollInterval is how often audit tail --follow looks for new entries.
const auditTailPollInterval = 250 * time.Millisecond

func auditCommand(w *Environment) *cli.Command {
	with := func(more ...cli.Flag) []cli.Flag {
		return append([]cli.Flag{configFlag(), stateFlag(), &cli.StringFlag{Name: "file", Usage: "read the log `FILE` instead of the configured one"}}, more...)
	}
	return &cli.Command{
		Name:        "audit",
		Usage:       "check and search the audit log",
		Description: "Every verdict is an entry in the log, and each entry holds the hash of the one before. verify finds the first line that was changed, removed, inserted, moved or truncated, and exits with 2 if there is one.",
		Subcommands: []*cli.Command{
			{
				Name: "verify", Usage: "find the first line that was changed, removed, inserted, moved or truncated",
				Flags: with(
					&cli.StringFlag{Name: "checkpoint", Usage: "compare the log with the signed head in `FILE`"},
					&cli.StringFlag{Name: "segment", Usage: "verify the exported segment in `FILE` with --key alone, without a log"},
					&cli.StringFlag{Name: "key", Usage: "check the checkpoint with the public key in `FILE`"},
					&cli.BoolFlag{Name: "json", Usage: "write JSON"},
				),
				Action: func(c *cli.Context) error { return verifyAudit(c, w) },
			},
			{
				Name: "tail", Usage: "print the last entries",
				Flags: with(
					&cli.IntFlag{Name: "lines", Aliases: []string{"n"}, Value: 10, Usage: "print the last `N` entries"},
					&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep printing new entries"},
					&cli.StringFlag{Name: "format", Value: "auto", Usage: "print `auto|table|json`: auto is a table on a terminal, and the entries as they are in a pipe"},
				),
				Action: func(c *cli.Context) error { return tailAudit(c, w) },
			},
			{
				Name: "query", Usage: "run a jq program over each entry", ArgsUsage: "PROGRAM", Flags: with(),
				Action: func(c *cli.Context) error { return queryAudit(c, w) },
			},
			{
				Name: "export", Usage: "export the log to spreadsheets, SIEM systems and third parties",
				Description: "The format segment is for someone who has neither the log nor this machine: entries as they are in the log, after a checkpoint that signs the last one. 'shield audit verify --segment FILE --key FILE.pub' verifies it with the public key alone.",
				Flags: with(
					&cli.StringFlag{Name: "format", Value: "jsonl", Usage: "write `jsonl|csv|ocsf|cef|segment`"},
					&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep writing new entries"},
					&cli.Uint64Flag{Name: "from", Value: 1, Usage: "start a segment with entry `N`"},
					&cli.StringFlag{Name: "key", Usage: "end a segment with the last entry, and sign it with the ed25519 key in `FILE`"},
					&cli.StringFlag{Name: "checkpoint", Usage: "end a segment with the signed head in `FILE`"},
				),
				Action: func(c *cli.Context) error { return exportAudit(c, w) },
			},
			{
				Name: "report", Usage: "write an HTML report: decisions over time, by rule, caller and session",
				Description: "Writes one HTML file without scripts and external resources to standard output. It shows whether the log was changed; how many actions were allowed, blocked, approved and denied by day, rule, hook and session; the rules whose questions were mostly approved, with the exceptions that 'shield policy suggest' proposes; and the last actions that were not allowed. Credentials are redacted as in the log.",
				Flags: append(commonJudgeFlags(),
					&cli.StringFlag{Name: "file", Usage: "read the log `FILE` instead of the configured one"},
					&cli.IntFlag{Name: "days", Value: 30, Usage: "count the last `N` days; 0 counts all"}),
				Action: func(c *cli.Context) error { return writeAuditReport(c, w) },
			},
			{
				Name: "checkpoint", Usage: "write the signed head of the log; keep it on another machine",
				Flags: with(
					&cli.StringFlag{Name: "key", Usage: "sign with the ed25519 key in `FILE`"},
					&cli.BoolFlag{Name: "generate", Usage: "create the key first, and its public key beside it"},
				),
				Action: func(c *cli.Context) error { return checkpointAudit(c, w) },
			},
		},
	}
}

// auditLogPath returns the path of the log that the flags or the settings name.
func auditLogPath(c *cli.Context, w *Environment) (string, error) {
	if file := c.String("file"); file != "" {
		return file, nil
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return "", err
	}
	file := auditFile(set, w)
	if file == "" {
		return "", errors.New("audit: the log is switched off (audit.enabled: false); name one with --file")
	}
	return file, nil
}

// openAudit opens the log for reading.
func openAudit(c *cli.Context, w *Environment) (*audit.Reader, error) {
	file, err := auditLogPath(c, w)
	if err != nil {
		return nil, err
	}
	return audit.OpenAllLogFiles(file)
}

func verifyAudit(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	if c.IsSet("segment") {
		return verifySignedAuditSegment(c, w)
	}
	file, err := auditLogPath(c, w)
	if err != nil {
		return err
	}
	report, err := compareAuditWithHead(c, w, file)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = json.NewEncoder(w.Out).Encode(report)
	} else {
		_, err = fmt.Fprintln(w.Out, describeVerification(file, &report))
		if err == nil && !report.OK() {
			_, err = fmt.Fprintf(w.Out, "      do not trust the entries from there on: keep the file as evidence, and compare it with a backup; to go on with a new log, run '%s'\n", audit.RepairCommand)
		}
	}
	if err == nil && !report.OK() {
		return &statusError{statusBlock, nil}
	}
	return err
}

// compareAuditWithHead returns the result of verifying a log, compared with its last known entry.
func compareAuditWithHead(c *cli.Context, w *Environment, file string) (audit.VerificationReport, error) {
	checked := c.String("checkpoint") != ""
	if !checked && c.String("file") == "" {
		files, err := audit.LogFilePaths(file)
		if err != nil {
			return audit.VerificationReport{}, err
		}
		for _, name := range files {
			if info, err := os.Lstat(name); err == nil && owner.CheckSingleLink(info) != nil {
				return audit.VerificationReport{}, fmt.Errorf("%s: %w", name, owner.CheckSingleLink(info))
			}
		}
	}
	for tries := 0; ; tries++ {
		kept, gaps, err := storedAuditHead(c, w)
		if err != nil {
			return audit.VerificationReport{}, err
		}
		report, err := audit.VerifyFile(file, kept, gaps)
		if checked {
			report.EntriesAfterStoredHead = 0
		}
		if err != nil || report.EntriesAfterStoredHead == 0 || tries == 3 { // else verify again: another process may have appended entries during the check
			return report, err
		}
	}
}

// describeVerification describes the result of a verification.
func describeVerification(file string, r *audit.VerificationReport) string {
	entries := fmt.Sprintf("%s: %d entries", file, r.CompleteLineCount)
	if r.FileCount > 1 {
		entries += fmt.Sprintf(" in %d files", r.FileCount)
	}
	switch {
	case !r.OK():
		return cmp.Or(r.Damage.File, file) + ": " + r.Damage.String()
	case len(r.MissingFiles) > 0:
		return entries + "; the hash chain is intact, but damaged files that were moved aside are missing: " + strings.Join(r.MissingFiles, ", ") + "; restore them from a backup if you need their entries"
	case r.EntriesAfterStoredHead > 0:
		return entries + fmt.Sprintf("; the hash chain is intact, but the state file does not record the last %d: shield was killed after it wrote them, or another program added them", r.EntriesAfterStoredHead)
	case r.UnverifiableEntriesNote != "":
		return entries + "; the hash chain is intact, but the log alone does not show " + r.UnverifiableEntriesNote + "; to check that, run 'shield audit verify --checkpoint FILE'"
	default:
		return entries + "; no entry was changed, removed, inserted or moved, and the log was not truncated"
	}
}

// storedAuditHead returns the last known entry (head) of the log from a checkpoint or, for the configured
// log, from the state file, together with the known gaps.
func storedAuditHead(c *cli.Context, w *Environment) (head *audit.ChainHead, gaps map[uint64]string, err error) {
	if name := c.String("checkpoint"); name != "" {
		point, err := audit.LoadCheckpoint(name)
		if err != nil {
			return nil, nil, err
		}
		if c.String("key") == "" {
			return nil, nil, errors.New("audit verify: --checkpoint needs --key FILE, the public key")
		}
		key, err := audit.LoadPublicKey(c.String("key"))
		if err != nil {
			return nil, nil, err
		}
		if err := point.VerifySignature(key); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		return &point.ChainHead, nil, nil
	}
	if c.String("file") != "" {
		return nil, nil, nil
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, nil, err
	}
	store, err := openStore(set, w)
	if err != nil {
		return nil, nil, err
	}
	defer store.Close()
	seq, hash, err := store.AuditHead(c.Context)
	if err == nil {
		gaps, err = store.LogGaps(c.Context)
	}
	return &audit.ChainHead{Seq: seq, Hash: hash}, gaps, err
}

func queryAudit(c *cli.Context, w *Environment) error {
	args, err := operands(c, "PROGRAM")
	if err != nil {
		return err
	}
	f, err := openAudit(c, w)
	if err != nil {
		return err
	}
	defer f.Close()
	skipped, err := audit.Query(c.Context, f, args[0], func(line []byte) error {
		_, err := fmt.Fprintf(w.Out, "%s\n", line)
		return err
	})
	return warnSkippedAuditLines(w, skipped, err)
}

func exportAudit(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	format := c.String("format")
	if format == "segment" {
		return exportSignedAuditSegment(c, w)
	}
	for _, only := range []string{"from", "key", "checkpoint"} {
		if c.IsSet(only) {
			return fmt.Errorf("audit export: --%s needs --format segment; add it, or leave --%[1]s out", only)
		}
	}
	known := strings.Join(audit.ExportFormats(), ", ")
	if !strings.Contains(", "+known+",", ", "+format+",") {
		return fmt.Errorf("audit export: --format %q is unknown; use one of %s, segment", shortenTo80Characters(format), known)
	}
	var log io.ReadCloser
	var err error
	if c.Bool("follow") {
		log, err = openFollowedAuditLog(c, w)
	} else {
		log, err = openAudit(c, w)
	}
	if err != nil {
		return err
	}
	defer log.Close()
	skipped, err := audit.Export(w.Out, log, format, version())
	return warnSkippedAuditLines(w, skipped, err)
}

// openFollowedAuditLog returns a reader of the whole log that continues with what is appended later.
func openFollowedAuditLog(c *cli.Context, w *Environment) (io.ReadCloser, error) {
	file, err := auditLogPath(c, w)
	if err != nil {
		return nil, err
	}
	r, lines := io.Pipe()
	go func() {
		lines.CloseWithError(audit.Tail(c.Context, lines, file, math.MaxInt, true, auditTailPollInterval))
	}()
	return r, nil
}

func warnSkippedAuditLines(w *Environment, skippedLineCount int, returnedErr error) error {
	if skippedLineCount > 0 {
		fmt.Fprintf(w.Err, "shield: skipped %d lines that are not entries; run 'shield audit verify'\n", skippedLineCount)
	}
	return returnedErr
}

func checkpointAudit(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	name := c.String("key")
	if name == "" {
		return errors.New("audit checkpoint: --key FILE is missing; make a key with --generate")
	}
	file, err := auditLogPath(c, w)
	if err != nil {
		return err
	}
	if c.Bool("generate") {
		if _, err := audit.GenerateSigningKey(name); err != nil {
			return err
		}
	}
	point, err := signAuditCheckpoint(c, w, file, name)
	if err != nil {
		return err
	}
	return json.NewEncoder(w.Out).Encode(point)
}

// signAuditCheckpoint returns a signed checkpoint of the log at file, which must verify.
func signAuditCheckpoint(c *cli.Context, w *Environment, file, key string) (audit.Checkpoint, error) {
	private, err := audit.LoadSigningKey(key)
	if err != nil {
		return audit.Checkpoint{}, err
	}
	report, err := compareAuditWithHead(c, w, file)
	if err != nil {
		return audit.Checkpoint{}, err
	}
	if !report.OK() {
		return audit.Checkpoint{}, &statusError{statusBlock, fmt.Errorf("audit %s: %s: %s", c.Command.Name, file, report.Damage)}
	}
	return audit.Sign(private, report.Head, w.Now()), nil
}

// writeAuditReport writes the HTML report of the log.
func writeAuditReport(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	var since time.Time
	switch days := c.Int("days"); {
	case days < 0:
		return fmt.Errorf("audit report: --days %d is less than 0; use 0 for all days", days)
	case days > 0:
		since = w.Now().AddDate(0, 0, -days)
	}
	file, err := auditLogPath(c, w)
	if err != nil {
		return err
	}
	found, err := compareAuditWithHead(c, w, file)
	if err != nil {
		return err
	}
	log, err := openAudit(c, w)
	if err != nil {
		return err
	}
	defer log.Close()
	summary, skipped, err := audit.Summarize(log, since)
	if err := warnSkippedAuditLines(w, skipped, err); err != nil {
		return err
	}
	page := report.AuditPage{Summary: summary, ChainIntact: found.OK(), ChainVerificationText: describeVerification(file, &found)}
	if page.ChainIntact {
		if page.SuggestedPolicyYAML, _, err = buildSuggestedPolicy(c, w, minApprovalsPerException); err != nil {
			return err
		}
	}
	return report.WriteAuditPageHTML(w.Out, &page)
}
