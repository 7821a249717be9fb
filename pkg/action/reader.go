package action

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxRecordBytes is the default maximum length of a record, in bytes.
const DefaultMaxRecordBytes = 1 << 20

// ReaderOptions are the settings of a [Reader]; the zero value works.
type ReaderOptions struct {
	InputName      string // name of the input, for messages: "stdin" or a file's name
	MaxRecordBytes int    // maximum length of a record in bytes; 0 means [DefaultMaxRecordBytes]
}

// A RawActionRecord is one proposed action in its original form.
type RawActionRecord struct {
	StartLine int    // line of the input at which the record starts, counted from 1
	Raw       []byte // bytes of the record, owned by the caller; with Err, the bytes up to the error, nil if the record is too large
	Err       error  // nil, or a [*LineError] that wraps an [*Error]: the record is not a JSON object, too large or too deep
}

// A Reader splits a stream into records: JSON Lines, several objects on a line,
// and objects over several lines, in any mixture. Blank lines
// and a byte order mark at the start of the stream are skipped.
//
// A text that is not an object, such as a broken line, is one record with an error.
// Reading continues at the next line that starts with "{", which may be inside a
// broken record: one truncated line does not affect the following ones. The rest
// of a record that is too large is skipped in constant memory.
//
// A record is returned as soon as its last byte has been read; the reader does not wait for more. It must not
// be used by several goroutines at once.
type Reader struct {
	source io.Reader
	opts   ReaderOptions
	err    error // error of source, returned when the buffer is empty

	buf                            []byte // buf[start:end] has been read but not returned
	recordStartInBuf, dataEndInBuf int
	scanPosInBuf                   int // index in buf up to which the record has been scanned
	lineAtScanPos                  int // line number at pos

	isSkippingBrokenRecord bool // after an error, skipping to the next line that starts with "{"
	isByteOrderMarkChecked bool // the check for a byte order mark is done
}

// NewReader returns a Reader that reads records from r.
func NewReader(r io.Reader, opts ReaderOptions) *Reader {
	if opts.MaxRecordBytes <= 0 {
		opts.MaxRecordBytes = DefaultMaxRecordBytes
	}
	return &Reader{source: r, opts: opts, lineAtScanPos: 1}
}

const (
	minBufferBytes = 64 << 10
	// maxEmptyReads is the maximum number of consecutive reads without data or error.
	maxEmptyReads = 100
)

// Errors of the record that is being scanned.
var (
	errTooLarge = errors.New("too large")
	errTooDeep  = errors.New("too deep")
	errFraming  = errors.New("the record is not a JSON object; write one object a line")
)

// Next returns the next record. At the end of the input it returns [io.EOF]; after a read error it
// returns first the truncated record and then the source's error. Errors in the input itself are in
// [RawActionRecord.Err].
func (r *Reader) Next() (RawActionRecord, error) {
	if err := r.seekRecord(); err != nil {
		return RawActionRecord{}, err
	}
	r.recordStartInBuf = r.scanPosInBuf
	line := r.lineAtScanPos
	if r.buf[r.scanPosInBuf] != '{' {
		err := r.skipRestOfLine()
		return r.brokenRecord(line, err, "expected an object that starts with \"{\"")
	}
	var o objectScan
	err := r.scanObject(&o)
	switch err {
	case nil:
		return RawActionRecord{StartLine: line, Raw: bytes.Clone(r.buf[r.recordStartInBuf:r.scanPosInBuf])}, nil
	case errTooLarge:
		return r.brokenRecord(line, err, "")
	}
	why := "the record is not a JSON object; write one object a line"
	if err != errFraming {
		why += ": it is truncated"
	}
	if err = r.resumeAfterBrokenObject(&o, err); err == nil && o.tooDeep {
		err = errTooDeep
	}
	return r.brokenRecord(line, err, why)
}

// brokenRecord returns the error record for input that cannot be parsed.
func (r *Reader) brokenRecord(line int, cause error, why string) (RawActionRecord, error) {
	r.isSkippingBrokenRecord = true
	rec := RawActionRecord{StartLine: line}
	e := &Error{Code: InvalidJSON, Err: errors.New(why)}
	switch cause {
	case errTooLarge:
		e = &Error{Code: TooLarge, Err: fmt.Errorf("the record is longer than %d bytes; split it, or raise --max-bytes", r.opts.MaxRecordBytes)}
	case errTooDeep:
		e = &Error{Code: TooDeep, Err: fmt.Errorf("the record is nested deeper than %d levels; flatten it", MaxJSONNestingDepth)}
	}
	if cause != errTooLarge {
		rec.Raw = bytes.Clone(bytes.TrimRight(r.buf[r.recordStartInBuf:r.scanPosInBuf], "\r\n"))
	}
	rec.Err = &LineError{InputName: r.opts.InputName, Line: line, Err: e}
	return rec, nil
}

// seekRecord moves to the first byte of the next record.
func (r *Reader) seekRecord() error {
	if !r.isByteOrderMarkChecked {
		if err := r.skipByteOrderMark(); err != nil {
			return err
		}
	}
	for r.isSkippingBrokenRecord {
		r.recordStartInBuf = r.scanPosInBuf
		if err := r.ensureBytes(1); err != nil {
			return err
		}
		if r.buf[r.scanPosInBuf] == '{' && (r.scanPosInBuf == 0 || r.buf[r.scanPosInBuf-1] == '\n') {
			r.isSkippingBrokenRecord = false
			return nil
		}
		if i := bytes.IndexByte(r.buf[r.scanPosInBuf:r.dataEndInBuf], '\n'); i >= 0 {
			r.scanPosInBuf += i + 1
			r.lineAtScanPos++
		} else {
			r.scanPosInBuf = r.dataEndInBuf
		}
	}
	for {
		for ; r.scanPosInBuf < r.dataEndInBuf; r.scanPosInBuf++ {
			switch r.buf[r.scanPosInBuf] {
			case '\n':
				r.lineAtScanPos++
			case ' ', '\t', '\r':
			default:
				return nil
			}
		}
		r.recordStartInBuf = r.scanPosInBuf
		if err := r.ensureBytes(1); err != nil {
			return err
		}
	}
}

// skipByteOrderMark skips a byte order mark, which Windows programs write before UTF-8.
func (r *Reader) skipByteOrderMark() error {
	const mark = "\uFEFF"
	if err := r.ensureBytes(1); err != nil {
		return err
	}
	r.isByteOrderMarkChecked = true
	if r.buf[r.scanPosInBuf] != mark[0] {
		return nil
	}
	if err := r.ensureBytes(len(mark)); err == nil && string(r.buf[r.scanPosInBuf:r.scanPosInBuf+len(mark)]) == mark {
		r.scanPosInBuf += len(mark)
	}
	return nil
}

// skipRestOfLine moves past the end of the current line, or to the end of the input.
func (r *Reader) skipRestOfLine() error {
	for {
		if i := bytes.IndexByte(r.buf[r.scanPosInBuf:r.dataEndInBuf], '\n'); i >= 0 {
			r.scanPosInBuf += i + 1
			r.lineAtScanPos++
			if r.scanPosInBuf-r.recordStartInBuf > r.opts.MaxRecordBytes+1 {
				return errTooLarge
			}
			return nil
		}
		r.scanPosInBuf = r.dataEndInBuf
		if err := r.readMore(); err != nil {
			if err == errTooLarge {
				return err
			}
			return nil
		}
	}
}

// ensureBytes makes n bytes available at pos. It returns the source's error if the input is too short.
func (r *Reader) ensureBytes(n int) error {
	for r.dataEndInBuf-r.scanPosInBuf < n {
		if err := r.readMore(); err != nil {
			return err
		}
	}
	return nil
}

// readMore reads available data from the source, at least one byte. It keeps buf[recordStartInBuf:dataEndInBuf]
// and the byte before it, which shows whether the record starts at the start of a line.
func (r *Reader) readMore() error {
	if r.scanPosInBuf-r.recordStartInBuf > r.opts.MaxRecordBytes {
		return errTooLarge
	}
	if r.err != nil {
		return r.err
	}
	keep := max(r.recordStartInBuf-1, 0)
	if r.dataEndInBuf == len(r.buf) && keep > 0 {
		copy(r.buf, r.buf[keep:r.dataEndInBuf])
		r.recordStartInBuf, r.scanPosInBuf, r.dataEndInBuf = r.recordStartInBuf-keep, r.scanPosInBuf-keep, r.dataEndInBuf-keep
	}
	if r.dataEndInBuf == len(r.buf) {
		grown := make([]byte, min(max(2*len(r.buf), minBufferBytes), r.opts.MaxRecordBytes+minBufferBytes))
		copy(grown, r.buf)
		r.buf = grown
	}
	for range maxEmptyReads {
		n, err := r.source.Read(r.buf[r.dataEndInBuf:])
		if n < 0 || n > len(r.buf)-r.dataEndInBuf {
			r.err = errors.New("internal error: the reader of the input returned an impossible count; please report this")
			return r.err
		}
		r.dataEndInBuf += n
		r.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}
