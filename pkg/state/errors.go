package state

import (
	"errors"
	"fmt"
)

// Errors of the state file, or of the store that machines share. Any method can return them; use
// [errors.Is]. After each of them it is unknown whether a limit is reached.
var (
	ErrCorrupt                     = errors.New("state file is damaged")
	ErrNewerStateFile              = errors.New("state file was written by a newer shield")
	ErrUnwritable                  = errors.New("state file cannot be written")
	ErrStateFileMissing            = errors.New("state file is missing")
	ErrStateAccessibleToOtherUsers = errors.New("state is open to other users")
	ErrStateFileLocked             = errors.New("state file is in use")
	ErrSharedStoreUnreachable      = errors.New("the shared store does not answer")
	ErrSharedStoreRefusedCommand   = errors.New("the shared store refused the command")
	ErrStoreReset                  = errors.New("the shared store was replaced or rolled back")
	ErrSharedStoreValueAltered     = errors.New("another program changed a value in the shared store")
)

// Refusals: the state is readable and a limit is used up.
var (
	ErrEvaluatorRateExceeded = errors.New("rate limit exceeded; wait a minute, or let the user raise rate_limit")
	ErrBudgetExhausted       = errors.New("daily evaluation budget exhausted; wait until tomorrow, or let the user raise daily_budget")
	ErrApprovalLimit         = errors.New("hourly approval limit reached")
	ErrCachedValueLarge      = errors.New("the value is too large for the cache")
)

// RepairCommand is the command line that repairs a damaged or missing state file.
const RepairCommand = "shield doctor --repair-state"

// An Error says what is wrong with the state and how to repair it.
type Error struct {
	Kind error  // ErrCorrupt, ErrUnwritable, … of this package
	Path string // the file or folder, or the URL of the store
	Err  error  // the cause
}

// Error returns the problem, its place and the fix.
func (e *Error) Error() string {
	text := fmt.Sprintf("%v: %s: %v", e.Kind, e.Path, e.Err)
	switch e.Kind {
	case ErrStateFileLocked, ErrStateAccessibleToOtherUsers: // the cause includes the fix
		return text
	case ErrNewerStateFile:
		return text + "; install that version again, or run '" + RepairCommand + "', which keeps this file aside and counts every limit as used"
	case ErrSharedStoreUnreachable:
		return text + "; check store and the network, then run 'shield doctor'"
	case ErrSharedStoreRefusedCommand:
		return text + "; set store to a primary server where this user can write and run scripts"
	case ErrSharedStoreValueAltered:
		return text + "; find the program that wrote the value, delete the key from the store, then run '" + RepairCommand + "'"
	case ErrStoreReset:
		return text + "; find out which program or backup did this, then run '" + RepairCommand + "'"
	case ErrUnwritable:
		return text + "; make the folder writable, or name another with --state"
	}
	return text + "; run '" + RepairCommand + "'"
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }
