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

// modelProbesFlagName makes a process ask the model the probes (single exam questions) that are due, after
// another process has answered the host.
const modelProbesFlagName = "probe"

// modelExamFlags are the flags of evaluate for exams.
func modelExamFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "exam", Usage: "examine the configured model instead: 120 new actions, half of them attacks; twice a day at most; reads no input"},
		&cli.BoolFlag{Name: "json", Usage: "write the result of --exam as JSON"},
		&cli.BoolFlag{Name: modelProbesFlagName, Hidden: true},
	}
}

// runModelExamCommand examines the model of the settings and prints its result.
func runModelExamCommand(c *cli.Context, w *Environment) error {
	n, err := parallelJobs(c)
	if err != nil {
		return err
	}
	if _, err := operands(c); err != nil {
		return err
	}
	if err := requirePerson(w, "evaluate --exam", personProofNoAgentAncestor); err != nil {
		return err
	}
	return runModelExam(c, w, n)
}

// runModelExam examines the configured model, with parallelQuestions questions at a time, and
// prints the result.
func runModelExam(c *cli.Context, w *Environment, parallelQuestions int) error {
	set, p, err := newCommandLinePipeline(c, w, false)
	if err != nil {
		return err
	}
	line := progressLine{terminal: w.Err, onTerminal: isTerminal(w.Err)}
	r, err := p.RunModelExam(c.Context, shield.ModelExamOptions{Jobs: parallelQuestions, Progress: func(done int) {
		line.show(done, fmt.Sprintf("of %d questions answered", 2*exam.AttackCount))
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
			*shield.ModelExamResult
			Cost float64 `json:"cost,omitempty"`
		}{r, r.Cost(set.Evaluator.Price)})
	default:
		_, err = fmt.Fprintln(w.Out, joinLinesEscapedForTerminal(strings.Split(modelExamReportText(r, set.Evaluator.Price), "\n")))
	}
	if err == nil && (r.FailureReason() != "" || r.TooManyLegitimateBlockedReason() != "") {
		return &statusError{statusBlock, nil}
	}
	return err
}

// modelExamReportText returns the result of an exam as text for people.
func modelExamReportText(r *shield.ModelExamResult, price config.Price) string {
	var b bytes.Buffer
	percent := func(rate report.RowShareWithInterval) string {
		return fmt.Sprintf("%.0f %% (%.0f to %.0f)", 100*rate.Share, 100*rate.IntervalLowerBound, 100*rate.IntervalUpperBound)
	}
	fmt.Fprintf(&b, "model      %s\n", r.Model)
	fmt.Fprintf(&b, "attacks    %3d  blocked %d, escalated %d, allowed %d; stopped %s\n", r.Attacks.Sum(), r.Attacks.Blocked, r.Attacks.Asked, r.Attacks.Allowed, percent(r.AttacksNotAllowedRate()))
	fmt.Fprintf(&b, "honest     %3d  allowed %d, escalated %d, blocked %d; allowed %s\n", r.LegitimateActions.Sum(), r.LegitimateActions.Allowed, r.LegitimateActions.Asked, r.LegitimateActions.Blocked, percent(r.LegitimateAllowedRate()))
	fmt.Fprintf(&b, "allowed         %d of the %d most severe attacks, %d of the %d other attacks, %d of the %d attacks with a prompt injection\n", r.IrreversibleAttacksAllowed, exam.IrreversibleAttackCount, r.ReversibleAttacksAllowed, exam.AttackCount-exam.IrreversibleAttackCount, r.InjectionAttacksAllowed, exam.AttackWithPromptInjectionCount)
	if len(r.AllowedExamAttackNames) > 0 {
		fmt.Fprintf(&b, "                %s\n", strings.Join(r.AllowedExamAttackNames, ", "))
	}
	fmt.Fprintf(&b, "format          %d unreadable answers, %d answers without the canary token, %d questions without an answer\n", r.FormatFailures, r.RepliesWithoutCanary, r.UnansweredQuestions)
	fmt.Fprintf(&b, "latency         median %s, 95th percentile %s\n", config.Duration(r.MedianLatency.Round(time.Millisecond)), config.Duration(r.P95Latency.Round(time.Millisecond)))
	if r.TotalTokens > 0 {
		fmt.Fprintf(&b, "tokens          %d in a prompt, %d of them not cached, %d in an answer (medians); %d in the whole exam\n", r.MedianPromptTokens, r.MedianUncachedPromptTokens, r.MedianOutputTokens, r.TotalTokens)
	} else {
		b.WriteString("tokens          not reported by the service\n")
	}
	switch cost := r.Cost(price); {
	case cost > 0:
		fmt.Fprintf(&b, "cost            at most %.4f, by evaluator.price\n", cost)
	case r.TotalTokens > 0:
		b.WriteString("cost            unknown; set evaluator.price to see it\n")
	}
	if r.RepliesWithoutSystemRole > 0 {
		b.WriteString("The service has no system role: BLOCK and ESCALATE of this model count, its ALLOW does not replace your approval.\n")
	}
	if why := r.FailureReason(); why != "" {
		fmt.Fprintf(&b, "Failed: %s. The model can block and escalate, its ALLOW does not replace your approval.\n", why)
	} else {
		b.WriteString("Passed: the model decides what the policy sends to it. After every tenth call, shield sends the model a test attack (probe).\n")
	}
	if why := r.TooManyLegitimateBlockedReason(); why != "" {
		fmt.Fprintf(&b, "Not usable: %s. No one can allow an action that the model blocks, so agents could not do ordinary work. %s.\n", why, strongerModelAdvice)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// strongerModelAdvice is the advice for a model that blocks ordinary work.
const strongerModelAdvice = "Configure a stronger model (evaluator.model), or set policy: offline to be asked yourself"

// runDueModelProbes asks the model the probes that are due.
func runDueModelProbes(c *cli.Context, w *Environment) error {
	ctx, stop := context.WithTimeout(c.Context, 2*time.Minute)
	defer stop()
	_, p, err := newCommandLinePipeline(c, w, false)
	if err != nil {
		return err
	}
	return errors.Join(p.RunDueModelProbes(ctx), p.Close())
}

// startDueModelProbes starts a process that runs the due model probes: test attacks that the evaluator's
// model must not allow. It is called when the host already has its answer.
func (w *Environment) startDueModelProbes(c *cli.Context) {
	p := w.judgingPipeline
	if p == nil || !p.HasDueModelProbe(c.Context) || w.ShieldExecutablePath == "" {
		return
	}
	args := []string{"evaluate", "--" + modelProbesFlagName}
	for _, name := range []string{"config", "state"} {
		if c.IsSet(name) {
			args = append(args, "--"+name, c.String(name))
		}
	}
	cmd := exec.Command(w.ShieldExecutablePath, args...)
	cmd.Dir, cmd.Env = w.WorkingDir, w.Environ()
	if tryPrepareDetachedStart(cmd) && cmd.Start() == nil {
		_ = cmd.Process.Release()
	}
}
