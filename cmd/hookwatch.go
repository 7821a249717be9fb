package cmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/host"
)

// A judge is a process of shield that judges one event for a watchdog.
type judge struct {
	in   io.WriteCloser // ends the judge when it is closed
	out  io.Reader
	kill func()
}

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// watchHook has another process judge one event of a host, prints its answer,
// and returns an error, which is a denial, when that process is late, dies or
// answers anything but what a judge answers. A process of its own can be killed
// when it is stopped or hangs, which nothing inside it could do.
func watchHook(ctx context.Context, w *World, name string, deadline time.Duration) error {
	await(w, "one event of the host from the terminal, a JSON object")
	late := time.NewTimer(deadline + watchdogGrace)
	defer late.Stop()
	// A process that is stopped before it has become the program it is to run is
	// waited for without end.
	judge, err := inTime(late.C, func() (*judge, error) { return w.startJudge(judgeArgs(w.args, name)) })
	if err != nil {
		return fmt.Errorf("hook: start the judge: %w", err)
	}
	answered := false
	defer func() {
		_ = judge.in.Close()
		if !answered {
			judge.kill()
		}
	}()
	reading, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	event, err := readAll(reading, w.In)
	if err != nil {
		return err
	}
	question, err := json.Marshal(hookQuestion{Bytes: len(event), Parent: os.Getppid()})
	if err != nil {
		return err
	}
	said := make(chan reply, 1)
	go func() { said <- judge.ask(append(append(question, '\n'), event...)) }()
	interrupted := ctx.Done()
	for {
		select {
		case got := <-said:
			answered = got.err == nil
			return got.tell(w.Out)
		case <-interrupted: // the judge has a question on the screen to take back
			interrupted = nil
			_ = judge.in.Close()
			late.Reset(judgeGrace)
		case <-late.C:
			if ctx.Err() != nil {
				return errors.New("hook: interrupted")
			}
			return errors.New("hook: no verdict in time")
		}
	}
}

// judgeArgs returns the command line of the judge for that of its watchdog.
func judgeArgs(args []string, name string) []string {
	i := slices.Index(args, name)
	return slices.Insert(slices.Clone(args), i+1, "--"+judgeFlag)
}

// A reply is what a judge came back with.
type reply struct {
	answer hookAnswer
	err    error
}

// ask puts a question to the judge and reads its answer.
func (j *judge) ask(question []byte) (got reply) {
	if _, err := j.in.Write(question); err != nil {
		got.err = fmt.Errorf("hook: the judge ended before it was asked: %w", err)
		return got
	}
	line, err := bufio.NewReader(io.LimitReader(j.out, maxAnswer)).ReadBytes('\n')
	if err != nil {
		got.err = errors.New("hook: the judge ended without an answer")
		return got
	}
	err = json.Unmarshal(line, &got.answer, json.RejectUnknownMembers(true))
	if err != nil || got.answer.Allow == (got.answer.Reason != "") || got.answer.Allow && got.answer.Failed || len(got.answer.Answer) > 0 && got.answer.Answer.Kind() != '{' {
		got.err = errors.New("hook: the judge's answer is malformed")
	}
	return got
}

// tell tells the host what it is allowed, or returns what it is not as an error.
func (r reply) tell(out io.Writer) error {
	switch {
	case r.err != nil:
		return r.err
	case r.answer.Failed:
		return errors.New(r.answer.Reason)
	case !r.answer.Allow:
		return denial(r.answer.Reason)
	case len(r.answer.Answer) == 0:
		return nil
	}
	line := r.answer.Answer
	if err := (*jsontext.Value)(&line).Compact(); err != nil {
		return fmt.Errorf("hook: %w", err)
	}
	if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
		return fmt.Errorf("hook: the host cannot be told: %w", err)
	}
	return nil
}

// judgeProcess starts shield itself with other arguments. The process stays in
// the group of this one, since a person may have to be asked at the terminal.
func (w *World) judgeProcess(args []string) (*judge, error) {
	if w.Executable == "" {
		return nil, errors.New("the path of shield itself is unknown")
	}
	cmd := exec.Command(w.Executable, args...)
	cmd.Args[0] = "shield"
	cmd.Dir, cmd.Env, cmd.Stderr = w.Dir, w.Environ(), w.Err
	return judgeOf(cmd)
}

// judgeOf starts a command that is a judge.
func judgeOf(cmd *exec.Cmd) (*judge, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &judge{in, out, func() { _ = cmd.Process.Kill() }}, nil
}

// readAll reads a hook's input, bounded in size and by the context.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	data, err := inTime(ctx.Done(), func() ([]byte, error) { return io.ReadAll(io.LimitReader(r, host.MaxBytes+1)) })
	switch {
	case errors.Is(err, errLate):
		return nil, errors.New("hook: standard input did not end in time")
	case err != nil:
		return nil, fmt.Errorf("hook: read standard input: %w", err)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errors.New("hook: standard input is empty")
	case len(data) > host.MaxBytes:
		return nil, fmt.Errorf("hook: input larger than %d MiB", host.MaxBytes>>20)
	}
	return data, nil
}
