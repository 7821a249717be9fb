package cmd

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/sanitize"
)

func sanitizeCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:  "sanitize",
		Usage: "find injected instructions and secrets in tool results, before an agent reads them",
		Description: "Reads objects with type, payload and result from standard input: an action as for shield run, and its result, a text or any JSON value. Prints a JSON line for each with its findings: hidden text, " +
			"instructions to the agent (prompt injection), links that exfiltrate data, credentials. With --mode clean, wrap or block it also prints the " +
			"result for the agent; without --mode, the setting sanitize.mode decides. With the setting sanitize.evaluator the evaluator reads each " +
			"result, too. Names of members are scanned, and changed only in mode block. A result without findings can still contain an injection. After " +
			"64 unreadable records in a row, one line counts the rest. " +
			"The exit status is 0 if nothing was found in any result, 3 if there are findings, and 2 if a result is withheld or could not be read.",
		Flags: []cli.Flag{
			configFlag(),
			&cli.StringFlag{Name: "mode", DefaultText: "\"flag\" if no mode is configured", Usage: "print results by `flag|clean|wrap|block`: unchanged; without hidden text and credentials; also marked as data; or withheld where something was found"},
			&cli.IntFlag{Name: "max-bytes", Value: sanitize.MaxTotalTextBytes, Usage: "refuse records larger than `N` bytes"},
		},
		Action: func(c *cli.Context) error { return sanitizeToolResults(c, w) },
	}
}

// sanitizeToolResults examines the results on standard input.
func sanitizeToolResults(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	maxBytes := c.Int("max-bytes")
	if maxBytes < 1<<10 || maxBytes > 1<<30 {
		return fmt.Errorf("sanitize: --max-bytes %d is outside 1024 to 1073741824; choose a value in that range", maxBytes)
	}
	mode, err := sanitizeMode(c, w)
	if err != nil {
		return err
	}
	examine, done, err := newResultExaminer(c, w)
	if err != nil {
		return err
	}
	defer done()
	printTerminalInputHint(w, "results from the terminal, one JSON object a line")
	in := action.NewReader(w.In, action.ReaderOptions{InputName: "stdin", MaxRecordBytes: maxBytes})
	out := bufio.NewWriter(w.Out)
	var t verdictCounts
	var rest unreadableRecords
	for c.Context.Err() == nil {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &statusError{statusBlock, fmt.Errorf("read standard input: %w", err)}
		}
		line := sanitizeRecord(rec, mode, examine)
		switch {
		case line.ErrorCode != "":
			t.block++
			if rest.add(line); rest.count > maxReportedUnreadableRecords {
				continue
			}
			fmt.Fprintf(w.Err, "shield: stdin:%d: %s\n", rec.StartLine, line.ErrorDescription)
		case line.WithholdingReason != "":
			t.block++
		case len(line.Findings) > 0:
			t.escalate++
		default:
			t.allow++
		}
		if line.ErrorCode == "" {
			if err := rest.writeSummary(out, w.Err); err != nil {
				return err
			}
		}
		if err := writeJSONLine(out, line); err != nil {
			return err
		}
	}
	if err := rest.writeSummary(out, w.Err); err != nil {
		return err
	}
	switch status := t.exitStatus(); {
	case c.Context.Err() != nil:
		return &statusError{statusBlock, nil}
	case t == verdictCounts{}:
		return &statusError{statusBlock, errors.New("standard input contains no result; write one JSON object a line")}
	case status != statusAllow:
		return &statusError{status, nil}
	}
	return nil
}

// maxReportedUnreadableRecords is how many lines are printed for consecutive unreadable records: binary data has
// thousands of them.
const maxReportedUnreadableRecords = 64

// An unreadableRecords counts consecutive unreadable records.
type unreadableRecords struct {
	count                    int
	firstUnreportedRecord    sanitizedLine // the unreadable record after the first maxReportedUnreadableRecords ones
	lastUnreadableLineNumber int           // line number of the last unreadable record
}

func (u *unreadableRecords) add(line sanitizedLine) {
	if u.count++; u.count == maxReportedUnreadableRecords+1 {
		u.firstUnreportedRecord = line
	}
	u.lastUnreadableLineNumber = line.Line
}

// writeSummary writes one line for the records beyond maxReportedUnreadableRecords.
func (u *unreadableRecords) writeSummary(out *bufio.Writer, errs io.Writer) error {
	line, more := u.firstUnreportedRecord, u.count-maxReportedUnreadableRecords
	last := u.lastUnreadableLineNumber
	*u = unreadableRecords{}
	if more <= 0 {
		return nil
	}
	line.UnreadableRecords, line.ErrorDescription = more, fmt.Sprintf("%d more records up to line %d could not be read; correct these records", more, last)
	fmt.Fprintf(errs, "shield: stdin:%d: %s\n", line.Line, line.ErrorDescription)
	return writeJSONLine(out, line)
}

// sanitizeMode returns the mode from the command line or the settings.
func sanitizeMode(c *cli.Context, w *Environment) (sanitize.ResultHandlingMode, error) {
	mode := sanitize.ResultHandlingMode(c.String("mode"))
	if !c.IsSet("mode") {
		set, err := loadSettings(c, w)
		if err != nil {
			return "", &statusError{statusBlock, err}
		}
		mode = sanitize.ResultHandlingMode(set.SanitizeToolResults.ActionOnFindings)
	}
	if !slices.Contains(sanitize.Modes(), mode) {
		return "", fmt.Errorf("sanitize: --mode %q is not one of flag, clean, wrap, block", shortenTo80Characters(string(mode)))
	}
	return mode, nil
}

// A resultExaminer examines the result of an action of a type.
type resultExaminer func(kind string, result any) *sanitize.Report

// newResultExaminer returns a function that examines results: by rules and, if the settings enable it, by the
// evaluator. The caller must call done at the end.
func newResultExaminer(c *cli.Context, w *Environment) (examine resultExaminer, done func(), err error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, nil, &statusError{statusBlock, err}
	}
	if !set.SanitizeToolResults.EvaluatorExaminesResults {
		return func(_ string, result any) *sanitize.Report { return sanitize.Examine(result) }, func() {}, nil
	}
	_, p, err := newCommandLinePipeline(c, w, false)
	if err != nil {
		return nil, nil, &statusError{statusBlock, err}
	}
	return func(kind string, result any) *sanitize.Report { return p.ExamineToolResult(c.Context, kind, result) }, func() { _ = p.Close() }, nil
}

// A sanitizedLine is the output of sanitize for one record.
type sanitizedLine struct {
	ID                string             `json:"id,omitempty"`
	Line              int                `json:"line"` // where the record starts, counted from 1
	ActionType        string             `json:"type,omitempty"`
	ActionHash        string             `json:"action_hash,omitempty"`
	Findings          []sanitize.Finding `json:"findings"`
	OmittedFindings   int                `json:"more,omitempty"`     // findings that were left out
	ResultChanged     bool               `json:"changed"`            // the result differs from the input
	WithholdingReason string             `json:"withheld,omitempty"` // why there is no result
	Result            jsontext.Value     `json:"result,omitempty"`   // the sanitized result to forward to the agent; omitted in mode "flag", which leaves the result unchanged
	ErrorCode         string             `json:"error,omitempty"`    // short code; set if the record was not examined
	ErrorDescription  string             `json:"reason,omitempty"`
	UnreadableRecords int                `json:"unread,omitempty"` // on a summary line: number of unreadable records, starting at Line, that it summarizes
}

// sanitizeRecord examines one record.
func sanitizeRecord(rec action.RawActionRecord, mode sanitize.ResultHandlingMode, examine resultExaminer) sanitizedLine {
	line := sanitizedLine{Line: rec.StartLine, Findings: []sanitize.Finding{}}
	a, result, err := parseActionAndResult(rec)
	if err != nil {
		if at := (*action.LineError)(nil); errors.As(err, &at) {
			err = at.Err
		}
		line.ErrorCode, line.ErrorDescription = string(action.CodeOf(err)), redactedErrorText(err)
		return line
	}
	line.ID, line.ActionType, line.ActionHash = a.ID, a.Type, a.TypeAndPayloadHash
	report := examine(a.Type, result.Value)
	line.Findings, line.OmittedFindings = append(line.Findings, report.Findings...), report.OmittedFindingsLowerBound
	if mode == sanitize.ModeFlagFindings {
		return line
	}
	applied := report.SanitizeResult(mode)
	line.ResultChanged, line.WithholdingReason = applied.Changed, applied.WithheldReason
	switch {
	case applied.WithheldReason != "":
	case applied.Changed:
		line.Result = canonjson.AppendValue(nil, applied.Result)
	default:
		line.Result = result.Raw
	}
	return line
}

// parseActionAndResult parses a record into an action and its result.
func parseActionAndResult(rec action.RawActionRecord) (*action.Action, canonjson.Member, error) {
	if rec.Err != nil {
		return nil, canonjson.Member{}, rec.Err
	}
	members, err := canonjson.ParseObjectMembers(nil, rec.Raw, action.MaxJSONNestingDepth)
	if err == nil {
		if i := slices.IndexFunc(members, func(m canonjson.Member) bool { return m.Name == "result" }); i >= 0 {
			result := members[i]
			a, err := action.FromMembers(rec.Raw, slices.Delete(members, i, i+1))
			return a, result, err
		}
	}
	a, err := action.Parse(rec.Raw) // its error says what is wrong
	if err == nil {
		err = &action.Error{Code: action.MissingField, Field: "result", Err: errors.New("missing in the record; add the result of the tool")}
	}
	return a, canonjson.Member{}, err
}

// writeJSONLine writes a value as one line and flushes it.
func writeJSONLine(out *bufio.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return out.Flush()
}
