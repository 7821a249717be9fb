package cmd

import (
	"errors"
	"fmt"

	"github.com/shieldcli/shield/pkg/verdict"
)

// The exit statuses in the man page's table.
const (
	statusAllow    = 0
	statusFailure  = 1
	statusBlock    = 2
	statusEscalate = 3
)

// exitStatuses describe the exit statuses, in the order of the man page.
var exitStatuses = []struct {
	Status  int
	Meaning string
}{
	{statusAllow, "At least one verdict, all of them ALLOW; or the command did what was asked."},
	{statusFailure, "The command line was not understood, the output could not be written, or a check or table of cases failed."},
	{statusBlock, "At least one BLOCK, or no record was read. In exec, hook and mcp: any failure of shield."},
	{statusEscalate, "No BLOCK, and at least one ESCALATE that no later tier resolved."},
}

// A statusError ends a command with an exit status, and prints err unless it is nil.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// A verdictCounts counts the verdicts of a stream.
type verdictCounts struct{ allow, escalate, block int }

func (t *verdictCounts) countDecision(d verdict.Decision) {
	switch d {
	case verdict.Allow:
		t.allow++
	case verdict.Escalate:
		t.escalate++
	default:
		t.block++
	}
}

// exitStatus returns the exit status of a stream; an empty stream does not count as ALLOW.
func (t *verdictCounts) exitStatus() int {
	switch {
	case t.block > 0 || t.allow+t.escalate == 0:
		return statusBlock
	case t.escalate > 0:
		return statusEscalate
	default:
		return statusAllow
	}
}

// exitStatus returns the exit status for a command's error, and the error to print, if any.
func exitStatus(err error) (int, error) {
	var s *statusError
	switch {
	case err == nil:
		return statusAllow, nil
	case errors.As(err, &s):
		return s.status, s.err
	default:
		return statusFailure, err
	}
}
