package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A recordStreamJudge judges the records of standard input with a range of tiers.
// rejectsVerdictRecords says whether it rejects records that are verdicts of an earlier shield
// command.
type recordStreamJudge struct {
	tierRange             shield.TierRange
	rejectsVerdictRecords bool // verdicts are refused
}

// judgeInput judges the records of standard input, and returns the exit status as an error.
func (s recordStreamJudge) judgeInput(c *cli.Context, w *Environment) error {
	n, err := parallelJobs(c)
	if err != nil {
		return err
	}
	if _, err := operands(c); err != nil {
		return err
	}
	var out verdictWriter = verdict.NewWriter(w.Out)
	if c.String("format") == "text" {
		if w.requestFromServiceClient != nil {
			return errUndecided
		}
		style := report.Style{Color: usesColour(c, w, w.Out)}
		if isTerminal(w.Out) {
			style.Columns = terminalWidth(w.Out)
		}
		out = &verdictTextWriter{w.Out, style}
	}
	if w.requestFromServiceClient != nil {
		return s.judgeActionForServiceClient(c, w)
	}
	printTerminalInputHint(w, "actions from the terminal, one JSON object a line")
	if c.String("format") == "json" {
		if line, d, ok := s.askServiceToJudgeStdin(w); ok {
			return writeVerdictFromService(w, line, d)
		}
	}
	set, p, err := newCommandLinePipeline(c, w, false)
	if err != nil {
		return blockAllRecords(c.Context, w, out, err)
	}
	err = s.judgeRecords(c.Context, w, p, s.openRecords(w, p, set.MaxActionRecordBytes), out, n)
	if closing := p.Close(); err == nil {
		err = closing
	}
	return err
}

// openRecords returns the input's records.
func (s recordStreamJudge) openRecords(w *Environment, p *shield.Pipeline, maxBytes int) shield.InputRecordSource {
	if s.rejectsVerdictRecords {
		return shield.NewActionSource(w.In, "stdin", maxBytes)
	}
	return p.NewRecordReader(w.In, "stdin", maxBytes)
}

// judgeRecords judges the records of in, up to parallelism at a time, and writes their verdicts. If the verdicts
// are not all ALLOW, the error holds the exit status.
func (s recordStreamJudge) judgeRecords(ctx context.Context, w *Environment, p *shield.Pipeline, in shield.InputRecordSource, out verdictWriter, parallelism int) error {
	var t verdictCounts
	line := progressLine{terminal: w.Err, onTerminal: isTerminal(w.Err) && !isTerminal(w.Out)}
	err := p.JudgeStream(ctx, in, func(j *shield.InputRecordResult) error {
		if j.Err != nil {
			line.clear()
			fmt.Fprintf(w.Err, "shield: %s; blocked\n", redactedErrorText(j.Err))
		}
		t.countDecision(j.Verdict.Decision)
		if n := t.allow + t.escalate + t.block; n%verdictsPerProgressReport == 0 {
			line.show(n, "actions judged")
		}
		if lines, ok := out.(*verdict.Writer); ok {
			lines.DefersFlushUntilNextVerdict = j.IsNextResultReady
		}
		if j.RawEarlierProcessVerdict != nil {
			return out.PassUnchanged(j.RawEarlierProcessVerdict)
		}
		return out.Write(&j.Verdict)
	}, shield.StreamOptions{Tiers: s.tierRange, Jobs: parallelism, OmitExplanations: true})
	line.clear()
	var unread *shield.ReadError
	switch {
	case errors.As(err, &unread):
		return &statusError{statusBlock, fmt.Errorf("read standard input: %w", unread.Err)}
	case err != nil && errors.Is(err, ctx.Err()):
		return &statusError{statusBlock, nil}
	case err != nil:
		return err
	}
	if status := t.exitStatus(); status != statusAllow {
		return &statusError{status, t.checkHasRecords()}
	}
	return nil
}

// blockAllRecords blocks every record, because shield itself is misconfigured.
func blockAllRecords(ctx context.Context, w *Environment, out verdictWriter, cause error) error {
	in := action.NewReader(w.In, action.ReaderOptions{InputName: "stdin"})
	now := w.Now().UTC().Truncate(time.Millisecond)
	for ctx.Err() == nil {
		rec, err := in.Next()
		if err != nil {
			break
		}
		v := verdict.Verdict{
			Line: rec.StartLine, Decision: verdict.Block, Confidence: 1, ErrorCode: "config",
			Reasoning: redactedErrorText(cause), JudgedAt: now, Expires: now,
		}
		if a, err := action.Parse(rec.Raw); err == nil {
			v.ActionID, v.ActionHash = a.ID, a.TypeAndPayloadHash
		}
		if err := out.Write(&v); err != nil {
			return err
		}
	}
	return &statusError{statusBlock, cause}
}

// checkHasRecords returns an error that explains the BLOCK status if the input contained no records, and nil
// otherwise.
func (t *verdictCounts) checkHasRecords() error {
	if t.allow+t.escalate+t.block == 0 {
		return errors.New("standard input contains no action, so the result is BLOCK; write one JSON object a line")
	}
	return nil
}
