// Package scan replays the transcripts of agent hosts on this machine: it judges every recorded tool
// call in order, as the hook would have. It executes nothing and writes nothing to disk. Transcripts
// are untrusted: every line is limited in size, and unknown records are only counted.
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
	cwd   string         // folder of the call; "" for the conversation's folder
	at    time.Time      // time of the call; zero if the transcript has none
	place place
}

// A result is the result of a call.
type result struct {
	id     string
	value  any // the result, a string or a JSON value; nil if it is not in the transcript
	status status
	place  place
}

// A status is the outcome of a call.
type status uint8

const (
	unknown status = iota // the transcript has no result
	ran
	failed // the call returned an error, or could not start
	denied // a person, the host or a hook refused the call
)

// A place is a position in a transcript.
type place struct {
	file string
	line int // line, or number of the message, from 1
}

// A sink receives the records of a transcript, in order.
type sink interface {
	// folder sets the folder of the following calls.
	folder(cwd string)
	call(c call)
	result(r result)
	// unknown counts a record of an unknown kind.
	unknown(kind string)
}

// A reader reads the records of one transcript, and can keep state from earlier records.
type reader interface {
	// record reads one record. ok is false if it is not a record of this host.
	record(raw jsontext.Value, at place, to sink) (ok bool)
}
