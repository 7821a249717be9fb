package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/watch"
)

// runHookWatchdog lets another process judge one event of a host and prints its answer. It returns an error,
// which is a denial, if that process is late, dies or writes anything but a valid answer.
func runHookWatchdog(ctx context.Context, w *Environment, hostName string, deadline time.Duration) error {
	begun := w.HookEventWatchFromInit
	if begun == nil {
		printTerminalInputHint(w, "one event of the host from the terminal, a JSON object")
		args := judgeProcessArgs(w.args, hostName)
		dial := func() watch.ServiceCall {
			return watch.DialService(serviceStateFolder(w), w.newServiceQuestion(args, nil))
		}
		begun = watch.StartEventWatch(w.In, w.verdictRequesterPID, dial, func() (*watch.Judge, error) { return w.judgeProcessStarter(args) })
	}
	answered := false
	defer func() { begun.ReleaseOrKillJudge(answered) }()
	line, err := begun.WaitForJudgeAnswer(ctx, deadline)
	if err != nil {
		return err
	}
	answer, err := parseJudgeProcessAnswer(line)
	if err != nil {
		return err
	}
	answered = true
	return answer.writeAllowOrReturnDenial(w.Out)
}

// judgeProcessArgs returns the arguments of the judge process: the arguments of its watchdog, with
// the flag --judge inserted after subcommandName.
func judgeProcessArgs(args []string, subcommandName string) []string {
	i := slices.Index(args, subcommandName)
	return slices.Insert(slices.Clone(args), i+1, "--"+watch.JudgeFlagName)
}

// parseJudgeProcessAnswer parses the line in which a judge, a second shield process, returns its answer.
func parseJudgeProcessAnswer(line []byte) (a hookAnswer, err error) {
	err = json.Unmarshal(line, &a, json.RejectUnknownMembers(true))
	if err != nil || a.Allow == (a.ReasonForAgent != "") || a.Allow && a.JudgingFailed || a.AskUser && (a.Allow || a.JudgingFailed || len(a.HostResponseJSON) == 0) || len(a.HostResponseJSON) > 0 && a.HostResponseJSON.Kind() != '{' {
		return hookAnswer{}, errors.New("hook: the second shield process gave a malformed answer; install shield again")
	}
	return a, nil
}

// writeAllowOrReturnDenial writes the answer for an allowed call, or for a question of the host, and returns any
// other answer as an error.
func (a hookAnswer) writeAllowOrReturnDenial(out io.Writer) error {
	switch {
	case a.JudgingFailed:
		return failureDenial(a.ReasonForAgent, a.HostName, a.AfterToolRan)
	case !a.Allow && !a.AskUser:
		return toolCallDenial{reasonForAgent: a.ReasonForAgent, reasonForUser: a.ReasonForUser, hostName: a.HostName, toolHasRun: a.AfterToolRan}
	case len(a.HostResponseJSON) == 0:
		return nil
	}
	line := a.HostResponseJSON
	if err := (*jsontext.Value)(&line).Compact(); err != nil {
		return fmt.Errorf("hook: %w", err)
	}
	if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
		return fmt.Errorf("hook: shield could not send the answer to the host: %w; run 'shield hook status'", err)
	}
	return nil
}

// startJudgeProcess starts shield again with other arguments. The process stays in this process group,
// since it may have to ask a person at the terminal.
func (w *Environment) startJudgeProcess(args []string) (*watch.Judge, error) {
	if w.ShieldExecutablePath == "" {
		return nil, errors.New("shield cannot find its own program file; start it by its full path")
	}
	cmd := exec.Command(w.ShieldExecutablePath, args...)
	cmd.Args[0] = "shield"
	cmd.Dir, cmd.Env, cmd.Stderr = w.WorkingDir, w.Environ(), w.Err
	return startJudgeCommand(cmd)
}

// startJudgeCommand starts cmd, a shield process that judges an event, with pipes for its standard input and
// output.
func startJudgeCommand(cmd *exec.Cmd) (*watch.Judge, error) {
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
	return &watch.Judge{Stdin: in, Stdout: out, Kill: func() { _ = cmd.Process.Kill() }}, nil
}
