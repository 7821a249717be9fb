package cmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/peer"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Limits of reading an input for the service: its length in bytes, and the number of reads. Reading
// also ends if no input arrives for a millisecond.
const (
	maxServiceInputBytes        = 64 << 10 // bytes
	maxReadCallsPerServiceInput = 4
)

// askServiceToJudgeStdin asks the user's service to judge standard input, if that is a single action and has
// ended, and returns the line of its verdict. If ok is false, this process has to judge, and w.In
// still yields the whole input.
func (s recordStreamJudge) askServiceToJudgeStdin(w *Environment) (line []byte, d verdict.Decision, ok bool) {
	state := serviceStateFolder(w)
	if s.tierRange.First > shield.TierClassify || state == "" {
		return nil, d, false
	}
	if _, err := os.Lstat(filepath.Join(peer.ServiceFolder(state), peer.SocketFileName)); err != nil {
		return nil, d, false
	}
	in, ended := readInputWithinServiceLimit(w.In)
	w.In = io.MultiReader(bytes.NewReader(in), w.In)
	if !ended || parseActionIfSingle(in, maxServiceInputBytes) == nil {
		return nil, d, false
	}
	if line, ok = w.askServiceForCommandOutput(in); !ok {
		return nil, d, false
	}
	v, err := parseServiceVerdict(line)
	return line, v.Decision, err == nil
}

// readInputWithinServiceLimit reads a short input that is available without waiting. reachedEOF means that in is
// the whole input.
func readInputWithinServiceLimit(r io.Reader) (in []byte, reachedEOF bool) {
	if isTerminal(r) {
		return nil, false
	}
	buf := make([]byte, maxServiceInputBytes+1)
	n := 0
	for range maxReadCallsPerServiceInput {
		if n == len(buf) || !canReadStreamWithoutBlocking(r) {
			break
		}
		more, err := r.Read(buf[n:])
		if n += more; err != nil {
			return buf[:n], err == io.EOF
		}
	}
	return buf[:n], false
}

// parseActionIfSingle returns the action if it is the whole input, or nil.
func parseActionIfSingle(in []byte, maxBytes int) *action.Action {
	r := shield.NewActionSource(bytes.NewReader(in), "stdin", maxBytes)
	rec, err := r.Next()
	if err != nil || rec.Err != nil || rec.Line != 1 {
		return nil
	}
	if _, err := r.Next(); err != io.EOF {
		return nil
	}
	return rec.Action
}

// writeVerdictFromService writes the verdict of a service, and returns its status as an error.
func writeVerdictFromService(w *Environment, line []byte, d verdict.Decision) error {
	if _, err := w.Out.Write(line); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	var t verdictCounts
	t.countDecision(d)
	if status := t.exitStatus(); status != statusAllow {
		return &statusError{status, nil}
	}
	return nil
}

// judgeActionForServiceClient judges the single action that another process sent to this service. It returns
// errUndecided, so that the other process judges, if a later tier must decide, or if the other process must
// print a note about an unusable model or policy.
func (s recordStreamJudge) judgeActionForServiceClient(c *cli.Context, w *Environment) error {
	set, p, err := newCommandLinePipeline(c, w, false)
	if err != nil {
		return err
	}
	a := parseActionIfSingle(w.requestFromServiceClient.input, set.MaxActionRecordBytes)
	if a == nil || p.UnusableModelOrPolicyNote() != "" {
		return errUndecided
	}
	v, ok := p.EvaluateOnlyStreamActionInProcess(c.Context, a, s.tierRange)
	if !ok {
		return errUndecided
	}
	return verdict.NewWriter(w.Out).Write(&v)
}
