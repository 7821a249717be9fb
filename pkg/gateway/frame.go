package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxFrame is the longest frame in either direction, in bytes without its line
// end, as in the protocol's reference implementations.
const maxFrame = 16 << 20

// A frame is one line of a stream, expected to be a JSON-RPC message.
type frame struct {
	raw []byte // without the line end; nil if it was too long
	id  []byte // the id at the top level, also of an invalid or too long frame; nil if not found
}

// errFrame says why a frame could not be kept.
var errFrame = errors.New("the message is too long; shorten it")

// frames reads a stream of lines in bounded memory.
type frames struct {
	r     *bufio.Reader
	max   int
	buf   []byte
	inner bool // inside a line that was too long
}

func newFrames(r io.Reader, max int) *frames {
	return &frames{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// next returns the next line that is not blank. The error is [errFrame] for a line that is too long,
// with its id if that was found within twice the maximum length; otherwise the stream's error,
// [io.EOF] at its end. A last line without a line end is dropped, since it can be truncated.
func (f *frames) next() (frame, error) {
	f.buf = f.buf[:0]
	if cap(f.buf) > 1<<20 { // do not keep a large buffer
		f.buf = nil
	}
	var s idScan
	long := 0
	for {
		part, err := f.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return frame{}, err
		}
		end := err == nil
		if f.inner {
			f.inner = !end
			continue
		}
		s.feed(part)
		if long == 0 && len(f.buf)+len(part) <= f.max+1 {
			f.buf = append(f.buf, part...)
		} else if long += len(part); end || s.done || long > f.max {
			f.inner = !end
			return frame{id: s.id()}, errFrame
		}
		if end && long == 0 {
			if raw := bytes.TrimRight(f.buf, "\r\n"); len(bytes.TrimSpace(raw)) > 0 {
				return frame{bytes.Clone(raw), s.id()}, nil
			}
			f.buf, s = f.buf[:0], idScan{}
		}
	}
}

// maxID is the longest id of a request, in bytes.
const maxID = 256

// An idScan finds the top-level "id" of an object while its bytes are streamed, in constant memory,
// even if the rest is invalid JSON.
type idScan struct {
	depth       int
	quoted, esc bool
	value       bool   // after a colon at the top level
	key, at     []byte // the last key and value at the top level, truncated
	found       []byte
	done        bool
}

func (s *idScan) feed(text []byte) {
	for _, c := range text {
		if s.done {
			return
		}
		s.one(c)
	}
}

func (s *idScan) one(c byte) {
	top := s.depth == 1
	switch {
	case s.quoted:
		s.keep(c, top)
		switch {
		case s.esc:
			s.esc = false
		case c == '\\':
			s.esc = true
		case c == '"':
			s.quoted = false
		}
		return
	case c == '"':
		s.quoted = true
		if top && !s.value {
			s.key = s.key[:0]
		}
	case c == '{' || c == '[':
		s.depth++
		return
	case c == '}' || c == ']':
		s.depth--
		s.end(top)
		return
	case top && c == ':':
		s.value, s.at = true, s.at[:0]
		return
	case top && c == ',':
		s.end(top)
		return
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		return
	}
	s.keep(c, top)
}

// keep stores a byte of a key or value at the top level.
func (s *idScan) keep(c byte, top bool) {
	switch {
	case !top:
	case s.value && len(s.at) <= maxID:
		s.at = append(s.at, c)
	case !s.value && len(s.key) <= len(`"id"`):
		s.key = append(s.key, c)
	}
}

// end ends a member.
func (s *idScan) end(top bool) {
	if top && s.value && string(s.key) == `"id"` && len(s.at) <= maxID {
		s.found, s.done = bytes.Clone(s.at), true
	}
	s.value = false
	s.key = s.key[:0]
}

// id returns the id that was found in its canonical form, or nil.
func (s *idScan) id() []byte { return canonicalID(s.found) }
