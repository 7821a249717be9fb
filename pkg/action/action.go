// Package action reads the actions that an AI agent proposes. An [Action] is one
// proposed step, such as a shell command or a file write. [Reader] splits a stream
// into records, and [Parse] turns a record into an Action or returns an error that
// says what is wrong with it.
//
// Everything in an Action comes from the agent and must not be trusted: its fields
// can make judgement stricter, never looser.
package action

import "github.com/go-json-experiment/json/jsontext"

// An Action is one thing that an agent proposes to do.
// It is not changed after [Parse], and goroutines may share it.
type Action struct {
	ID                             string // echoed in the verdict; may be empty
	Type                           string // canonical name of the action type, such as "execute_command"
	CWD                            string // absolute folder that relative paths start from; may be empty
	Session                        string // groups actions for approvals and the audit log; may be empty
	MinAllowTier                   int    // lowest tier that may allow the action, 0–3
	OriginalTypeSharedByOtherTools string // the type as received, if other tools have that name as well, such as "run"; else empty

	// IsPowerShellCommand is true if the tool's name says that its commands are PowerShell.
	IsPowerShellCommand bool

	// Payload holds the tool's arguments by canonical field name. Values are
	// string, bool, nil, jsontext.Value (a number's literal text), []any and
	// map[string]any.
	Payload map[string]any

	TypeAndPayloadHash string         // "sha256:" and hex, over the canonical JSON of type and payload as given
	Raw                jsontext.Value // the record as received: one JSON object

	canonical []byte // canonical JSON of Raw; nil if Raw is large
}

// Canonical returns the canonical JSON of Raw, or nil if it was not stored.
func (a *Action) Canonical() []byte { return a.canonical }

// Text returns the payload's string at a canonical field name, or "" if it is
// missing or not a string.
func (a *Action) Text(field string) string {
	s, _ := a.Payload[field].(string)
	return s
}
