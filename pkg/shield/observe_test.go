package shield

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/telemetry"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestObserve holds that each verdict is reported once, with its tiers and without a word of
// the action, and that it is the same verdict as if no one were told.
func TestObserve(t *testing.T) {
	t.Parallel()
	const records = `{"type":"execute_command","payload":{"command":"rm -rf / --no-preserve-root # hush"}}
{"type":"execute_command","payload":{"command":"git push --force origin hush"}}
not a record
{"type":"read_file","payload":{"path":"hush"}}
`
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	judge := func(observe func(telemetry.Action)) (out []verdict.Verdict) {
		cfg := Config{WorkingDir: "/work", IgnoresFileSystem: true, Clock: func() time.Time { return now }, Observe: observe}
		p, err := NewPipeline(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		in := NewActionSource(strings.NewReader(records), "stdin", 1<<20)
		if err := p.JudgeStream(t.Context(), in, func(j *InputRecordResult) error { out = append(out, j.Verdict); return nil }, StreamOptions{Tiers: TierRange{TierPolicy, TierClassify}, Jobs: 1}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	var mu sync.Mutex
	var seen []telemetry.Action
	with := judge(func(a telemetry.Action) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, a)
	})
	if diff := cmp.Diff(judge(nil), with); diff != "" {
		t.Errorf("the verdicts differ (-nobody +somebody):\n%s", diff)
	}
	if len(seen) != 4 {
		t.Fatalf("%d verdicts were told", len(seen))
	}
	for i, a := range seen {
		v := with[i]
		if a.Decision != v.Decision.String() || a.Tier != v.Tier || a.Rule != v.Rule || a.ErrorCode != v.ErrorCode || a.Start.IsZero() {
			t.Errorf("%+v is told of %+v", a, v)
		}
		if wants := v.ErrorCode == ""; wants != (len(a.Steps) > 0) || wants != (a.Type != "") {
			t.Errorf("%+v", a)
		}
	}
	for _, a := range seen {
		for _, s := range append([]telemetry.Step{{Rule: a.Rule, JudgeName: a.Type, ErrorCode: a.ErrorCode}}, a.Steps...) {
			if strings.Contains(s.Rule+s.JudgeName+s.ErrorCode, "hush") {
				t.Errorf("%+v has a part of the action", a)
			}
		}
	}
}

// TestObserveMeasures holds that steps are measured for who is told, and not in what a
// stage forwards.
func TestObserveMeasures(t *testing.T) {
	t.Parallel()
	tick := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	var seen telemetry.Action
	cfg := Config{WorkingDir: "/work", IgnoresFileSystem: true, Observe: func(a telemetry.Action) { seen = a }, Clock: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		tick = tick.Add(time.Millisecond)
		return tick
	}}
	p, err := NewPipeline(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a, err := action.Parse([]byte(`{"type":"execute_command","payload":{"command":"git push --force origin main"}}`))
	if err != nil {
		t.Fatal(err)
	}
	o := p.EvaluateThroughTier(t.Context(), a, TierClassify)
	if o.Verdict.Decision != verdict.Escalate || len(o.Verdict.Trail) == 0 {
		t.Fatalf("%+v", o.Verdict)
	}
	for _, s := range append(o.Trail(), o.Verdict.Trail...) {
		if s.LatencyMicroseconds != 0 {
			t.Errorf("the verdict has the latency of %s", s.JudgeName)
		}
	}
	if seen.Latency <= 0 || len(seen.Steps) < 2 || seen.Steps[0].Latency <= 0 {
		t.Errorf("%+v", seen)
	}
}
