// Package scan replays what agent hosts have recorded on this machine: it reads their transcripts
// and judges every tool call in order, as the hook would have judged it. It executes nothing and
// writes nothing to disk. A transcript may hold anything: every line is bounded, what is not known
// is counted by name, and nothing of it is believed but the calls.
package scan

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A call is one tool call.
type call struct {
	id    string
	tool  string
	input jsontext.Value // arguments of the tool, an object
	cwd   string         // folder of the call; "" for that of the conversation
	at    time.Time      // time of the call; zero if the transcript does not say
	place place
}

// A result is the result of a call.
type result struct {
	id     string
	value  any // the result, a string or a JSON value; nil if it is not in the transcript
	status status
	place  place
}

// A status is what happened to a call.
type status uint8

const (
	unknown status = iota // the transcript has no result
	ran
	failed // the call returned an error, or did not start
	denied // a person, the host or a hook refused the call
)

// A place is a position in a transcript.
type place struct {
	file string
	line int // line, or number of the message, from 1
}

// A sink receives the records of a transcript, in order.
type sink interface {
	// folder says where the calls that follow run.
	folder(cwd string)
	call(c call)
	result(r result)
	// unknown counts a record of an unknown kind.
	unknown(kind string)
}

// A reader reads the records of one transcript. It may remember what earlier ones said.
type reader interface {
	// record reads one record. ok is false for one that is not a record of this host.
	record(raw jsontext.Value, at place, to sink) (ok bool)
}
