package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writeTime limits how long one write to a client can take.
const writeTime = 30 * time.Second

// An event is one server-sent event, as the HTML standard defines it.
type event struct {
	data  []byte // nil or empty: no data
	id    string // "": no ID
	retry string // reconnection time in milliseconds; "" if not given
}

// events reads an event stream in bounded memory.
type events struct {
	r   *bufio.Reader
	max int // bytes of one event
}

func newEvents(r io.Reader, max int) *events { return &events{bufio.NewReaderSize(r, 16<<10), max} }

// next returns the next event. An event at the end of the stream that no empty line ends is dropped.
func (e *events) next() (event, error) {
	var ev event
	size, any := 0, false
	for {
		line, err := e.line(e.max - size)
		if err != nil {
			return event{}, err
		}
		size += len(line)
		if len(line) == 0 {
			if any {
				return ev, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if ev.data == nil {
				ev.data = []byte{}
			} else {
				ev.data = append(ev.data, '\n')
			}
			ev.data = append(ev.data, value...)
		case "id":
			if fits(string(value)) {
				ev.id = string(value)
			}
		case "retry":
			if _, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				ev.retry = string(value)
			}
		default: // a comment or an unknown field
			continue
		}
		any = true
	}
}

// line returns a line without its line end: LF, CR or CRLF.
func (e *events) line(most int) ([]byte, error) {
	var out []byte
	for {
		c, err := e.r.ReadByte()
		if err != nil {
			return nil, err
		}
		switch c {
		case '\r':
			if next, err := e.r.Peek(1); err == nil && next[0] == '\n' {
				_, _ = e.r.ReadByte()
			}
			return out, nil
		case '\n':
			return out, nil
		}
		if out = append(out, c); len(out) > most {
			return nil, errFrame
		}
	}
}

// fits reports whether a text is a valid session ID or event ID, which is sent in an HTTP header.
func fits(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 1024
}

// A stream is the HTTP response to one exchange: a single message, or server-sent events of which the
// last is the response. It is safe for concurrent use.
type stream struct {
	done chan struct{} // closed when nothing more will be written

	mu     sync.Mutex
	w      http.ResponseWriter
	flow   *http.ResponseController
	clock  func() time.Time
	status int  // HTTP status of a response that is not an event stream
	begun  bool // the event stream has started
	closed bool
}

func newStream(w http.ResponseWriter, clock func() time.Time) *stream {
	return &stream{done: make(chan struct{}), w: w, flow: http.NewResponseController(w), clock: clock, status: http.StatusOK}
}

// ended reports whether nothing more will be written. A nil stream has not ended.
func (s *stream) ended() bool {
	if s == nil {
		return false
	}
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// begin starts the event stream, if it has not started.
func (s *stream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.head()
	}
}

func (s *stream) head() {
	if s.begun {
		return
	}
	s.begun = true
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.Header().Set("Cache-Control", "no-store")
	s.w.WriteHeader(http.StatusOK)
	s.flush()
}

// flush sends buffered output to the client; it blocks for at most writeTime.
func (s *stream) flush() {
	if s.flow.Flush() != nil {
		s.close()
	}
}

func (s *stream) close() {
	if !s.closed {
		s.closed = true
		close(s.done)
	}
}

// mark forwards an event's reconnection time and its ID, which is sent with the next message if the
// event has one.
func (s *stream) mark(ev event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || ev.id == "" && ev.retry == "" {
		return
	}
	s.head()
	s.deadline()
	if ev.id != "" {
		fmt.Fprintf(s.w, "id: %s\n", ev.id)
	}
	if ev.retry != "" {
		fmt.Fprintf(s.w, "retry: %s\n", ev.retry)
	}
	if len(ev.data) == 0 {
		_, _ = io.WriteString(s.w, "data:\n\n")
		s.flush()
	}
}

func (s *stream) deadline() { _ = s.flow.SetWriteDeadline(s.clock().Add(writeTime)) }

// put writes an event.
func (s *stream) put(raw []byte, _ bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.head()
	s.event(raw)
	return !s.closed
}

// lineEnds escapes U+0085 and U+2028/U+2029, which some event stream readers treat as line ends. In
// JSON they occur only inside strings, where the escapes mean the same.
var lineEnds = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

func (s *stream) event(raw []byte) {
	s.deadline()
	if bytes.ContainsAny(raw, "\u0085\u2028\u2029") {
		raw = []byte(lineEnds.Replace(string(raw)))
	}
	var b bytes.Buffer
	for line := range bytes.FieldsFuncSeq(raw, func(r rune) bool { return r == '\n' || r == '\r' }) { // white space, as no string of JSON has them
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err := s.w.Write(b.Bytes())
	if s.flush(); err != nil {
		s.close()
	}
}

// finish writes the response, unless it is nil, and ends the exchange.
func (s *stream) finish(raw []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	defer s.close()
	switch {
	case raw == nil && !s.begun:
		s.w.WriteHeader(http.StatusAccepted)
	case raw == nil:
	case s.begun:
		s.event(raw)
	default:
		s.deadline()
		s.w.Header().Set("Content-Type", "application/json")
		s.w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
		s.w.WriteHeader(s.status)
		_, _ = s.w.Write(raw)
	}
}

// header sets an HTTP header, if the response has not started.
func (s *stream) header(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.w.Header().Set(name, value)
	}
}

// answerWith sets the HTTP status of a response that is not an event stream.
func (s *stream) answerWith(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}
