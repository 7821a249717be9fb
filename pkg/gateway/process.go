package gateway

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/subprocess"
	"github.com/shieldcli/shield/internal/term"
)

// How long a server may take to end once its input is closed, and once more after
// it was told to end; and how long what it leaves behind may hold its output.
const (
	endGrace  = 3 * time.Second
	termGrace = 2 * time.Second
	leftGrace = time.Second
)

// A Process is a server in a process group of its own, which ends when its input
// is closed, or is made to.
type Process struct {
	Side
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error
	once sync.Once
}

// Start starts a server: the program at a path, with a command line, an
// environment and a folder. What it writes to its standard error goes to errs,
// line by line, with controls made visible.
func Start(path string, argv, env []string, dir string, errs io.Writer) (*Process, error) {
	p := &Process{done: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: path, Args: argv, Env: env, Dir: dir, Stderr: &visibleLines{w: errs}, WaitDelay: leftGrace}
	subprocess.OwnGroup(p.cmd)
	p.cmd.Cancel = nil // of a command without a context
	tie(p.cmd)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, its, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout = its
	p.Side = Side{Out: out, In: &ending{in, p}}
	started := make(chan error, 1)
	go p.run(out, its, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the process and waits for it, on one thread: where the process is
// tied to what started it, it is tied to the thread.
func (p *Process) run(out, its *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	its.Close()
	if started <- err; err != nil {
		out.Close()
		return
	}
	if p.err = p.cmd.Wait(); errors.Is(p.err, exec.ErrWaitDelay) {
		p.err = nil
	}
	subprocess.KillGroup(p.cmd)
	time.AfterFunc(leftGrace, func() { out.Close() }) // which one that has left the group may hold open
}

// End ends the server: at once if it is to be hurried, else when it has had the
// time to end by itself. It returns the error of its exit status.
func (p *Process) End(hurry bool) error {
	_ = p.In.Close()
	if hurry {
		p.terminate()
	}
	<-p.done
	return p.err
}

// terminate tells the group of the process to end, and then ends it.
func (p *Process) terminate() {
	p.once.Do(func() {
		subprocess.TerminateGroup(p.cmd)
		time.AfterFunc(termGrace, func() {
			select {
			case <-p.done:
			default:
				subprocess.KillGroup(p.cmd)
			}
		})
	})
}

// ending is the input of a process, which has to end once it is closed.
type ending struct {
	io.WriteCloser
	p *Process
}

func (e *ending) Close() error {
	err := e.WriteCloser.Close()
	time.AfterFunc(endGrace, func() {
		select {
		case <-e.p.done:
		default:
			e.p.terminate()
		}
	})
	return err
}

// maxErrLine is how much of a line of a server's standard error is shown, in
// bytes.
const maxErrLine = 4096

// visibleLines passes lines on as a terminal may show them.
type visibleLines struct {
	w    io.Writer
	line []byte
	over bool
}

// Write never fails: a server must not end because no one reads its errors.
func (v *visibleLines) Write(b []byte) (int, error) {
	for _, c := range b {
		switch {
		case c == '\n':
			v.flush()
		case len(v.line) < maxErrLine:
			v.line = append(v.line, c)
		default:
			v.over = true
		}
	}
	return len(b), nil
}

func (v *visibleLines) flush() {
	text := term.Escape(strings.ReplaceAll(strings.TrimSuffix(string(v.line), "\r"), "\t", "    "))
	if v.over {
		text += " …"
	}
	v.line, v.over = v.line[:0], false
	_, _ = fmt.Fprintln(v.w, text)
}
