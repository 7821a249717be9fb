// Package scan replays what agent hosts have recorded on this machine: it reads their transcripts
// and judges every tool call in order, as the hook would have judged it. It executes nothing and
// writes nothing to disk. A transcript may hold anything: every line is bounded, what is not known
// is counted by name, and nothing of it is believed but the calls.
package scan

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A call is one call of a tool.
type call struct {
	id    string
	tool  string
	input jsontext.Value // an object
	cwd   string         // "" for that of the conversation
	at    time.Time      // the zero time if the transcript does not say
	place place
}

// A result is what a call returned.
type result struct {
	id     string
	value  any // a text or a JSON value; nil if it is not in the transcript
	status status
	place  place
}

// A status says what happened to a call.
type status uint8

const (
	unknown status = iota // the transcript has no result
	ran
	failed // it ran and returned an error, or was not started
	denied // a person, the host or a hook refused it
)

// A place is where something is in a transcript.
type place struct {
	file string
	line int // or the number of the message, counted from 1
}

// A sink takes what a transcript holds, in its order.
type sink interface {
	// folder says where the calls that follow run.
	folder(cwd string)
	call(c call)
	result(r result)
	// unknown counts a record that is not read, by its kind.
	unknown(kind string)
}

// A reader reads the records of one transcript. It may remember what earlier ones said.
type reader interface {
	// record reads one record. ok is false for one that is not a record of this host.
	record(raw jsontext.Value, at place, to sink) (ok bool)
}
