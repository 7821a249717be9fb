package watch

import (
	"bytes"
	"io"
	"strconv"
	"sync"
)

// HookScriptProtocolWriter writes the output of shield as lines for the shell script of an installed hook. The
// script prints a line that begins with "!" on standard error. A line with an exit status and a
// JSON object is the answer: the script prints the object on standard output and exits with the
// status.
type HookScriptProtocolWriter struct {
	mu                 sync.Mutex
	output             io.Writer
	bufferedHookAnswer bytes.Buffer
	partialErrorLine   []byte // the end of the error output that has no line feed yet
}

// NewHookScriptProtocolWriter returns a HookScriptProtocolWriter that writes its lines to w.
func NewHookScriptProtocolWriter(w io.Writer) *HookScriptProtocolWriter {
	return &HookScriptProtocolWriter{output: w}
}

// Stdout returns a writer for the standard output of shield. The text is the answer to the host. It is kept
// until [HookScriptProtocolWriter.WriteAnswerAndExitStatus] writes it.
func (l *HookScriptProtocolWriter) Stdout() io.Writer { return writerFunc(l.writeStdout) }

// Stderr returns a writer for the standard error of shield. It passes each complete line on at once, with "!"
// before it, and the script prints the line on its standard error.
func (l *HookScriptProtocolWriter) Stderr() io.Writer { return writerFunc(l.writeStderr) }

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (l *HookScriptProtocolWriter) writeStdout(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bufferedHookAnswer.Write(p)
}

func (l *HookScriptProtocolWriter) writeStderr(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partialErrorLine = append(l.partialErrorLine, p...)
	i := bytes.LastIndexByte(l.partialErrorLine, '\n')
	if i < 0 {
		return len(p), nil
	}
	err := l.writeErrorLines(l.partialErrorLine[:i])
	l.partialErrorLine = append(l.partialErrorLine[:0], l.partialErrorLine[i+1:]...)
	return len(p), err
}

func (l *HookScriptProtocolWriter) writeErrorLines(text []byte) error {
	var b bytes.Buffer
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		b.WriteByte('!')
		b.Write(line)
		b.WriteByte('\n')
	}
	_, err := l.output.Write(b.Bytes())
	return err
}

// WriteAnswerAndExitStatus writes the incomplete last line of the error output, and then one line
// with the exit status and the answer. The hook script accepts only an answer of one line.
func (l *HookScriptProtocolWriter) WriteAnswerAndExitStatus(exitStatus int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partialErrorLine) > 0 {
		if err := l.writeErrorLines(l.partialErrorLine); err != nil {
			return err
		}
	}
	_, err := l.output.Write(append(strconv.AppendInt(nil, int64(exitStatus), 10), append(bytes.TrimSuffix(l.bufferedHookAnswer.Bytes(), []byte{'\n'}), '\n')...))
	return err
}
