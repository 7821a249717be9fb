package cmd

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/verdict"
)

// tailAudit prints the last entries of the log: one readable line per entry on a terminal, the raw
// entries in a pipe.
func tailAudit(c *cli.Context, w *Environment) error {
	format := c.String("format")
	if !slices.Contains([]string{"auto", "table", "json"}, format) {
		return fmt.Errorf("audit tail: --format: %q is not one of auto, table, json", shortenTo80Characters(format))
	}
	file, err := auditLogPath(c, w)
	if err != nil {
		return err
	}
	out := w.Out
	if format == "table" || format == "auto" && isTerminal(w.Out) {
		style := report.Style{Color: usesColour(c, w, w.Out)}
		if isTerminal(w.Out) {
			style.Columns = terminalWidth(w.Out)
		}
		out = &auditEntryPrinter{environment: w, style: style}
	}
	return audit.Tail(c.Context, out, file, c.Int("lines"), c.Bool("follow"), auditTailPollInterval)
}

// An auditEntryPrinter is a writer that turns each line of a log into a line for people.
type auditEntryPrinter struct {
	environment *Environment
	style       report.Style
	partialLine []byte // the start of an incomplete line
}

// maxAuditEntryBytes bounds an incomplete line, in bytes.
const maxAuditEntryBytes = 64 << 20

func (t *auditEntryPrinter) Write(text []byte) (int, error) {
	t.partialLine = append(t.partialLine, text...)
	for {
		line, rest, ended := bytes.Cut(t.partialLine, []byte("\n"))
		if !ended {
			if len(t.partialLine) > maxAuditEntryBytes {
				return 0, fmt.Errorf("audit tail: an entry of the log is larger than %d MiB; run 'shield audit verify'", maxAuditEntryBytes>>20)
			}
			return len(text), nil
		}
		err := t.writeEntry(line)
		if t.partialLine = rest; err != nil {
			return 0, err
		}
	}
}

// writeEntry writes one entry as a line of the table, or a note that the line is not an entry.
func (t *auditEntryPrinter) writeEntry(line []byte) error {
	var e audit.Entry
	if err := json.Unmarshal(line, &e); err != nil {
		_, err := fmt.Fprintln(t.environment.Out, "(not an entry; run 'shield audit verify')")
		return err
	}
	at := e.Time.In(t.environment.Now().Location()).Format("01-02 15:04:05")
	if _, err := fmt.Fprint(t.environment.Out, at, "  "); err != nil {
		return err
	}
	if e.Decision == verdict.NoDecision {
		_, err := fmt.Fprintln(t.environment.Out, e.Kind)
		return err
	}
	fields, _ := e.Payload.(map[string]any)
	what := actionHeadline(e.ActionType, func(field string) string { text, _ := fields[field].(string); return text })
	style := t.style
	if style.Columns > 0 {
		style.Columns = max(style.Columns-len(at)-2, 40)
	}
	return report.WriteVerdictLine(t.environment.Out, report.JudgedAction{ActionText: what, Verdict: &verdict.Verdict{Decision: e.Decision, Rule: e.Rule, Reasoning: e.Reasoning, ErrorCode: e.Error}}, style)
}
