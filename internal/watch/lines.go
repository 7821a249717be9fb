package watch

import (
	"bytes"
	"io"
	"strconv"
	"sync"
)

// Lines are the streams of a shield that an installed command line started. The reader of
// that line prints a line that begins with "!" on standard error, and one that begins with
// an exit status and holds a JSON object on standard output: it ends with that one.
type Lines struct {
	mu     sync.Mutex
	to     io.Writer
	answer bytes.Buffer
	errs   []byte // that no line feed has ended yet
}

// NewLines returns lines that are written to w.
func NewLines(w io.Writer) *Lines { return &Lines{to: w} }

// Out is standard output.
func (l *Lines) Out() io.Writer { return lineWriter(l.out) }

// Err is standard error.
func (l *Lines) Err() io.Writer { return lineWriter(l.err) }

type lineWriter func(p []byte) (int, error)

func (f lineWriter) Write(p []byte) (int, error) { return f(p) }

func (l *Lines) out(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answer.Write(p)
}

func (l *Lines) err(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, p...)
	i := bytes.LastIndexByte(l.errs, '\n')
	if i < 0 {
		return len(p), nil
	}
	err := l.flush(l.errs[:i])
	l.errs = append(l.errs[:0], l.errs[i+1:]...)
	return len(p), err
}

func (l *Lines) flush(text []byte) error {
	var b bytes.Buffer
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		b.WriteByte('!')
		b.Write(line)
		b.WriteByte('\n')
	}
	_, err := l.to.Write(b.Bytes())
	return err
}

// End writes what is left, and the answer with an exit status. An answer of several lines
// is none.
func (l *Lines) End(status int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) > 0 {
		if err := l.flush(l.errs); err != nil {
			return err
		}
	}
	_, err := l.to.Write(append(strconv.AppendInt(nil, int64(status), 10), append(bytes.TrimSuffix(l.answer.Bytes(), []byte{'\n'}), '\n')...))
	return err
}
