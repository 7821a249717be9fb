package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// An action is an action that shield judges.
type action struct {
	ID      string         `json:"id,omitempty"`
	Type    string         `json:"type"`
	Payload map[string]any `json:"payload"`
	CWD     string         `json:"cwd,omitempty"`
	Session string         `json:"session,omitempty"`
}

// text returns a field of the payload.
func (a *action) text(field string) string {
	s, _ := a.Payload[field].(string)
	return s
}

// A verdict is the part of a build's verdict that measures use.
type verdict struct {
	Decision  string
	Tier      int
	Rule      string
	Reasoning string
	Channel   string
	Trail     []struct {
		Tier      int
		Decision  string
		Rule      string
		Reasoning string
		Effects   []effect
	}
}

// An effect is an effect in a verdict's trace.
type effect struct {
	Kind, Path, URL, Host, Program, Cause, Class string
	Labels                                       []string
}

// effects returns the effects of the first tier that lists any.
func (v *verdict) effects() []effect {
	for _, t := range v.Trail {
		if len(t.Effects) > 0 {
			return t.Effects
		}
	}
	return nil
}

// A judgeProcess is a process of 'shield run' that judges actions one after another.
type judgeProcess struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	state string
}

// startJudge starts a build with its own state folder, and root as workspace.
func (o *options) startJudge(program, home, root string, flags ...string) (*judgeProcess, error) {
	state, err := os.MkdirTemp("/var/tmp", "shield-state-")
	if err != nil {
		return nil, err
	}
	args := []string{"run", "--until", cmp.Or(o.until, "classify"), "--policy", o.preset, "--trace", "--no-action", "--state", state, "--root", root}
	config := o.config
	if config == "" { // measure as outside a container, even if run in one
		config = filepath.Join(state, "measure.yaml")
		if err := os.WriteFile(config, []byte("container: no\n"), 0o600); err != nil {
			return nil, err
		}
	}
	if o.config != "" || acceptsSettings(program, config) {
		args = append(args, "--config", config)
	}
	args = append(append(args, strings.Fields(o.extra)...), flags...)
	j := &judgeProcess{cmd: exec.Command(program, args...), state: state}
	j.cmd.Dir = home
	j.cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.out = bufio.NewReaderSize(out, 1<<20)
	if err := j.cmd.Start(); err != nil {
		os.RemoveAll(state)
		return nil, err
	}
	return j, nil
}

// acceptsSettings reports whether a build accepts a settings file; older builds may not.
func acceptsSettings(program, config string) bool {
	out, _ := exec.Command(program, "policy", "--config", config).CombinedOutput() // it always fails without records
	return !strings.Contains(string(out), "unknown setting") && !strings.Contains(string(out), "unknown key")
}

func (j *judgeProcess) close() {
	j.in.Close()
	_, _ = io.Copy(io.Discard, j.out)
	_ = j.cmd.Wait() // the status is that of the worst verdict
	os.RemoveAll(j.state)
}

// judgeAction returns the verdict on one action.
func (j *judgeProcess) judgeAction(a *action) (*verdict, error) {
	line, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	if _, err := j.in.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("%s: %w", j.cmd.Path, err)
	}
	return j.readVerdict()
}

func (j *judgeProcess) readVerdict() (*verdict, error) {
	line, err := j.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("%s has ended: %w", j.cmd.Path, err)
	}
	v := new(verdict)
	if err := json.Unmarshal(line, v); err != nil {
		return nil, err
	}
	if v.Decision == "" {
		return nil, errors.New("a verdict has no decision")
	}
	return v, nil
}

// judgeActions judges many actions in one process and calls got with each verdict, in order.
func (j *judgeProcess) judgeActions(actions []action, got func(n int, v *verdict)) error {
	written := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(j.in, 1<<16)
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for i := range actions {
			if err := enc.Encode(&actions[i]); err != nil {
				written <- err
				return
			}
		}
		err := w.Flush()
		j.in.Close()
		written <- err
	}()
	for n := range actions {
		v, err := j.readVerdict()
		if err != nil {
			return fmt.Errorf("action %d: %w", n, err)
		}
		got(n, v)
	}
	return <-written
}

// readLines decodes each line of a JSON Lines file, after text replacement, and calls fn with it.
func readLines[T any](path string, replace *strings.Replacer, fn func(*T)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		if replace != nil {
			text = replace.Replace(text)
		}
		one := new(T)
		if err := json.Unmarshal([]byte(text), one); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		fn(one)
	}
	return lines.Err()
}
