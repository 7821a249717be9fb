package action

import (
	"errors"
	"fmt"
)

// An ErrorCode is a one-word reason why a record is not an action. It becomes the error field of a
// verdict.
type ErrorCode string

// The codes of [Error].
const (
	InvalidJSON          ErrorCode = "invalid_json"    // not JSON, incomplete, or not an object
	InvalidUTF8          ErrorCode = "invalid_utf8"    // bytes that are not UTF-8
	LoneSurrogate        ErrorCode = "lone_surrogate"  // an escaped half of a surrogate pair
	DuplicateKey         ErrorCode = "duplicate_key"   // keys of one object equal, or different only in case
	MissingField         ErrorCode = "missing_field"   // a required field is missing
	WrongType            ErrorCode = "wrong_type"      // a field does not have the required type
	InvalidValue         ErrorCode = "invalid_value"   // an empty type, a min_tier beyond 0–3, a cwd that is not absolute, a NUL in a name
	TooDeep              ErrorCode = "too_deep"        // nested deeper than [MaxJSONNestingDepth]
	TooLarge             ErrorCode = "too_large"       // a record or field is too long
	FieldAliasCollision  ErrorCode = "alias_collision" // two payload fields with the same meaning, such as command and cmd
	VerdictFieldInAction ErrorCode = "verdict"         // a top-level decision or seal: the record looks like a verdict
)

// An Error says why a record is not an action.
type Error struct {
	Code  ErrorCode
	Field string // such as "payload.command", safe to show; may be empty
	Err   error  // what was expected; does not quote values of the record
}

// CodeOf returns the code of the [*Error] in err, or "input" if there is none.
func CodeOf(err error) ErrorCode {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return "input"
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A LineError adds to an error the record in which it occurred.
type LineError struct {
	InputName string // name of the input, such as "stdin"; may be empty
	Line      int    // where the record starts, counted from 1
	Err       error
}

func (e *LineError) Error() string {
	if e.InputName == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.InputName, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }
