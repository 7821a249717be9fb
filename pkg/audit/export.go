package audit

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// exportFormats are the output formats of [Export].
var exportFormats = [...]string{"jsonl", "csv", "ocsf", "cef"}

// ExportFormats returns the names of the formats that [Export] knows.
func ExportFormats() []string { return slices.Clone(exportFormats[:]) }

// Export writes a log in another format, entry by entry: "jsonl" writes the lines with nonprinting characters
// escaped, "csv" a table for spreadsheets, "ocsf" findings of the Open Cybersecurity Schema Framework as JSON
// Lines, and "cef" lines in the Common Event Format. version is shield's version, for "ocsf" and "cef". Lines
// that are not entries are skipped and counted.
func Export(w io.Writer, r io.Reader, format, version string) (skipped int, err error) {
	row := func(line []byte, _ *Entry) error {
		_, err := w.Write(append(escapeNonprinting(line), '\n'))
		return err
	}
	table := csv.NewWriter(w)
	switch format {
	case "jsonl":
	case "csv":
		if err := table.Write(csvColumns[:]); err != nil {
			return 0, err
		}
		row = func(_ []byte, e *Entry) error {
			_ = table.Write(csvCells(e)) // the error is returned by the next write
			table.Flush()
			return table.Error()
		}
	case "ocsf":
		row = ocsfEntryWriter(w, version)
	case "cef":
		row = cefEntryWriter(w, version)
	default:
		return 0, fmt.Errorf("export audit log: unknown format %q; known are %s", format, strings.Join(exportFormats[:], ", "))
	}
	skipped, err = forEachEntry(r, row)
	table.Flush()
	return skipped, cmp.Or(err, table.Error())
}

// forEachEntry calls fn with the lines and entries of a log. Lines that are not entries are
// skipped and counted.
func forEachEntry(r io.Reader, fn func(line []byte, e *Entry) error) (skipped int, err error) {
	lines := newLineReader(r)
	for {
		line, err := lines.nextLine()
		if errors.Is(err, io.EOF) {
			return skipped, nil
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return skipped, fmt.Errorf("read audit log: %w", err)
		}
		var e Entry
		if err != nil || json.Unmarshal(line, &e) != nil {
			skipped++
			continue
		}
		if err := fn(line, &e); err != nil {
			return skipped, err
		}
	}
}

var csvColumns = [...]string{
	"seq", "time", "kind", "id", "session", "type", "decision", "tier", "confidence", "rule", "reasoning", "degraded", "error",
	"action_hash", "payload", "channel", "by", "policy", "rules", "model", "config", "prompt", "latency_us", "command", "user", "pid", "cwd",
}

func csvCells(e *Entry) []string {
	text := ""
	if e.Payload != nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if enc.Encode(e.Payload) == nil {
			text = string(escapeNonprinting(bytes.TrimSpace(b.Bytes())))
		}
	}
	decision := ""
	if e.Decision != 0 {
		decision = e.Decision.String()
	}
	f := e.Fingerprints
	out := []string{
		strconv.FormatUint(e.Seq, 10), e.Time.Format("2006-01-02T15:04:05.000Z"), e.Kind, e.ActionID, e.Session, e.ActionType, decision,
		strconv.Itoa(e.Tier), strconv.FormatFloat(e.Confidence, 'g', -1, 64), e.Rule, e.Reasoning, strconv.FormatBool(e.IsAllowedDespiteFailure), e.Error,
		e.ActionHash, text, e.AnswerChannel, e.AnsweredBy, f.Policy, f.Rules, f.Model, f.Config, f.Prompt, strconv.FormatInt(e.VerdictLatencyMicroseconds, 10),
		e.Caller.ShieldSubcommand, e.Caller.User, strconv.Itoa(e.Caller.PID), e.CWD,
	}
	for i, c := range out {
		out[i] = escapeFormula(c)
	}
	return out
}

// escapeFormula keeps a spreadsheet from interpreting text as a formula (CSV injection).
func escapeFormula(s string) string {
	t := strings.TrimLeft(s, " ")
	if t != "" && strings.ContainsRune("=+-@\t\r\n|%", rune(t[0])) {
		s = "'" + s
	}
	return string(escapeNonprinting([]byte(s)))
}
