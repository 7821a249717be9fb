package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/audit"
)

// exportSignedAuditSegment exports a part of the log that can be verified without the rest.
func exportSignedAuditSegment(c *cli.Context, w *Environment) error {
	if c.Bool("follow") {
		return errors.New("audit export: --follow cannot be combined with --format segment; leave one out")
	}
	if (c.String("key") == "") == (c.String("checkpoint") == "") {
		return errors.New("audit export: --format segment needs either --key FILE, to sign the last entry now, or --checkpoint FILE, an earlier signature")
	}
	file, err := auditLogPath(c, w)
	if err != nil {
		return err
	}
	var point audit.Checkpoint
	if name := c.String("checkpoint"); name != "" {
		point, err = audit.LoadCheckpoint(name)
	} else {
		point, err = signAuditCheckpoint(c, w, file, c.String("key"))
	}
	if err != nil {
		return err
	}
	log, err := audit.OpenAllLogFiles(file)
	if err != nil {
		return err
	}
	defer log.Close()
	return audit.WriteSegment(w.Out, log, c.Uint64("from"), point)
}

// verifySignedAuditSegment verifies an exported segment with the public key. It reads no settings and no log.
func verifySignedAuditSegment(c *cli.Context, w *Environment) error {
	for _, other := range []string{"file", "checkpoint", "state", "config"} {
		if c.IsSet(other) {
			return fmt.Errorf("audit verify: --%s cannot be combined with --segment, which contains its checkpoint; leave it out", other)
		}
	}
	if c.String("key") == "" {
		return errors.New("audit verify: --segment needs --key FILE, the public key")
	}
	name := c.String("segment")
	key, err := audit.LoadPublicKey(c.String("key"))
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	report, err := audit.VerifySegment(f, key)
	if err != nil {
		return &statusError{statusBlock, fmt.Errorf("%s: %w", name, err)}
	}
	switch {
	case c.Bool("json"):
		err = json.NewEncoder(w.Out).Encode(report)
	case !report.OK():
		_, err = fmt.Fprintf(w.Out, "%s: %s\n      do not trust the segment: ask the person who sent it for a new export, and compare both\n", name, report.Damage)
	default:
		_, err = fmt.Fprintf(w.Out, "%s: entries %d to %d were not changed, removed, inserted or moved after they were signed at %s; entries before %[2]d and after %[3]d are not in this file\n",
			name, report.FirstSeq, report.Head.Seq, report.Checkpoint.Time.Format("2006-01-02 15:04:05 MST"))
	}
	if err == nil && !report.OK() {
		return &statusError{statusBlock, nil}
	}
	return err
}
