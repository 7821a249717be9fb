// Package scan replays the transcripts of agent hosts on this machine: it judges every recorded tool
// call in order, as the hook would have. It executes nothing and writes nothing to disk. Transcripts
// are untrusted: every line is limited in size, and unknown records are only counted.
package scan

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A toolCall is a tool call that a transcript records.
type toolCall struct {
	id       string
	tool     string
	input    jsontext.Value // arguments of the tool, an object
	cwd      string         // folder of the call; "" for the conversation's folder
	calledAt time.Time      // time of the call; zero if the transcript has none
	place    transcriptPosition
}

// A toolResult is the result of a call.
type toolResult struct {
	callID string
	value  any // the result, a string or a JSON value; nil if it is not in the transcript
	status callOutcome
	place  transcriptPosition
}

// A callOutcome says whether a call in a transcript ran, failed or was refused.
type callOutcome uint8

const (
	outcomeUnknown callOutcome = iota // the transcript has no result
	outcomeRan
	outcomeFailed              // the call returned an error, or could not start
	outcomeRefusedByUserOrHost // a person, the host or a hook refused the call
)

// A transcriptPosition is a position in a transcript.
type transcriptPosition struct {
	file string
	line int // line, or number of the message, from 1
}

// A recordSink receives the records of a transcript, in order.
type recordSink interface {
	// handleFolderChange sets the folder of the following calls.
	handleFolderChange(cwd string)
	handleCall(c toolCall)
	handleResult(r toolResult)
	// countUnknownRecordKind counts a record of an unknown kind.
	countUnknownRecordKind(kind string)
}

// A transcriptReader reads the records of one transcript, and can keep state from earlier records.
type transcriptReader interface {
	// tryReadRecord reads one record. ok is false if it is not a record of this host.
	tryReadRecord(raw jsontext.Value, at transcriptPosition, to recordSink) (ok bool)
}
