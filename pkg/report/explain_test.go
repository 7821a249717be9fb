package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/allocated"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// explanation returns one of a command, judged as given.
func explanation(tb testing.TB, command string, v *verdict.Verdict, effects []effectWithRules, views []judgedTextVariant) Explanation {
	tb.Helper()
	text, err := json.Marshal(map[string]any{"type": "execute_command", "payload": map[string]any{"command": command}})
	if err != nil {
		tb.Fatal(err)
	}
	a, err := action.Parse(text)
	if err != nil {
		tb.Skip(err)
	}
	if len(v.Trail) == 0 {
		v.Trail = []verdict.TierStep{{JudgeName: "policy", Decision: verdict.Escalate, Confidence: 1, Reasoning: "no rule matches"}}
	}
	if v.Trail[0].Effects, err = json.Marshal(effects); err != nil {
		tb.Fatal(err)
	}
	if v.Trail[0].JudgedActionTextVariants, err = json.Marshal(views); err != nil {
		tb.Fatal(err)
	}
	return Explanation{Action: a, Verdict: v}
}

func draw(tb testing.TB, e Explanation, s Style) string {
	tb.Helper()
	var b bytes.Buffer
	if err := WriteExplanation(&b, e, s); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// unmet returns effects that no rule is about.
func unmet(effects ...effect.Effect) []effectWithRules {
	out := make([]effectWithRules, len(effects))
	for i, e := range effects {
		out[i].Effect = e
	}
	return out
}

// TestRulesOfEffects checks that each effect is above the rules that count
// for it, and that a narrow terminal shows their names in full.
func TestRulesOfEffects(t *testing.T) {
	t.Parallel()
	const command = "cat a b"
	effects := unmet(
		effect.Effect{Kind: effect.ReadFile, Path: "/w/" + strings.Repeat("a", 60), Span: effect.CommandTextSpan{Start: 4, End: 5}},
		effect.Effect{Kind: effect.ReadFile, Path: "/w/b", Span: effect.CommandTextSpan{Start: 6, End: 7}},
	)
	effects[0].Rules = []analysis.RuleMatch{{RuleNameOrID: "credential_files"}, {RuleNameOrID: "home_\x1b[2J"}, {Tier: 1, RuleNameOrID: "XP-001", Uncertain: true}}
	want := `  ├─ a
  │     read_file /w/aaaaaaaaaaaaaaaaaa…
  │       tier 0: credential_files,
  │       home_<U+001B>[2J; tier 1:
  │       XP-001 (perhaps)
  └─ b
        read_file /w/b
`
	got := draw(t, explanation(t, command, &verdict.Verdict{Decision: verdict.Block}, effects, nil), Style{Columns: 40})
	if !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant it to hold\n%s", got, want)
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	const command = "sudo rm -rf /x; cat y"
	e := explanation(t, command, &verdict.Verdict{Decision: verdict.Escalate, NextTier: 2}, unmet(
		effect.Effect{Kind: effect.ReadFile, Path: "/w/y", Span: effect.CommandTextSpan{Start: 20, End: 21}}, // before the part that it is in
		effect.Effect{Kind: effect.Execute, Program: "cat", Args: []string{"y"}, Span: effect.CommandTextSpan{Start: 16, End: 21}},
		effect.Effect{Kind: effect.ChangePrivilege, Program: "sudo", Span: effect.CommandTextSpan{Start: 0, End: 14}},
		effect.Effect{Kind: effect.DeleteFile, Path: "/x", Recursive: true, IsRestorableWithoutBackup: true, Span: effect.CommandTextSpan{Start: 12, End: 14}},
		effect.Effect{Certainty: effect.Unknown, Reason: "nobody knows", Span: effect.CommandTextSpan{}},
		effect.Effect{Certainty: effect.Unknown, Reason: "outside", Span: effect.CommandTextSpan{Start: 50, End: 10}},
	), nil)
	want := `  execute_command sudo rm -rf /x; cat y
  │  dynamic (nobody knows)
  │  dynamic (outside)
  ├─ sudo rm -rf /x
  │  │  change_privilege sudo
  │  └─ /x
  │        delete_file /x/** (in the last commit)
  └─ cat y
     │  execute cat y
     └─ y
           read_file /w/y
`
	if got := draw(t, e, Style{Columns: 80}); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant it to hold\n%s", got, want)
	}
}

// TestEvidence draws how sure the model has to be, and what it said.
func TestEvidence(t *testing.T) {
	t.Parallel()
	for want, evidence := range map[string]*analysis.Tier1DecisionEvidence{
		"  for ALLOW\n      ordinary\n  the model was not asked\n":                                                                {AllowReason: "ordinary"},
		"      only the model can allow this action (SAFE, confidence ≥ 0.53)\n  the model gave no answer; run 'shield doctor'\n": {RequiredSafeConfidence: 0.53, Answer: &analysis.ModelAnswer{Failed: true}},
		"  against: absent\n      r\n      the model may allow this (SAFE)\n  the model: SAFE, confidence 0.61":                   {Doubts: []analysis.EffectSafetyDoubt{{CauseName: "absent", Reason: "r"}}, Answer: &analysis.ModelAnswer{Confidence: 0.61}},
		"      r\n      the model may allow this (SAFE, confidence ≥ 0.75)\n  the model: INJECTION, confidence 0.70":              {Doubts: []analysis.EffectSafetyDoubt{{CauseName: "syntax", Reason: "r", MinSafeAnswerConfidence: 0.75}}, Answer: &analysis.ModelAnswer{InjectionDetected: true, Confidence: 0.7}},
		"      r\n      the model cannot allow this\n":                                                                            {Doubts: []analysis.EffectSafetyDoubt{{CauseName: "tool", Reason: "r", MinApprovingAuthority: verdict.AuthorityEvaluator}}},
		"      tier 1 cannot allow this action: tier 3 or above decides\n":                                                        {MinAllowTier: 3, AllowReason: "ordinary"},
	} {
		e := explanation(t, "ls", &verdict.Verdict{Decision: verdict.Escalate}, nil, nil)
		e.Evidence = evidence
		if got := draw(t, e, Style{Columns: 80}); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant it to hold\n%s", got, want)
		}
	}
}

func TestExplainNoAction(t *testing.T) {
	t.Parallel()
	got := draw(t, Explanation{Verdict: &verdict.Verdict{Decision: verdict.Block, Confidence: 1, Reasoning: "no object"}}, Style{})
	if want := "BLOCK, tier 0, confidence 1.00\n  no object\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoDecisionIsBlock checks that what a pipeline leaves undecided is not
// drawn as something else.
func TestNoDecisionIsBlock(t *testing.T) {
	t.Parallel()
	if got := draw(t, Explanation{Verdict: &verdict.Verdict{}}, Style{}); !strings.HasPrefix(got, "BLOCK") {
		t.Errorf("got %q", got)
	}
}

func TestColors(t *testing.T) {
	t.Parallel()
	e := explanation(t, "ls", &verdict.Verdict{Decision: verdict.Allow}, []effectWithRules{{Effect: effect.Effect{Kind: effect.RunCode, DataLabels: []effect.TaintLabel{effect.LabelFromNetwork}, Span: effect.CommandTextSpan{End: 1}}}}, nil)
	plain, colored := draw(t, e, Style{Columns: 80}), draw(t, e, Style{Columns: 80, Color: true})
	if strings.Contains(plain, "\x1b") {
		t.Errorf("colour nobody asked for: %q", plain)
	}
	for _, want := range []string{colorAllow + "ALLOW" + colorReset, colorUnderline + "l" + colorReset, colorBlock + "run_download" + colorReset} {
		if !strings.Contains(colored, want) {
			t.Errorf("%q lacks %q", colored, want)
		}
	}
	bare := strings.NewReplacer(colorAllow, "", colorAsk, "", colorBlock, "", colorDim, "", colorBold, "", colorUnderline, "", colorReset, "").Replace(colored)
	if bare != plain {
		t.Errorf("without colours %q, want %q", bare, plain)
	}
}

func TestExplainReportsFailedWrites(t *testing.T) {
	t.Parallel()
	e := explanation(t, "ls", &verdict.Verdict{Decision: verdict.Allow}, nil, nil)
	if err := WriteExplanation(&brokenWriter{}, e, Style{}); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

// TestExplainIsBounded holds memory and size against a long command and
// effects that nest as deep as there are effects.
func TestExplainIsBounded(t *testing.T) {
	command := strings.Repeat("\u202e(", 20_000)
	var effects []effect.Effect
	for i := range 512 {
		effects = append(effects, effect.Effect{Kind: effect.Execute, Program: command[:3000], Span: effect.CommandTextSpan{Start: i, End: len(command) - i}})
	}
	met := unmet(effects...)
	for i := range met {
		met[i].Rules = slices.Repeat([]analysis.RuleMatch{{RuleNameOrID: "rule"}}, 16)
	}
	var views []judgedTextVariant
	for range 20 {
		views = append(views, judgedTextVariant{"raw", "command", command})
	}
	e := explanation(t, command, &verdict.Verdict{Reasoning: command}, met, views)
	var got string
	if n := allocated.Bytes(func() { got = draw(t, e, Style{Columns: 40}) }); n > 64<<20 {
		t.Errorf("%d bytes allocated", n)
	}
	if len(got) > 200_000 {
		t.Errorf("%d bytes drawn", len(got))
	}
}

// FuzzExplain checks that nothing from outside reaches the terminal as a control
// character, or makes a line wider than it may be.
func FuzzExplain(f *testing.F) {
	f.Add("curl x | sh", "because", 0, 6, 9, 11)
	f.Add("\x1b]0;title\a\u202e", "e\u0301\u0301\u0301\u0301\u0301", -1, 1<<30, 3, 2)
	f.Add(strings.Repeat("漢字", 90), "\xff\xfe", 1, 5, 2, 4)
	f.Fuzz(func(t *testing.T, command, reason string, a, b, c, d int) {
		effects := []effect.Effect{
			{Kind: effect.Execute, Program: reason, Args: []string{command}, Span: effect.CommandTextSpan{Start: a, End: b}},
			{Kind: effect.Kind(reason), Path: command, Reason: reason, Span: effect.CommandTextSpan{Start: c, End: d}},
		}
		v := &verdict.Verdict{Reasoning: reason, Rule: "r", Trail: []verdict.TierStep{{JudgeName: "policy", Reasoning: command}}}
		e := explanation(t, command, v, unmet(effects...), []judgedTextVariant{{"raw", "command", command}})
		e.Evidence = &analysis.Tier1DecisionEvidence{AllowReason: command, Doubts: []analysis.EffectSafetyDoubt{{CauseName: "variable", Reason: reason, MinSafeAnswerConfidence: 0.75}}, Answer: &analysis.ModelAnswer{Confidence: 0.5}}
		got := draw(t, e, Style{Columns: 40})
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if term.EscapeControlAndInvisible(line) != line {
				t.Errorf("%q is drawn as it is", line)
			}
			if term.Width(line) > 60 {
				t.Errorf("%q is %d wide", line, term.Width(line))
			}
		}
	})
}

func BenchmarkExplain(b *testing.B) {
	e := explanation(b, "cat a | sort > b", &verdict.Verdict{Decision: verdict.Allow}, unmet(
		effect.Effect{Kind: effect.ReadFile, Path: "/w/a", Span: effect.CommandTextSpan{Start: 4, End: 5}}, effect.Effect{Kind: effect.WriteFile, Path: "/w/b", Span: effect.CommandTextSpan{Start: 15, End: 16}},
	), []judgedTextVariant{{"raw", "command", "cat a | sort > b"}})
	var out bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		if err := WriteExplanation(&out, e, Style{Columns: 80}); err != nil {
			b.Fatal(err)
		}
	}
}
