package verdict

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// A Writer writes verdicts as JSON Lines and flushes them, so that the next stage of
// a pipe can go on. It must not be used by several goroutines at
// once. After an error, each call returns it.
type Writer struct {
	More bool // another verdict follows at once, which is flushed with this one

	w    *bufio.Writer
	line []byte
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, 16<<10)}
}

// Write writes one verdict.
func (w *Writer) Write(v *Verdict) error {
	return w.put(v.AppendJSON(w.line[:0]))
}

// Pass writes a sealed verdict as it was read, byte for byte. One that was
// printed over many lines is put on one, which its seal allows.
func (w *Writer) Pass(raw []byte) error {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return w.put(append(w.line[:0], raw...))
	}
	return w.put(appendCompact(w.line[:0], raw))
}

func (w *Writer) put(line []byte) error {
	line = append(line, '\n')
	if cap(line) <= 64<<10 { // a large one would stay for good
		w.line = line
	}
	_, err := w.w.Write(line)
	if err == nil && !w.More {
		err = w.w.Flush()
	}
	if err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}
