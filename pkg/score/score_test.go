package score

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// byWord decides by the command alone, so that what is measured is the
// counting.
func byWord(_ context.Context, a *action.Action) ActionJudgingOutcome {
	v := verdict.Verdict{Tier: 1, Confidence: float64(len(a.Text("command"))) / 100}
	switch word, _, _ := strings.Cut(a.Text("command"), " "); word {
	case "allow":
		v.Decision = verdict.Allow
	case "escalate":
		v.Decision = verdict.Escalate
	default:
		v.Decision = verdict.Block
	}
	return ActionJudgingOutcome{Verdict: v}
}

func line(id, source, label, split, command string) string {
	return fmt.Sprintf(`{"id":%q,"source":%q,"category":"c-%s","label":%q,"split":%q,"action":{"type":"execute_command","payload":{"command":%q}}}`+"\n",
		id, source, source, label, split, command)
}

var corpus = line("a1", "s1", "malicious", "dev", "allow x") +
	line("a2", "s1", "malicious", "dev", "block x") +
	line("a3", "s2", "malicious", "train", "allow it all") +
	line("h1", "s1", "benign", "dev", "allow x") +
	line("h2", "s3", "benign", "dev", "escalate x") +
	line("h3", "s3", "benign", "train", "block x") +
	"{\"id\":\"t1\",\"label\":\"benign\",\"text\":\"read me\"}\n"

func count(t *testing.T, in string, opts Options) *report.CorpusScore {
	t.Helper()
	c := New(byWord, opts)
	if err := c.Read(t.Context(), strings.NewReader(in), "in"); err != nil {
		t.Fatal(err)
	}
	return c.Report()
}

func TestCounts(t *testing.T) {
	t.Parallel()
	s := count(t, corpus, Options{MaxMisjudgedRowsPerLabel: 9})
	if s.JudgedRows != 6 || s.RowsWithoutAction != 1 || s.MalformedRows != 0 || s.ExcludedRows != 0 {
		t.Errorf("judged %d, texts %d, malformed %d, left out %d", s.JudgedRows, s.RowsWithoutAction, s.MalformedRows, s.ExcludedRows)
	}
	want := report.CorpusLabelResult{
		Total: report.DecisionCounts{RowGroupName: "total", Rows: 3, Allow: 2, Block: 1, VerdictsByTier: [4]int{1: 3}},
		Sources: []report.DecisionCounts{
			{RowGroupName: "s1", Rows: 2, Allow: 1, Block: 1, VerdictsByTier: [4]int{1: 2}},
			{RowGroupName: "s2", Rows: 1, Allow: 1, VerdictsByTier: [4]int{1: 1}},
		},
		Categories: []report.DecisionCounts{
			{RowGroupName: "c-s1", Rows: 2, Allow: 1, Block: 1, VerdictsByTier: [4]int{1: 2}},
			{RowGroupName: "c-s2", Rows: 1, Allow: 1, VerdictsByTier: [4]int{1: 1}},
		},
	}
	if d := cmp.Diff(want, s.Attacks); d != "" {
		t.Errorf("attacks (-want +got)\n%s", d)
	}
	if got := s.Benign.Total; got.Rows != 3 || got.Allow != 1 || got.Escalate != 1 || got.Block != 1 {
		t.Errorf("honest: %+v", got)
	}
	if got := ids(s.AllowedAttacks); got != "a3 a1" {
		t.Errorf("attacks that passed: %s, want the surest first", got)
	}
	if got := ids(s.StoppedBenign); got != "h3 h2" {
		t.Errorf("honest that were stopped: %s, want BLOCK first", got)
	}
}

func ids(misses []report.MisjudgedRow) string {
	var out []string
	for _, m := range misses {
		out = append(out, m.ID)
	}
	return strings.Join(out, " ")
}

func TestChoice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts                              Options
		attacks, honest, ask, out, passed int
	}{
		"all":    {Options{}, 3, 3, 0, 0, 2},
		"split":  {Options{OnlySplit: "dev"}, 2, 2, 0, 3, 1}, // the text has no split
		"source": {Options{OnlySource: "s3"}, 0, 2, 0, 5, 0},
		"nobody": {Options{OnlySource: "none"}, 0, 0, 0, 7, 0},
		"ids": {Options{SelectedRowLabelsByID: map[string]Label{"a1": LabelBenign, "h1": LabelAttack, "a2": LabelPersonDecides}},
			1, 1, 1, 4, 1},
		"empty ids": {Options{SelectedRowLabelsByID: map[string]Label{}}, 0, 0, 0, 7, 0},
	} {
		s := count(t, corpus, tt.opts)
		if s.Attacks.Total.Rows != tt.attacks || s.Benign.Total.Rows != tt.honest || s.PersonDecisionRows.Total.Rows != tt.ask || s.ExcludedRows != tt.out || s.Attacks.Total.Allow != tt.passed {
			t.Errorf("%s: attacks %d, honest %d, ask %d, left out %d, passed %d; want %+v", name,
				s.Attacks.Total.Rows, s.Benign.Total.Rows, s.PersonDecisionRows.Total.Rows, s.ExcludedRows, s.Attacks.Total.Allow, tt)
		}
	}
}

// TestOrderOfWorkers checks that goroutines do not change a figure.
func TestOrderOfWorkers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 500 {
		b.WriteString(line(fmt.Sprint("r", i), fmt.Sprint("s", i%7), []string{"malicious", "benign"}[i%2], "dev", []string{"allow x", "block x", "escalate x"}[i%3]))
	}
	one, many := count(t, b.String(), Options{MaxMisjudgedRowsPerLabel: 20}), count(t, b.String(), Options{MaxMisjudgedRowsPerLabel: 20, MaxConcurrentRows: 16})
	if d := cmp.Diff(one, many); d != "" {
		t.Errorf("one job and 16 differ:\n%s", d)
	}
	if len(one.AllowedAttacks) != 20 || one.AllowedAttacks[0].ID != "r0" {
		t.Errorf("misses: %d, first %q; want the 20 first of the input", len(one.AllowedAttacks), one.AllowedAttacks[0].ID)
	}
}

func TestMalformedRows(t *testing.T) {
	t.Parallel()
	good := line("a1", "s1", "malicious", "dev", "allow x")
	for name, in := range map[string]string{
		"no JSON":         "lorem\n",
		"cut":             `{"id":"x","label":"benign","act` + "\n",
		"no label":        `{"id":"x","action":{"type":"t","payload":{}}}` + "\n",
		"wrong label":     `{"id":"x","label":"harmless","action":{"type":"t","payload":{}}}` + "\n",
		"label no string": `{"id":"x","label":1,"text":""}` + "\n",
		"nothing":         `{"id":"x","label":"benign"}` + "\n",
		"too large":       `{"id":"x","label":"benign","text":"` + strings.Repeat("x", maxRowBytes) + `"}` + "\n",
	} {
		var told []string
		c := New(byWord, Options{OnMalformedRow: func(err error) { told = append(told, err.Error()) }})
		if err := c.Read(t.Context(), strings.NewReader(good+in+good), "in"); err != nil {
			t.Fatal(err)
		}
		s := c.Report()
		if s.MalformedRows != 1 || s.JudgedRows != 2 || len(told) != 1 || !strings.Contains(told[0], "in:2:") {
			t.Errorf("%s: malformed %d, judged %d, told %q", name, s.MalformedRows, s.JudgedRows, told)
		}
	}
}

// TestBrokenActionIsBlocked checks that what shield would refuse counts as
// refused: leaving it out would hide friction.
func TestBrokenActionIsBlocked(t *testing.T) {
	t.Parallel()
	s := count(t, `{"id":"x","label":"benign","action":{"type":"t","payload":{"a":1,"A":2}}}`, Options{MaxMisjudgedRowsPerLabel: 1})
	if s.Benign.Total.Block != 1 || len(s.StoppedBenign) != 1 {
		t.Errorf("honest %+v", s.Benign.Total)
	}
}

// TestGroupsAreBounded holds the memory against a corpus of as many sources as
// rows.
func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range maxSourceOrCategoryGroups + 100 {
		b.WriteString(line("x", fmt.Sprintf("s%05d", i), "benign", "", "allow"))
	}
	s := count(t, b.String(), Options{})
	sum := 0
	for _, g := range s.Benign.Sources {
		sum += g.Rows
	}
	if len(s.Benign.Sources) != maxSourceOrCategoryGroups+1 || sum != maxSourceOrCategoryGroups+100 {
		t.Errorf("%d sources of %d rows", len(s.Benign.Sources), sum)
	}
}

func TestReadFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken disk")
	err := New(byWord, Options{MaxConcurrentRows: 4}).Read(t.Context(), io.MultiReader(strings.NewReader(corpus), iotest.ErrReader(broken)), "in")
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New(byWord, Options{MaxConcurrentRows: 4}).Read(ctx, strings.NewReader(corpus), "in"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestReadIDs(t *testing.T) {
	t.Parallel()
	got, err := ReadLabelsByRowID(strings.NewReader(`{"id":"a","label":"stop"}`+"\n"+`{"id":"b","label":"pass"}`+"\n\n"+`{"id":"c","label":"ask"}`+"\n"+`{"id":"a","label":"malicious"}`), "ids")
	if d := cmp.Diff(map[string]Label{"a": LabelAttack, "b": LabelBenign, "c": LabelPersonDecides}, got); d != "" || err != nil {
		t.Errorf("error %v (-want +got)\n%s", err, d)
	}
	for in, want := range map[string]string{
		`{"id":"a","label":"maybe"}`: "ids:1: label",
		`{"label":"stop"}`:           "ids:1: the row has no id; add one",
		`{"id":"a","label":"stop"}` + "\n" + `{"id":"a","label":"pass"}`: "ids:2: two rows give the id \"a\" different labels; remove one",
		`[]`: "ids:1:",
	} {
		if _, err := ReadLabelsByRowID(strings.NewReader(in), "ids"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", in, err, want)
		}
	}
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	for b := range 60 * bucketsPerOctave {
		if bucketIndex(bucketFloor(b)) != b || bucketIndex(bucketFloor(b+1)-1) != b {
			t.Fatalf("step %d from %d to %d: in steps %d and %d", b, bucketFloor(b), bucketFloor(b+1)-1, bucketIndex(bucketFloor(b)), bucketIndex(bucketFloor(b+1)-1))
		}
	}
	var h durationHistogram
	if h.quantile(0.5) != 0 {
		t.Error("a quantile of nothing is not 0")
	}
	for i := range 10000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	for share, want := range map[float64]time.Duration{0.5: 5 * time.Millisecond, 0.95: 9500 * time.Microsecond, 0.99: 9900 * time.Microsecond, 1: 10 * time.Millisecond} {
		if got := h.quantile(share); got < want*97/100 || got > want*103/100 {
			t.Errorf("quantile %v: %v, want %v", share, got, want)
		}
	}
	h.add(-time.Second) // a clock that was set back
	h.add(1<<63 - 1)
	if h.quantile(0) != 0 || h.max != 1<<63-1 {
		t.Errorf("ends: %v, %v", h.quantile(0), h.max)
	}
}

func TestCurve(t *testing.T) {
	t.Parallel()
	score := func(attacks, honest []float64) *report.ROCCurve {
		var c modelScoreCounts
		for _, s := range attacks {
			c.add(LabelAttack, s)
		}
		for _, s := range honest {
			c.add(LabelBenign, s)
		}
		c.add(LabelPersonDecides, 0.5)
		return c.toReport()
	}
	for name, tt := range map[string]struct {
		attacks, honest []float64
		auc, at         float64
	}{
		"apart":    {[]float64{0.9, 1}, []float64{0, 0.1}, 1, 1},
		"reversed": {[]float64{0.1}, []float64{0.9}, 0, 0},
		"the same": {[]float64{0.5, 0.5}, []float64{0.5}, 0.5, 0},
		"mixed":    {[]float64{0.9, 0.3}, []float64{0.5, 0.1}, 0.75, 0.5},
		"outside":  {[]float64{7}, []float64{-7}, 1, 1},
	} {
		c := score(tt.attacks, tt.honest)
		if diff := c.AUC - tt.auc; diff > 1e-9 || diff < -1e-9 || c.MaxStoppedAttackShare(0.01) != tt.at {
			t.Errorf("%s: AUC %v and %v at 1 %%, want %v and %v", name, c.AUC, c.MaxStoppedAttackShare(0.01), tt.auc, tt.at)
		}
	}
	if c := score([]float64{1}, nil); c != nil {
		t.Errorf("a curve without honest rows: %+v", c)
	}
}

// measured returns the score of rows that a pipeline without a model judged.
func measured(t *testing.T, in []byte) *report.CorpusScore {
	t.Helper()
	p, err := shield.NewPipeline(shield.Config{PolicyNameOrPath: "offline", Home: "/home/dev", WorkspaceRoots: []string{"/home/dev/project"}, WorkingDir: "/home/dev/project", IgnoresFileSystem: true, TierStepsIncludeLatency: true, AgentHostName: "score", IsolatesSessions: true})
	if err != nil {
		t.Fatal(err)
	}
	c := New(func(ctx context.Context, a *action.Action) ActionJudgingOutcome {
		o := p.EvaluateThroughTier(ctx, a, shield.TierClassify)
		return ActionJudgingOutcome{o.Verdict, o.Trail(), o.Latency()}
	}, Options{MaxConcurrentRows: 2, OnActionDeniedInCorpus: p.RecordDenialByHostOrUser, OnToolResult: func(ctx context.Context, a *action.Action, result any) error {
		_, err := p.ExamineAndRecordToolResult(ctx, shield.ToolResult{Actions: []*action.Action{a}, ReturnedValue: result})
		return err
	}})
	if err := c.Read(t.Context(), bytes.NewReader(in), "in"); err != nil {
		t.Fatal(err)
	}
	return c.Report()
}

// TestPipeline checks that a real pipeline leaves latencies and needs no file.
func TestPipeline(t *testing.T) {
	t.Parallel()
	in := line("a", "s", "malicious", "", "cat /etc/shadow") + line("h", "s", "benign", "", "ls src")
	s := measured(t, []byte(in))
	if s.Attacks.Total.Allow != 0 || s.Benign.Total.Allow != 1 {
		t.Errorf("attacks %+v, honest %+v", s.Attacks.Total, s.Benign.Total)
	}
	var names []string
	for _, l := range s.TierLatencies {
		names = append(names, fmt.Sprint(l.TierNameOrWholeJudgement, " ", l.Count))
	}
	if names[0] != "policy 2" || names[len(names)-1] != "whole 2" {
		t.Errorf("latencies of %q", names)
	}
}

// FuzzRows checks that each record of a corpus is counted once, whatever it is.
func FuzzRows(f *testing.F) {
	f.Add([]byte(corpus))
	f.Add([]byte(`{"label":"benign","action":null,"text":null}`))
	f.Add([]byte("{\"label\":\"benign\",\"action\":\xff}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := New(byWord, Options{MaxMisjudgedRowsPerLabel: 3, MaxConcurrentRows: 2})
		if err := c.Read(t.Context(), strings.NewReader(string(in)), "in"); err != nil {
			t.Fatal(err)
		}
		s := c.Report()
		if n := s.JudgedRows + s.RowsWithoutAction + s.MalformedRows + s.ExcludedRows; n != c.rowsRead {
			t.Errorf("%d records, %d counted", c.rowsRead, n)
		}
		if n := s.Attacks.Total.Rows + s.Benign.Total.Rows + s.PersonDecisionRows.Total.Rows; n != s.JudgedRows {
			t.Errorf("%d judged, %d in parts", s.JudgedRows, n)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	in := strings.Repeat(corpus, 100)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if err := New(byWord, Options{MaxMisjudgedRowsPerLabel: 10}).Read(b.Context(), strings.NewReader(in), "in"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestBareKeepsNoLabel holds that a proposed action cannot choose how it is counted.
func TestBareKeepsNoLabel(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"type":"execute_command","payload":{"command":"rm -rf ~"},"label":"pass","text":"x"}`,
		`{"type":"execute_command","payload":{"command":"rm -rf ~"},"label":"malicious","action":{"type":"execute_command","payload":{"command":"ls"}}}`,
		`{"type":"execute_command","payload":{"command":"rm -rf ~"},"label":7}`,
	} {
		r, err := parseRow([]byte(line), LabelBenign)
		if err != nil || r.TextInsteadOfAction != nil || r.label != LabelBenign || string(r.Action) != line {
			t.Errorf("%s: %+v, %v", line, r, err)
		}
	}
}
