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

// clientWriteTimeout limits how long one write to a client can take.
const clientWriteTimeout = 30 * time.Second

// A serverSentEvent is one server-sent event, as the HTML standard defines it.
type serverSentEvent struct {
	data  []byte // nil or empty: no data
	id    string // "" if the event has no valid ID
	retry string // reconnection time in milliseconds; "" if not given
}

// eventReader reads an event stream in bounded memory.
type eventReader struct {
	reader        *bufio.Reader
	maxEventBytes int // bytes of one event
}

func newEventReader(r io.Reader, max int) *eventReader {
	return &eventReader{bufio.NewReaderSize(r, 16<<10), max}
}

// next returns the next event. An incomplete event at the end of the stream, without an empty line
// after it, is dropped.
func (e *eventReader) next() (serverSentEvent, error) {
	var ev serverSentEvent
	size, any := 0, false
	for {
		line, err := e.readLine(e.maxEventBytes - size)
		if err != nil {
			return serverSentEvent{}, err
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
			if isValidSessionOrEventID(string(value)) {
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

// readLine returns a line without its line end: LF, CR or CRLF.
func (e *eventReader) readLine(most int) ([]byte, error) {
	var out []byte
	for {
		c, err := e.reader.ReadByte()
		if err != nil {
			return nil, err
		}
		switch c {
		case '\r':
			if next, err := e.reader.Peek(1); err == nil && next[0] == '\n' {
				_, _ = e.reader.ReadByte()
			}
			return out, nil
		case '\n':
			return out, nil
		}
		if out = append(out, c); len(out) > most {
			return nil, errFrameTooLong
		}
	}
}

// isValidSessionOrEventID reports whether a text is valid as the ID of a session or an event, which is sent in
// an HTTP header: 1 to 1024 visible ASCII characters without spaces.
func isValidSessionOrEventID(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 1024
}

// A responseStream is the HTTP response to one exchange: a single message, or server-sent events of which the
// last is the response. It is safe for concurrent use.
type responseStream struct {
	responseEnded chan struct{} // closed when nothing more will be written

	mu          sync.Mutex
	writer      http.ResponseWriter
	controller  *http.ResponseController
	clock       func() time.Time
	status      int  // HTTP status of a response that is not an event stream
	eventsBegun bool // the event stream has started
	closed      bool
}

func newResponseStream(w http.ResponseWriter, clock func() time.Time) *responseStream {
	return &responseStream{responseEnded: make(chan struct{}), writer: w, controller: http.NewResponseController(w), clock: clock, status: http.StatusOK}
}

// ended reports whether nothing more will be written. A nil stream has not ended.
func (s *responseStream) ended() bool {
	if s == nil {
		return false
	}
	select {
	case <-s.responseEnded:
		return true
	default:
		return false
	}
}

// beginEvents starts the event stream, if it has not started.
func (s *responseStream) beginEvents() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.writeEventStreamHTTPHeader()
	}
}

func (s *responseStream) writeEventStreamHTTPHeader() {
	if s.eventsBegun {
		return
	}
	s.eventsBegun = true
	s.writer.Header().Set("Content-Type", "text/event-stream")
	s.writer.Header().Set("Cache-Control", "no-store")
	s.writer.WriteHeader(http.StatusOK)
	s.flush()
}

// flush sends buffered output to the client; it blocks for at most clientWriteTimeout.
func (s *responseStream) flush() {
	if s.controller.Flush() != nil {
		s.close()
	}
}

func (s *responseStream) close() {
	if !s.closed {
		s.closed = true
		close(s.responseEnded)
	}
}

// forwardEventIDAndRetry forwards the ID and the reconnection time of an event to the client; without both, it
// writes nothing. If the event has a message, the message follows in the same event; otherwise
// forwardEventIDAndRetry ends the event.
func (s *responseStream) forwardEventIDAndRetry(ev serverSentEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || ev.id == "" && ev.retry == "" {
		return
	}
	s.writeEventStreamHTTPHeader()
	s.setWriteDeadline()
	if ev.id != "" {
		fmt.Fprintf(s.writer, "id: %s\n", ev.id)
	}
	if ev.retry != "" {
		fmt.Fprintf(s.writer, "retry: %s\n", ev.retry)
	}
	if len(ev.data) == 0 {
		_, _ = io.WriteString(s.writer, "data:\n\n")
		s.flush()
	}
}

func (s *responseStream) setWriteDeadline() {
	_ = s.controller.SetWriteDeadline(s.clock().Add(clientWriteTimeout))
}

// sendOrQueueFrame writes a message to the client as a server-sent event, without a queue. It reports false if
// the response has ended or writing failed.
func (s *responseStream) sendOrQueueFrame(raw []byte, _ bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.writeEventStreamHTTPHeader()
	s.writeEvent(raw)
	return !s.closed
}

// lineEndEscaper escapes U+0085 and U+2028/U+2029, which some event stream readers treat as line ends. In
// JSON they occur only inside strings, where the escapes mean the same.
var lineEndEscaper = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

func (s *responseStream) writeEvent(raw []byte) {
	s.setWriteDeadline()
	if bytes.ContainsAny(raw, "\u0085\u2028\u2029") {
		raw = []byte(lineEndEscaper.Replace(string(raw)))
	}
	var b bytes.Buffer
	for line := range bytes.FieldsFuncSeq(raw, func(r rune) bool { return r == '\n' || r == '\r' }) { // strings in JSON contain no raw line break, so each one here is white space
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err := s.writer.Write(b.Bytes())
	if s.flush(); err != nil {
		s.close()
	}
}

// writeResponse writes the response, unless it is nil, and ends the exchange.
func (s *responseStream) writeResponse(raw []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	defer s.close()
	switch {
	case raw == nil && !s.eventsBegun:
		s.writer.WriteHeader(http.StatusAccepted)
	case raw == nil:
	case s.eventsBegun:
		s.writeEvent(raw)
	default:
		s.setWriteDeadline()
		s.writer.Header().Set("Content-Type", "application/json")
		s.writer.Header().Set("Content-Length", strconv.Itoa(len(raw)))
		s.writer.WriteHeader(s.status)
		_, _ = s.writer.Write(raw)
	}
}

// setHeader sets an HTTP header, if the response has not started.
func (s *responseStream) setHeader(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.writer.Header().Set(name, value)
	}
}

// setStatus sets the HTTP status of a response that is not an event stream.
func (s *responseStream) setStatus(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}
