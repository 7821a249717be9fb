package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/exam"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/shield"
)

// probeFlag makes a process ask the model the probes (single exam questions) that are due, after
// another process has answered the host.
const probeFlag = "probe"

// examFlags are the flags of evaluate for exams.
func examFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "exam", Usage: "examine the configured model instead: 120 new actions, half of them attacks; twice a day at most; reads no input"},
		&cli.BoolFlag{Name: "json", Usage: "write the result of --exam as JSON"},
		&cli.BoolFlag{Name: probeFlag, Hidden: true},
	}
}

// takeExam examines the model of the settings and prints its result.
func takeExam(c *cli.Context, w *World) error {
	n, err := jobs(c)
	if err != nil {
		return err
	}
	if _, err := operands(c); err != nil {
		return err
	}
	if err := requirePerson(w, "evaluate --exam", notByAgent); err != nil {
		return err
	}
	return holdExam(c, w, n)
}

// holdExam examines the model of the settings with n questions at a time, and prints its
// result.
func holdExam(c *cli.Context, w *World, n int) error {
	set, p, err := pipeline(c, w, false)
	if err != nil {
		return err
	}
	line := progress{err: w.Err, live: isTerminal(w.Err)}
	r, err := p.Exam(c.Context, shield.ExamOptions{Jobs: n, Progress: func(done int) {
		line.show(done, fmt.Sprintf("of %d questions answered", 2*exam.Attacks))
	}})
	line.clear()
	if closing := p.Close(); err == nil {
		err = closing
	}
	switch {
	case err != nil:
		return fmt.Errorf("exam: %w", err)
	case c.Bool("json"):
		err = json.NewEncoder(w.Out).Encode(struct {
			*shield.ExamResult
			Cost float64 `json:"cost,omitempty"`
		}{r, r.Cost(set.Evaluator.Price)})
	default:
		_, err = fmt.Fprintln(w.Out, shownLines(strings.Split(examReport(r, set.Evaluator.Price), "\n")))
	}
	if err == nil && (r.Fails() != "" || r.Hinders() != "") {
		return &statusError{statusBlock, nil}
	}
	return err
}

// examReport returns the result of an exam as text for people.
func examReport(r *shield.ExamResult, price config.Price) string {
	var b bytes.Buffer
	percent := func(rate report.Rate) string {
		return fmt.Sprintf("%.0f %% (%.0f to %.0f)", 100*rate.Share, 100*rate.Low, 100*rate.High)
	}
	fmt.Fprintf(&b, "model      %s\n", r.Model)
	fmt.Fprintf(&b, "attacks    %3d  blocked %d, escalated %d, allowed %d; stopped %s\n", r.Attacks.Sum(), r.Attacks.Blocked, r.Attacks.Asked, r.Attacks.Allowed, percent(r.Caught()))
	fmt.Fprintf(&b, "honest     %3d  allowed %d, escalated %d, blocked %d; allowed %s\n", r.Honest.Sum(), r.Honest.Allowed, r.Honest.Asked, r.Honest.Blocked, percent(r.Passed()))
	fmt.Fprintf(&b, "allowed         %d of the %d most severe attacks, %d of the %d other attacks, %d of the %d with an injection\n", r.Grave, exam.Gravest, r.Others, exam.Attacks-exam.Gravest, r.Injected, exam.Injected)
	if len(r.Missed) > 0 {
		fmt.Fprintf(&b, "                %s\n", strings.Join(r.Missed, ", "))
	}
	fmt.Fprintf(&b, "form            %d answers that could not be read, %d without the canary, %d questions without an answer\n", r.Form, r.Canary, r.Unreached)
	fmt.Fprintf(&b, "latency         median %s, 95th percentile %s\n", config.Duration(r.Median.Round(time.Millisecond)), config.Duration(r.P95.Round(time.Millisecond)))
	if r.Tokens > 0 {
		fmt.Fprintf(&b, "tokens          %d for a prompt, %d of them computed, %d written (medians); %d for the exam\n", r.Prompts, r.Computed, r.Written, r.Tokens)
	} else {
		b.WriteString("tokens          not reported by the service\n")
	}
	switch cost := r.Cost(price); {
	case cost > 0:
		fmt.Fprintf(&b, "cost            at most %.4f, by evaluator.price\n", cost)
	case r.Tokens > 0:
		b.WriteString("cost            unknown; set evaluator.price to see it\n")
	}
	if r.OneMessage > 0 {
		b.WriteString("The service has no system role: BLOCK and ESCALATE of this model count, its ALLOW does not replace your approval.\n")
	}
	if why := r.Fails(); why != "" {
		fmt.Fprintf(&b, "Failed: %s. The model can block and escalate, its ALLOW does not replace your approval.\n", why)
	} else {
		b.WriteString("Passed: the model decides what the policy sends to it. After a tenth of its calls, shield sends it a test attack (probe).\n")
	}
	if why := r.Hinders(); why != "" {
		fmt.Fprintf(&b, "Not usable: %s. No one can allow what it blocks, so agents could not do ordinary work. %s.\n", why, insteadOfModel)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// insteadOfModel is the advice for a model that blocks ordinary work.
const insteadOfModel = "Configure a stronger model (evaluator.model), or set policy: offline to be asked yourself"

// takeProbes asks the model the probes that are due.
func takeProbes(c *cli.Context, w *World) error {
	ctx, stop := context.WithTimeout(c.Context, 2*time.Minute)
	defer stop()
	_, p, err := pipeline(c, w, false)
	if err != nil {
		return err
	}
	return errors.Join(p.Probe(ctx), p.Close())
}

// probeLater starts a process that asks the model the probes that are due, once the host has its
// answer.
func (w *World) probeLater(c *cli.Context) {
	p := w.judged
	if p == nil || !p.ProbeDue(c.Context) || w.Executable == "" {
		return
	}
	args := []string{"evaluate", "--" + probeFlag}
	for _, name := range []string{"config", "state"} {
		if c.IsSet(name) {
			args = append(args, "--"+name, c.String(name))
		}
	}
	cmd := exec.Command(w.Executable, args...)
	cmd.Dir, cmd.Env = w.Dir, w.Environ()
	if detach(cmd) && cmd.Start() == nil {
		_ = cmd.Process.Release()
	}
}
