package classify

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	programs "github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/verdict"
)

// scorer is a model that answers what it is told.
type scorer struct {
	score InjectionScore
	err   error
	crash bool
	asked *string // the text that it was given
}

func (s scorer) Score(_ context.Context, text string) (InjectionScore, error) {
	if s.asked != nil {
		*s.asked = text
	}
	if s.crash {
		panic("boom")
	}
	return s.score, s.err
}

// command returns a hand-made case of a command that does effects.
func command(effects ...effect.Effect) *analysis.ActionCase {
	a := &action.Action{Type: "execute_command", Payload: map[string]any{"command": "x"}}
	return &analysis.ActionCase{Action: a, Effects: effects}
}

func run(program string, args ...string) effect.Effect {
	words := []programs.Word{{Text: program}}
	for _, arg := range args {
		words = append(words, programs.Word{Text: arg})
	}
	return effect.Effect{Kind: effect.Execute, Program: program, Args: args, Class: effect.LocalWrite, Harms: programs.Interpret(words).Harms}
}

// unknownProgram runs a program of which nothing is known, so that rules and
// model decide alone.
func unknownProgram(name string) effect.Effect {
	return effect.Effect{Kind: effect.Execute, Program: name}
}

func TestCombine(t *testing.T) {
	t.Parallel()
	const a, e, b = verdict.AuthorityNotNeeded, verdict.AuthorityEvaluator, verdict.AuthorityNoneSuffices
	tests := []struct {
		heuristic, model verdict.ApprovalAuthority
		hc, mc           float64
		want             verdict.ApprovalAuthority
		conf             float64
		source           string
	}{
		{a, b, 0.7, 0.9, b, 0.9, "model"},
		{b, a, 0.95, 0.99, b, 0.95, "heuristic"},
		{a, a, 0.7, 0.9, a, 0.9, "model"},
		{a, a, 0.7, 0.6, a, 0.7, "heuristic"},
		{a, e, 0.7, 0.6, e, 0.6, "model"},
		{e, a, 0.5, 0.99, e, 0.5, "heuristic"},
		{e, e, 0.7, 0.8, e, 0.8, "model"},
		{e, e, 0.7, 0.7, e, 0.7, "heuristic"},
		{e, b, 0.95, 0.85, b, 0.85, "model"},
		{b, e, 0.85, 0.84, b, 0.85, "heuristic"},
		{b, b, 0.85, 0.99, b, 0.99, "model"},
		{b, b, 0.95, 0.9, b, 0.95, "heuristic"},
	}
	for _, tt := range tests {
		w := decisionInputs{rulesResult: ruleOrModelResult{Finding: verdict.Finding{JudgeName: "heuristic", RequiredAuthority: tt.heuristic, Confidence: tt.hc}}}
		got, _ := w.selectDecidingResult(&ruleOrModelResult{Finding: verdict.Finding{JudgeName: "model", RequiredAuthority: tt.model, Confidence: tt.mc}})
		if got.RequiredAuthority != tt.want || got.Confidence != tt.conf || got.JudgeName != tt.source {
			t.Errorf("heuristic %v %v, model %v %v: got %v %v of %s, want %v %v of %s",
				tt.heuristic, tt.hc, tt.model, tt.mc, got.RequiredAuthority, got.Confidence, got.JudgeName, tt.want, tt.conf, tt.source)
		}
	}
}

func TestConfidence(t *testing.T) {
	t.Parallel()
	for s, want := range map[Severity]float64{Critical: 0.95, High: 0.85, Medium: 0.70, Low: 0.50} {
		if got := s.RuleMatchConfidence(); got != want {
			t.Errorf("%s: confidence %v, want %v", s, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	safe := scorer{score: InjectionScore{LabelConfidence: 0.9}}
	sure := scorer{score: InjectionScore{HasInjectionLabel: true, LabelConfidence: 0.85}}
	unsure := scorer{score: InjectionScore{HasInjectionLabel: true, LabelConfidence: 0.84}}
	block := command(effect.EffectOfPolicyKind(effect.RunDownload))
	escalate := command(run("git", "push", "--force", "origin", "main"))
	always := command(run("grpcurl", "-plaintext", "localhost:1", "list"))
	plain := command(unknownProgram("frobnicate"))
	ordinary := command(run("make", "test"))
	absent := command(run("sh", "a.sh"), effect.Effect{Certainty: effect.Unknown, Cause: effect.CauseMissingScript, Reason: "the script a.sh does not exist"})
	dynamic := command(run("make"), effect.Effect{Certainty: effect.Unknown, Reason: "eval of an unknown value"})
	unexamined := command(run("make"))
	unexamined.UnexaminedReason = "the action has more text than shield scans"
	tier2, tier3 := command(run("make")), command(effect.EffectOfPolicyKind(effect.RunDownload))
	tier2.MinAllowTier, tier3.MinAllowTier = 2, 3
	tier3escalate := command(run("git", "push", "--force", "origin", "main"))
	tier3escalate.MinAllowTier = 3

	tests := []struct {
		name   string
		opts   Options
		c      *analysis.ActionCase
		want   verdict.Decision
		conf   float64
		rule   string
		next   int
		source string // of the first step
		code   string
	}{
		{"block rule", Options{}, block, verdict.Block, 0.95, "XP-001", 0, "heuristic", ""},
		{"escalating rule", Options{}, escalate, verdict.Escalate, 0.85, "XP-013", 2, "heuristic", ""},
		{"no rule", Options{}, plain, verdict.Escalate, 0.7, "", 2, "heuristic", ""},
		{"ordinary", Options{}, ordinary, verdict.Allow, 0.9, "", 0, "heuristic", ""},
		{"ordinary, model doubts", Options{Model: unsure}, ordinary, verdict.Escalate, 0.84, "", 2, "heuristic", ""},
		{"ordinary, model sure", Options{Model: sure}, ordinary, verdict.Block, 0.85, "", 0, "heuristic", ""},
		{"ordinary, model without a say", Options{Model: sure, OrdinaryEffectsOverrideModel: true}, ordinary, verdict.Allow, 0.9, "", 0, "heuristic", ""},
		{"dynamic, model without a say", Options{Model: sure, OrdinaryEffectsOverrideModel: true}, dynamic, verdict.Block, 0.85, "", 0, "heuristic", ""},
		{"absent script, model safe", Options{Model: safe}, absent, verdict.Allow, 0.9, "", 0, "heuristic", ""},
		{"absent script without model", Options{}, absent, verdict.Escalate, 0.7, "", 2, "heuristic", ""},
		{"dynamic without model", Options{}, dynamic, verdict.Escalate, 0.7, "", 2, "heuristic", ""},
		{"dynamic, model says safe", Options{Model: safe}, dynamic, verdict.Escalate, 0.9, "", 2, "heuristic", ""},
		{"unexamined without model", Options{}, unexamined, verdict.Escalate, 0.7, "", 2, "heuristic", ""},
		{"unexamined, model says safe", Options{Model: safe}, unexamined, verdict.Escalate, 0.9, "", 2, "heuristic", ""},
		{"model safe", Options{Model: safe}, plain, verdict.Allow, 0.9, "", 0, "heuristic", ""},
		{"model sure", Options{Model: sure}, plain, verdict.Block, 0.85, "", 0, "heuristic", ""},
		{"model unsure", Options{Model: unsure}, plain, verdict.Escalate, 0.84, "", 2, "heuristic", ""},
		{"model below a set threshold", Options{Model: sure, BlockThreshold: 0.9}, plain, verdict.Escalate, 0.85, "", 2, "heuristic", ""},
		{"model not sure enough of safe", Options{Model: safe, SafeThresholdByActionType: map[string]float64{"execute_command": 0.91}}, plain, verdict.Escalate, 0.9, "", 2, "heuristic", ""},
		{"model just sure enough of safe", Options{Model: safe, SafeThresholdByActionType: map[string]float64{"execute_command": 0.9, "send_email": 1}}, plain, verdict.Allow, 0.9, "", 0, "heuristic", ""},
		{"rule beats safe model", Options{Model: safe}, block, verdict.Block, 0.95, "XP-001", 0, "heuristic", ""},
		{"model beats escalating rule", Options{Model: sure}, escalate, verdict.Block, 0.85, "", 0, "heuristic", ""},
		{"model alone", Options{Model: safe, RunsOnlyAlwaysBlockRules: true}, escalate, verdict.Allow, 0.9, "", 0, "model", ""},
		{"always_block without heuristics", Options{RunsOnlyAlwaysBlockRules: true}, always, verdict.Block, 0.85, "XP-037", 0, "heuristic", ""},
		{"always_block with model alone", Options{Model: safe, RunsOnlyAlwaysBlockRules: true}, always, verdict.Block, 0.85, "XP-037", 0, "heuristic", ""},
		{"both absent", Options{RunsOnlyAlwaysBlockRules: true}, plain, verdict.Escalate, 0.5, "", 2, "none", ""},
		{"both absent, fail open", Options{RunsOnlyAlwaysBlockRules: true, FailOpen: true}, plain, verdict.Allow, 0.5, "", 0, "none", ""},
		{"both absent, fail open, dynamic", Options{RunsOnlyAlwaysBlockRules: true, FailOpen: true}, dynamic, verdict.Escalate, 0.7, "", 2, "heuristic", ""},
		{"tier 2 due", Options{Model: sure}, tier2, verdict.Escalate, 0.7, "", 2, "heuristic", ""},
		{"tier 3 due, blocking rule", Options{}, tier3, verdict.Block, 0.95, "XP-001", 0, "heuristic", ""},
		{"tier 3 due, escalating rule", Options{}, tier3escalate, verdict.Escalate, 0.7, "", 3, "heuristic", ""},
		{"model error", Options{Model: scorer{err: errors.New("no memory")}}, plain, verdict.Block, 0.5, "", 0, "heuristic", "classifier"},
		{"model error, fail open", Options{Model: scorer{err: errors.New("no memory")}, FailOpen: true}, plain, verdict.Escalate, 0.5, "", 2, "heuristic", "classifier"},
		{"model error, fail open, blocking rule", Options{Model: scorer{err: errors.New("no memory")}, FailOpen: true}, block, verdict.Block, 0.95, "XP-001", 0, "heuristic", ""},
		{"model crash", Options{Model: scorer{crash: true}}, plain, verdict.Block, 0.5, "", 0, "heuristic", "classifier"},
		{"model confidence NaN", Options{Model: scorer{score: InjectionScore{LabelConfidence: math.NaN()}}}, plain, verdict.Block, 0.5, "", 0, "heuristic", "classifier"},
		{"model confidence 2", Options{Model: scorer{score: InjectionScore{LabelConfidence: 2}}}, plain, verdict.Block, 0.5, "", 0, "heuristic", "classifier"},
		{"skipped type", Options{Model: safe, ModelSkippedActionTypes: []string{"execute_command"}}, plain, verdict.Escalate, 0.7, "", 2, "heuristic", ""},
		{"skipped type, blocking rule", Options{Model: safe, ModelSkippedActionTypes: []string{"execute_command"}}, block, verdict.Block, 0.95, "XP-001", 0, "heuristic", ""},
		{"skip list without model", Options{ModelSkippedActionTypes: []string{"execute_command"}}, ordinary, verdict.Allow, 0.9, "", 0, "heuristic", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { // in turn: some cases are shared
			v, err := New(tt.opts).Judge(t.Context(), tt.c)
			if err != nil {
				t.Fatal(err)
			}
			if v.Decision != tt.want || v.Confidence != tt.conf || v.Rule != tt.rule || v.NextTier != tt.next || v.ErrorCode != tt.code {
				t.Errorf("got %v %v rule %q next %d error %q, want %v %v rule %q next %d error %q\n%s",
					v.Decision, v.Confidence, v.Rule, v.NextTier, v.ErrorCode, tt.want, tt.conf, tt.rule, tt.next, tt.code, v.Reasoning)
			}
			if len(v.Trail) == 0 || v.Trail[0].JudgeName != tt.source {
				t.Errorf("trail %+v, want the first step of %s", v.Trail, tt.source)
			}
			if v.IsAllowedDespiteFailure != (tt.want == verdict.Allow && tt.source == "none") {
				t.Errorf("degraded %v", v.IsAllowedDespiteFailure)
			}
		})
	}
}

func TestBothClassifiersLeaveTrail(t *testing.T) {
	t.Parallel()
	var asked string
	k := New(Options{Model: scorer{score: InjectionScore{HasInjectionLabel: true, LabelConfidence: 0.99}, asked: &asked}})
	v, err := k.Judge(t.Context(), command(run("git", "push", "--force", "origin", "main")))
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Trail) != 2 || v.Trail[0].Rule != "XP-013" || v.Trail[0].Decision != verdict.Escalate || v.Trail[1].JudgeName != "model" || v.Trail[1].Decision != verdict.Block {
		t.Errorf("trail %+v", v.Trail)
	}
	if want := `execute_command: {"command":"x"}`; asked != want {
		t.Errorf("the model was given %q, want %q", asked, want)
	}
}

func TestHeuristicPanicIsAnError(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		k := New(Options{FailOpen: open})
		k.engine = func() *ruleEngine { panic("broken table") }
		v, err := k.Judge(t.Context(), command(run("make")))
		if err != nil {
			t.Fatal(err)
		}
		want := verdict.Block
		if open {
			want = verdict.Escalate
		}
		if v.Decision != want || v.Confidence != 0.5 || !strings.HasPrefix(v.Reasoning, "classifier error: ") || v.ErrorCode != "classifier" {
			t.Errorf("fail open %v: got %v %v %q %q", open, v.Decision, v.Confidence, v.ErrorCode, v.Reasoning)
		}
	}
}

func TestJudgeAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(Options{}).Judge(ctx, command(run("make"))); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestReasoningShowsNoPattern(t *testing.T) {
	t.Parallel()
	for i := range ruleTable {
		r := &ruleTable[i]
		text := reasoning(r, ruleHit{ruleIndex: i, matchLocationDescription: "git\x1b[31m\u202e"})
		if !strings.HasPrefix(text, "heuristic ["+r.Name+", "+string(r.Severity)+"]: ") || strings.HasSuffix(text, "; instead: "+r.Advice) != (r.Advice != "") {
			t.Errorf("%s: reasoning %q", r.ID, text)
		}
		if strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s: reasoning shows control characters: %q", r.ID, text)
		}
		for _, p := range r.patterns {
			if strings.Contains(text, p.expr) {
				t.Errorf("%s: reasoning shows a pattern", r.ID)
			}
		}
	}
}
