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

	"github.com/shieldcli/shield/internal/contain"
	"github.com/shieldcli/shield/internal/subprocess"
	"github.com/shieldcli/shield/internal/term"
)

// Time for a server to exit after its input is closed, and again after SIGTERM; and time that its
// remaining child processes may keep its output open.
const (
	stdinCloseToTerminateDelay = 3 * time.Second
	sigtermToKillDelay         = 2 * time.Second
	outputWaitAfterChildExit   = time.Second
)

// A ServerProcess is a server in its own process group. It should exit when its input is closed;
// otherwise it is killed.
type ServerProcess struct {
	PeerStreams
	cmd           *exec.Cmd
	containment   *contain.Process // the containment; nil if the process is not contained
	done          chan struct{}    // closed when the process has ended
	err           error
	terminateOnce sync.Once
}

// StartServerProcess starts a server: the program at programPath, with argv, env and a working
// folder. Its standard error is written to stderrWriter, line by line, with control characters made
// visible. A non-nil profile contains the process by the mechanisms in with; the function refused
// receives each denied access.
func StartServerProcess(programPath string, argv, env []string, workingDir string, stderrWriter io.Writer, profile *contain.Profile, with contain.Mechanism, refused func(contain.Refusal)) (*ServerProcess, error) {
	in, its, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, their, err := os.Pipe()
	if err != nil {
		its.Close()
		return nil, err
	}
	defer their.Close()
	p := &ServerProcess{done: make(chan struct{})}
	command := func() *exec.Cmd {
		cmd := &exec.Cmd{Path: programPath, Args: argv, Env: env, Dir: workingDir, Stdin: in, Stdout: their, Stderr: &escapedLineWriter{w: stderrWriter}, WaitDelay: outputWaitAfterChildExit}
		subprocess.SetOwnProcessGroup(cmd)
		cmd.Cancel = nil // the command has no context
		setKillOnParentDeath(cmd)
		return cmd
	}
	p.PeerStreams = PeerStreams{FromPeer: out, ToPeer: &processInput{its, p}}
	started := make(chan error, 1)
	go p.run(command, profile, with, refused, out, started)
	if err := <-started; err != nil {
		its.Close()
		out.Close()
		return nil, err
	}
	return p, nil
}

// UsedMechanisms returns the mechanisms that contain the process; 0 if it is not contained.
func (p *ServerProcess) UsedMechanisms() contain.Mechanism {
	if p.containment == nil {
		return 0
	}
	return p.containment.UsedMechanisms
}

// FoldersUnsearchedForHardLinks returns the hidden folders that were not searched for hard links.
func (p *ServerProcess) FoldersUnsearchedForHardLinks() []string {
	if p.containment == nil {
		return nil
	}
	return p.containment.HardLinkSearchIncompleteFolders
}

// run starts the process and waits for it on one OS thread, since the parent-death signal is bound to
// the thread that started the process.
func (p *ServerProcess) run(command func() *exec.Cmd, profile *contain.Profile, with contain.Mechanism, refused func(contain.Refusal), out *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	var err error
	if profile == nil {
		p.cmd = command()
		err = p.cmd.Start()
	} else if p.containment, err = contain.Start(command, profile, with, refused); err == nil {
		p.cmd = p.containment.Cmd
	}
	if started <- err; err != nil {
		return
	}
	if p.err = p.cmd.Wait(); errors.Is(p.err, exec.ErrWaitDelay) {
		p.err = nil
	}
	subprocess.KillGroup(p.cmd)
	if p.containment != nil {
		p.containment.WaitForReportsAndCleanUp()
	}
	time.AfterFunc(outputWaitAfterChildExit, func() { out.Close() }) // a child that left the process group can keep it open
}

// End ends the server: at once if skipExitGrace is true, otherwise after the time that it has to
// exit by itself. It returns the error of the server's exit status.
func (p *ServerProcess) End(skipExitGrace bool) error {
	_ = p.ToPeer.Close()
	if skipExitGrace {
		p.terminate()
	}
	<-p.done
	return p.err
}

// terminate sends SIGTERM to the process group, and later SIGKILL.
func (p *ServerProcess) terminate() {
	p.terminateOnce.Do(func() {
		subprocess.TerminateGroup(p.cmd)
		if p.containment != nil { // the containment process ignores SIGTERM, since it must also end children that left the process group
			_ = p.containment.Terminate()
		}
		time.AfterFunc(sigtermToKillDelay, func() {
			select {
			case <-p.done:
			default:
				subprocess.KillGroup(p.cmd)
			}
		})
	})
}

// processInput is the standard input of a server process. After Close, the process must exit within
// stdinCloseToTerminateDelay, or it is terminated.
type processInput struct {
	io.WriteCloser
	process *ServerProcess
}

func (e *processInput) Close() error {
	err := e.WriteCloser.Close()
	time.AfterFunc(stdinCloseToTerminateDelay, func() {
		select {
		case <-e.process.done:
		default:
			e.process.terminate()
		}
	})
	return err
}

// maxStderrLineBytes is the number of bytes shown of a line of a server's standard error.
const maxStderrLineBytes = 4096

// escapedLineWriter is a writer that forwards lines with control characters made visible.
type escapedLineWriter struct {
	w         io.Writer
	line      []byte
	truncated bool
}

// Write never returns an error, so that a server does not fail because its standard error is not read.
func (v *escapedLineWriter) Write(b []byte) (int, error) {
	for _, c := range b {
		switch {
		case c == '\n':
			v.flush()
		case len(v.line) < maxStderrLineBytes:
			v.line = append(v.line, c)
		default:
			v.truncated = true
		}
	}
	return len(b), nil
}

func (v *escapedLineWriter) flush() {
	text := term.EscapeControlAndInvisible(strings.ReplaceAll(strings.TrimSuffix(string(v.line), "\r"), "\t", "    "))
	if v.truncated {
		text += " …"
	}
	v.line, v.truncated = v.line[:0], false
	_, _ = fmt.Fprintln(v.w, text)
}
