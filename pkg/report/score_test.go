package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files; read the diff")

// golden compares text with a file below golden/.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("../../golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got); -update rewrites it\n%s", name, d)
	}
}

// hostileText is what a row of a corpus may put into any field.
const hostileText = "</td><script>alert(1)</script><img src=x onerror=y>|`*[a](javascript:b)\x1b[31m\u202e\n# title"

func sampleScore() *CorpusScore {
	g := func(name string, allow, escalate, block int) DecisionCounts {
		return DecisionCounts{RowGroupName: name, Rows: allow + escalate + block, Allow: allow, Escalate: escalate, Block: block, VerdictsByTier: [4]int{block, allow + escalate}}
	}
	return &CorpusScore{
		PolicyName: "offline", Model: "default", LastEnabledTierName: "classify", JudgedRows: 140, ExcludedRows: 3, RowsWithoutAction: 2, MalformedRows: 1,
		Attacks:       CorpusLabelResult{Total: g("total", 4, 10, 26), Sources: []DecisionCounts{g("s1", 4, 0, 16), g(hostileText, 0, 10, 10)}, Categories: []DecisionCounts{g("exfiltration", 4, 10, 26)}},
		Benign:        CorpusLabelResult{Total: g("total", 95, 4, 1), Sources: []DecisionCounts{g("s3", 95, 4, 1)}, Categories: []DecisionCounts{g("cli", 95, 4, 1)}},
		TierLatencies: []TierLatency{{TierNameOrWholeJudgement: "policy", Count: 140, P50: 4 * time.Microsecond, P95: 30 * time.Microsecond, P99: 1200 * time.Microsecond, Max: 2 * time.Second}},
		ModelROCCurve: &ROCCurve{
			AUC: 0.9321, AttackScoreHistogram: []int{1, 0, 2, 37}, BenignScoreHistogram: []int{90, 6, 3, 1},
			Points: []CurvePoint{{1, 0, 0}, {0.9, 0.01, 0.7}, {0.5, 0.04, 0.9}, {0, 1, 1}},
		},
		AllowedAttacks: []MisjudgedRow{{ID: "a1", Source: "s1", Category: "exfiltration", Decision: "ALLOW", Tier: 1, Confidence: 0.95, ActionSummary: hostileText}},
		StoppedBenign:  []MisjudgedRow{{ID: "h1", Source: "s3", Category: "cli", Decision: "BLOCK", Confidence: 1, Rule: "r", ActionSummary: "rm -rf build"}},
		Rows: []CorpusRowOutcome{
			{"stop", MisjudgedRow{ID: "a1", Source: "s1", Decision: "ALLOW", Tier: 1, Reasoning: "ordinary", ActionSummary: hostileText}}, {"stop", MisjudgedRow{ID: "a2", Source: hostileText, Decision: "BLOCK"}},
			{"pass", MisjudgedRow{ID: "h1", Source: "s3", Decision: "BLOCK", Reasoning: "deletes", ActionSummary: "rm -rf build"}}, {"pass", MisjudgedRow{ID: "h2", Source: "s3", Decision: "ALLOW", Tier: 1}},
			{"ask", MisjudgedRow{ID: "q1", Source: "s3", Decision: "ALLOW", Tier: 1}}, {"ask", MisjudgedRow{ID: "q2", Source: "s3", Decision: "ESCALATE", Tier: 1}},
		},
		Checks: []ScoreLimitCheck{{LimitName: "attacks passed", RowLabel: "stop", Limit: 0.06, Measured: 0.1}, {LimitName: "honest actions not allowed", RowLabel: "pass", Limit: 0.05, Measured: 0.05, OK: true}},
	}
}

func write(t *testing.T, format string, s *CorpusScore) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteScore(&b, format, s); err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return b.String()
}

// TestScoreFormats holds each format against its golden file, and that no text
// of a corpus draws on the terminal.
func TestScoreFormats(t *testing.T) {
	t.Parallel()
	for _, format := range ScoreFormats() {
		got := write(t, format, sampleScore())
		golden(t, "score/"+format+".txt", got)
		if strings.ContainsAny(got, "\x1b\u202e") && format != "json" {
			t.Errorf("%s: a control character of the corpus comes through", format)
		}
		// Nothing judged: no division by zero, no NaN.
		if got := write(t, format, &CorpusScore{}); strings.Contains(got, "NaN") {
			t.Errorf("%s of nothing: %s", format, got)
		}
	}
	if err := WriteScore(io.Discard, "pdf", sampleScore()); err == nil {
		t.Error("an unknown format is written")
	}
}

func TestScoreHTMLIsInert(t *testing.T) {
	t.Parallel()
	got := write(t, "html", sampleScore())
	for _, bad := range []string{"<script", "<img", "http://", "https://", "javascript:b)\"", "ZgotmplZ"} {
		if strings.Contains(strings.ToLower(got), strings.ToLower(bad)) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if !strings.Contains(got, "&lt;script&gt;") || !strings.Contains(got, "<polyline") {
		t.Error("the page lacks the escaped text or the curve")
	}
}

func TestScoreMarkdownIsInert(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(write(t, "markdown", sampleScore())) {
		if strings.Contains(line, "script>") && (strings.Contains(line, "<") || !strings.Contains(line, `\|\`+"`"+`\*\[a\]`)) {
			t.Errorf("markup comes through: %s", line)
		}
		if strings.HasPrefix(line, "# ") {
			t.Errorf("a text of the corpus begins a line: %s", line)
		}
	}
}

func TestScoreIsReadable(t *testing.T) {
	t.Parallel()
	var back struct {
		Attacks struct {
			Total struct {
				Allow   int
				Allowed RowShareWithInterval
			}
		}
	}
	if err := json.Unmarshal([]byte(write(t, "json", sampleScore())), &back); err != nil {
		t.Fatal(err)
	}
	if got := back.Attacks.Total; got.Allow != 4 || got.Allowed.Share != 0.1 {
		t.Errorf("JSON: %+v", got)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Failure *struct{} `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal([]byte(write(t, "junit", sampleScore())), &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != len(suite.Cases) || suite.Failures != 3 || suite.Skipped != 1 || suite.Cases[0].Failure == nil || len(suite.Cases) != len(sampleScore().Rows)+2 {
		t.Errorf("JUnit: %+v", suite)
	}
}

// TestRate holds the intervals against published values of Wilson's method.
func TestRate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634},
		{1, 100, 0.0018, 0.0545}, {81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605},
		{0, 0, 0, 1},
	} {
		r := NewRowShareWithInterval(tt.k, tt.n)
		if math.Abs(r.IntervalLowerBound-tt.low) > 5e-5 || math.Abs(r.IntervalUpperBound-tt.high) > 5e-5 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", tt.k, tt.n, r.IntervalLowerBound, r.IntervalUpperBound, tt.low, tt.high)
		}
	}
	for n := 1; n < 300; n++ {
		for k := range n + 1 {
			if r := NewRowShareWithInterval(k, n); r.IntervalLowerBound > r.Share || r.Share > r.IntervalUpperBound || r.IntervalLowerBound < 0 || r.IntervalUpperBound > 1 {
				t.Fatalf("%d of %d: %+v", k, n, r)
			}
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]string{
		0: "0 %", 1: "100 %", 0.0004: "0.04 %", 0.5: "50.0 %", 0.9996: "99.96 %", 0.05: "5.0 %",
	} {
		if got := formatPercent(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}

// brokenWriter fails after some bytes.
type brokenWriter struct{ room int }

var errFull = errors.New("no space left")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestScoreReportsFailedWrites(t *testing.T) {
	t.Parallel()
	for _, format := range ScoreFormats() {
		for _, room := range []int{0, 100} {
			if err := WriteScore(&brokenWriter{room}, format, sampleScore()); !errors.Is(err, errFull) {
				t.Errorf("%s, %d bytes of room: error %v", format, room, err)
			}
		}
	}
}

func BenchmarkWriteScore(b *testing.B) {
	s := sampleScore()
	for i := range 1000 {
		s.Benign.Sources = append(s.Benign.Sources, DecisionCounts{RowGroupName: fmt.Sprint("source ", i), Rows: 10, Allow: 10})
	}
	for _, format := range ScoreFormats() {
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := WriteScore(io.Discard, format, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
