package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxFrameBytes is the longest frame in either direction, in bytes without its line
// end, as in the protocol's reference implementations.
const maxFrameBytes = 16 << 20

// A jsonRPCFrame is one line of a stream, expected to be a JSON-RPC message.
type jsonRPCFrame struct {
	raw []byte // without the line end; nil if it was too long
	id  []byte // the id at the top level, also of an invalid or too long frame; nil if not found
}

// errFrameTooLong says why a frame could not be kept.
var errFrameTooLong = errors.New("the message is too long; shorten it")

// frameReader reads a stream of lines in bounded memory.
type frameReader struct {
	reader         *bufio.Reader
	maxFrameBytes  int
	buf            []byte
	insideLongLine bool // inside a line that was too long
}

func newFrameReader(r io.Reader, max int) *frameReader {
	return &frameReader{reader: bufio.NewReaderSize(r, 64<<10), maxFrameBytes: max}
}

// next returns the next line that is not blank. The error is [errFrameTooLong] for a line that is too long,
// with its id if that was found within twice the maximum length; otherwise the stream's error,
// [io.EOF] at its end. A last line without a line end is dropped, since it can be truncated.
func (f *frameReader) next() (jsonRPCFrame, error) {
	f.buf = f.buf[:0]
	if cap(f.buf) > 1<<20 { // do not keep a large buffer
		f.buf = nil
	}
	var s messageIDScanner
	long := 0
	for {
		part, err := f.reader.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return jsonRPCFrame{}, err
		}
		end := err == nil
		if f.insideLongLine {
			f.insideLongLine = !end
			continue
		}
		s.feed(part)
		if long == 0 && len(f.buf)+len(part) <= f.maxFrameBytes+1 {
			f.buf = append(f.buf, part...)
		} else if long += len(part); end || s.done || long > f.maxFrameBytes {
			f.insideLongLine = !end
			return jsonRPCFrame{id: s.id()}, errFrameTooLong
		}
		if end && long == 0 {
			if raw := bytes.TrimRight(f.buf, "\r\n"); len(bytes.TrimSpace(raw)) > 0 {
				return jsonRPCFrame{bytes.Clone(raw), s.id()}, nil
			}
			f.buf, s = f.buf[:0], messageIDScanner{}
		}
	}
}

// maxRequestIDBytes is the longest id of a request, in bytes.
const maxRequestIDBytes = 256

// A messageIDScanner finds the top-level "id" of an object while its bytes are streamed, in constant memory,
// even if the rest is invalid JSON.
type messageIDScanner struct {
	depth              int
	inString, escaped  bool
	inValue            bool   // after a colon at the top level
	lastKey, lastValue []byte // the last key and value at the top level, truncated
	foundID            []byte
	done               bool
}

func (s *messageIDScanner) feed(text []byte) {
	for _, c := range text {
		if s.done {
			return
		}
		s.scanByte(c)
	}
}

func (s *messageIDScanner) scanByte(c byte) {
	top := s.depth == 1
	switch {
	case s.inString:
		s.storeByte(c, top)
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.inString = false
		}
		return
	case c == '"':
		s.inString = true
		if top && !s.inValue {
			s.lastKey = s.lastKey[:0]
		}
	case c == '{' || c == '[':
		s.depth++
		return
	case c == '}' || c == ']':
		s.depth--
		s.endMember(top)
		return
	case top && c == ':':
		s.inValue, s.lastValue = true, s.lastValue[:0]
		return
	case top && c == ',':
		s.endMember(top)
		return
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		return
	}
	s.storeByte(c, top)
}

// storeByte stores a byte of a key or value at the top level.
func (s *messageIDScanner) storeByte(c byte, isTopLevel bool) {
	switch {
	case !isTopLevel:
	case s.inValue && len(s.lastValue) <= maxRequestIDBytes:
		s.lastValue = append(s.lastValue, c)
	case !s.inValue && len(s.lastKey) <= len(`"id"`):
		s.lastKey = append(s.lastKey, c)
	}
}

// endMember handles the comma or bracket that ends a member or an element. If this is the top-level member "id"
// with a value of at most maxRequestIDBytes, its value is stored and the scan ends.
func (s *messageIDScanner) endMember(isTopLevel bool) {
	if isTopLevel && s.inValue && string(s.lastKey) == `"id"` && len(s.lastValue) <= maxRequestIDBytes {
		s.foundID, s.done = bytes.Clone(s.lastValue), true
	}
	s.inValue = false
	s.lastKey = s.lastKey[:0]
}

// id returns the id of the scanned message, in canonical form; nil if no id was found.
func (s *messageIDScanner) id() []byte { return canonicalID(s.foundID) }
