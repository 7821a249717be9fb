package verdict

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// A Writer writes verdicts as JSON Lines and flushes each, so that the next stage of a pipe can continue. It
// must not be used by several goroutines at once. After an error, every call returns that error.
type Writer struct {
	DefersFlushUntilNextVerdict bool // another verdict follows immediately; do not flush before it

	w    *bufio.Writer
	line []byte
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, 16<<10)}
}

// Write writes one verdict.
func (w *Writer) Write(v *Verdict) error {
	return w.writeLine(v.AppendJSON(w.line[:0]))
}

// PassUnchanged writes a sealed verdict unchanged. A verdict that was printed over several lines is
// joined into one line, which keeps its seal valid.
func (w *Writer) PassUnchanged(raw []byte) error {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return w.writeLine(append(w.line[:0], raw...))
	}
	return w.writeLine(appendCompact(w.line[:0], raw))
}

func (w *Writer) writeLine(line []byte) error {
	line = append(line, '\n')
	if cap(line) <= 64<<10 { // do not keep a large buffer
		w.line = line
	}
	_, err := w.w.Write(line)
	if err == nil && !w.DefersFlushUntilNextVerdict {
		err = w.w.Flush()
	}
	if err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}
