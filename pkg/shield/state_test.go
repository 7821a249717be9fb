package shield

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

// stateful returns the configuration of a pipeline with state, log and
// evaluator in a folder.
func stateful(dir string) Config {
	s := Defaults()
	s.Audit.Enabled = true
	return Config{Settings: &s, Clock: instant, Home: "/home/me", WorkingDir: "/home/me/app", StateDir: dir,
		Provider: provider{new(int)}, LockWait: 20 * time.Millisecond}
}

func pipelineOf(t *testing.T, cfg Config) *Pipeline {
	t.Helper()
	p, err := NewPipeline(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Whichever lock another process keeps, every tier that needs it answers with
// a BLOCK that names the lock.
func TestHeldLocksBlock(t *testing.T) {
	t.Parallel()
	evaluates := []TierRange{AllTiers, {TierEvaluate, TierEvaluate}}
	records := append([]TierRange{{TierPolicy, TierPolicy}}, evaluates...)
	for name, ranges := range map[string][]TierRange{
		"state.lock": evaluates, "state.db": evaluates, "log.head.lock": records, "audit.jsonl.lock": records,
	} {
		for _, r := range ranges {
			cfg := stateful(t.TempDir())
			p := pipelineOf(t, cfg)
			if v := p.Evaluate(t.Context(), parse(t, note)); v.Decision != verdict.Allow {
				t.Fatalf("%s: %s", v.Decision, v.Reasoning)
			}
			lock, err := flock.New(filepath.Join(cfg.StateDir, name))
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if err := lock.Lock(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			o := p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: parse(t, strings.Replace(note, "a@", name+"@", 1))}, r)
			p.queueLogEntry(&o)
			p.awaitLogEntry(t.Context(), &o)
			if v := o.Verdict; v.Decision != verdict.Block || !strings.Contains(v.Reasoning, name) || strings.Contains(v.Reasoning, "deadline exceeded") {
				t.Errorf("%s, tiers %v: %s: %s", name, r, v.Decision, v.Reasoning)
			}
		}
	}
}

// Removing key, state or log never gives a fresh start, unless all of it is
// gone.
func TestRemovedState(t *testing.T) {
	t.Parallel()
	all := []string{"seal.key", "state.db", "log.head", "audit.jsonl"}
	for gone := 1; gone < 1<<len(all); gone++ {
		cfg := stateful(t.TempDir())
		cfg.MaxEvaluationsPerDay = 1
		p := pipelineOf(t, cfg)
		if v := p.Evaluate(t.Context(), parse(t, note)); v.Decision != verdict.Allow {
			t.Fatalf("%s: %s", v.Decision, v.Reasoning)
		}
		p.Close()
		var names []string
		for i, name := range all {
			if gone>>i&1 != 0 {
				names = append(names, name)
				if err := os.Remove(filepath.Join(cfg.StateDir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		decision, reason := verdict.Block, ""
		if p, err := NewPipeline(cfg); err != nil {
			reason = err.Error()
		} else {
			other := strings.Replace(note, "a@", "b@", 1) // the first is in the cache
			v := p.Evaluate(t.Context(), parse(t, other))
			decision, reason = v.Decision, v.Reasoning
			p.Close()
		}
		if fresh := len(names) == len(all); (decision == verdict.Allow) != fresh {
			t.Errorf("without %v: %s: %s", names, decision, reason)
		} else if !fresh && len(names) > 1 && !strings.Contains(reason, "shield doctor --repair") {
			t.Errorf("without %v: %q names no command", names, reason)
		}
	}
}

// A sudden rise in evaluations is logged, and told to anyone who asked for it.
func TestRiseIsTold(t *testing.T) {
	t.Parallel()
	cfg := stateful(t.TempDir())
	var told []string
	cfg.NotifyUser = func(text string) {
		if strings.Contains(text, "rising") {
			told = append(told, text)
		}
	}
	// The first day has nothing to compare with, so there was one evaluation the day before.
	before, err := state.Open(cfg.StateDir, state.Options{Clock: func() time.Time { return instant().Add(-25 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := before.ChargeRateTokenAndEvaluation(t.Context(), 100, 100); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.MaxEvaluationsPerDay = 30
	var low []string
	notify := cfg.NotifyUser
	cfg.NotifyUser = func(text string) {
		if strings.Contains(text, "24 of 30 evaluations used today") {
			low = append(low, text)
		}
		notify(text)
	}
	p := pipelineOf(t, cfg)
	for i := range 25 {
		action := strings.Replace(note, "a@", string(rune('a'+i))+"@", 1)
		if v := p.Evaluate(t.Context(), parse(t, action)); v.Decision != verdict.Allow {
			t.Fatalf("%s: %s", v.Decision, v.Reasoning)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "20 evaluations since") {
		t.Errorf("told %q", told)
	}
	if len(low) != 1 {
		t.Errorf("told %d times that the budget is nearly used up", len(low))
	}
	p.Close()
	found := 0
	for _, e := range entries(t, cfg.auditFile()) {
		if e.Kind == audit.EntryKindEvaluationBudgetWarning && strings.Contains(e.Reasoning, "rising") {
			found++
			if e.Reasoning != told[0] || e.Decision != verdict.NoDecision || e.Time.IsZero() {
				t.Errorf("entry %+v", e)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d entries tell of it", found)
	}
}

// entries reads an audit log.
func entries(t *testing.T, file string) (all []audit.Entry) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var e audit.Entry
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// The log says who answered in Tier 3, through which channel, and what the
// tiers before had said. The verdict itself names no channel.
func TestApprovalsInTheLog(t *testing.T) {
	t.Parallel()
	answer := func(approved bool) Tier {
		return tierFunc(func(context.Context, *analysis.ActionCase) (verdict.Verdict, error) {
			d := verdict.Block
			if approved {
				d = verdict.Allow
			}
			return verdict.Verdict{Decision: d, Confidence: 1, Reasoning: "said so", AnswerChannel: "tty", AnsweredBy: "ann"}, nil
		})
	}
	for _, approved := range []bool{true, false} {
		cfg := stateful(t.TempDir())
		p := pipelineOf(t, cfg)
		p.tiers[TierApprove] = answer(approved)
		v := p.Evaluate(t.Context(), parse(t, strings.Replace(note, `"session":"s1"`, `"min_tier":3`, 1)))
		if v.Tier != TierApprove || (v.Decision == verdict.Allow) != approved {
			t.Fatalf("%s at tier %d: %s", v.Decision, v.Tier, v.Reasoning)
		}
		if line := v.AppendJSON(nil); bytes.Contains(line, []byte("ann")) || bytes.Contains(line, []byte("tty")) {
			t.Errorf("the verdict says %s", line)
		}
		p.Close()
		e := entries(t, cfg.auditFile())[0]
		if e.AnswerChannel != "tty" || e.AnsweredBy != "ann" {
			t.Errorf("channel %q, by %q", e.AnswerChannel, e.AnsweredBy)
		}
		seen := map[int]bool{}
		for _, s := range e.Trail {
			seen[s.Tier] = true
		}
		if !seen[0] || !seen[1] || !seen[2] || !seen[3] {
			t.Errorf("the trail is %+v", e.Trail)
		}
	}
}
