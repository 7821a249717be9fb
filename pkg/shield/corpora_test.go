package shield

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shieldcli/shield/internal/ortlib"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A flip is what the model changes about rows with one label.
type flip struct {
	label    string
	from, to verdict.Decision // without the model, and with it
}

// TestCorpora judges the rows of labelled corpora with the model and without. What
// is not allowed without it is allowed with it only if no rule matched and each
// doubt is one that SAFE may clear. The other differences are counted by cause.
func TestCorpora(t *testing.T) {
	dir := os.Getenv("SHIELD_CORPORA")
	switch {
	case dir == "":
		t.Skip("no corpora: name their folder in SHIELD_CORPORA, or run 'make corpora CORPORA=DIR'")
	case !ortlib.Available():
		t.Skip("this build carries no ONNX Runtime")
	}
	files, err := filepath.Glob(filepath.Join(dir, "actions-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no actions-*.jsonl: %v", dir, err)
	}
	c := corpora{t: t, alone: corporaPipeline(t, "none"), model: corporaPipeline(t, "default"), flips: map[string]map[flip]int{}}
	for _, file := range files {
		c.file(file)
	}
	t.Logf("%d actions, %d with a doubt that nothing clears\n%s", c.rows, c.final, c.table())
	if c.rows == 0 || c.final == 0 || len(c.flips) == 0 {
		t.Error("the rows show nothing")
	}
}

func corporaPipeline(t *testing.T, model string) *Pipeline {
	t.Helper()
	s := Defaults()
	s.Session.SessionTrackingEnabled = false // rows have nothing to do with one another
	s.Classifier.Enabled, s.Classifier.ModelNameOrDir, s.Classifier.BlockThreshold = true, model, 0.85
	p, err := NewPipeline(Config{Settings: &s, PolicyNameOrPath: "offline", Home: "/home/dev", WorkingDir: "/home/dev/project", WorkspaceRoots: []string{"/home/dev/project"},
		CacheDir: t.TempDir(), IgnoresFileSystem: true, VerdictsIncludeTrail: true, OmitsActionFromVerdicts: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// corpora counts what the model changes. Goroutines share it.
type corpora struct {
	t            *testing.T
	alone, model *Pipeline

	sync.Mutex
	rows, final int
	flips       map[string]map[flip]int // by cause
}

// file judges the rows of one file, a goroutine for each processor.
func (c *corpora) file(name string) {
	f, err := os.Open(name)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	rows := make(chan []byte)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for raw := range rows {
				c.row(raw)
			}
		})
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		rows <- slices.Clone(lines.Bytes())
	}
	close(rows)
	wait.Wait()
	if err := lines.Err(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *corpora) row(raw []byte) {
	var row struct {
		ID, Label string
		Action    json.RawMessage
	}
	if err := json.Unmarshal(raw, &row); err != nil {
		c.t.Errorf("%.100s: %v", raw, err)
		return
	}
	a, err := action.Parse(row.Action)
	if err != nil {
		return // blocked before any tier
	}
	without, with := c.alone.EvaluateThroughTier(c.t.Context(), a, TierClassify), c.model.EvaluateThroughTier(c.t.Context(), a, TierClassify)
	from, to := without.Verdict.Decision, with.Verdict.Decision
	final := uncleared(&without)
	c.Lock()
	defer c.Unlock()
	c.rows++
	if final != "" {
		c.final++
	}
	allows := slices.ContainsFunc(without.Trail(), func(s verdict.TierStep) bool { return s.Tier == TierPolicy && s.AllowedPendingHigherTier })
	if to == verdict.Allow && final != "" && !allows || to == verdict.Allow && from != verdict.Allow && (final != "" || without.Verdict.Rule != "") {
		c.t.Errorf("%s: ALLOW with the model, though %s", row.ID, cmp.Or(final, "the rule "+without.Verdict.Rule+" matched"))
	}
	if from != to {
		why := reasonOf(&without)
		if c.flips[why] == nil {
			c.flips[why] = map[flip]int{}
		}
		c.flips[why][flip{row.Label, from, to}]++
	}
}

// uncleared returns a doubt about an action that no SAFE clears; "" if there is none.
func uncleared(o *VerdictWithLogData) string {
	if e := o.ClassifierEvidence(); e != nil {
		for _, d := range e.Doubts {
			if d.NeedsAuthorityAboveClassifier() {
				return d.CauseName + ": " + d.Reason
			}
		}
	}
	return ""
}

// reasonOf returns what an action's verdict rests on where no model is asked.
func reasonOf(o *VerdictWithLogData) string {
	e := o.ClassifierEvidence()
	switch {
	case o.Verdict.Rule != "":
		return "a rule matched"
	case e == nil:
		return "tier 0 decided"
	case e.AllowReason != "":
		kind, _, _ := strings.Cut(e.AllowReason, ":")
		return kind + " without it"
	case len(e.Doubts) == 0:
		return "nothing says that it is ordinary"
	}
	causes, unusual := map[string]bool{}, map[string]bool{}
	for _, d := range e.Doubts {
		if d.IsEffectUnusual {
			unusual[d.CauseName] = true
		} else {
			causes[d.CauseName] = true
		}
	}
	switch {
	case len(causes) > 0:
		return "doubt: " + strings.Join(slices.Sorted(maps.Keys(causes)), ", ")
	case len(unusual) > 1:
		return "known and not ordinary: several"
	}
	return "known and not ordinary: " + slices.Collect(maps.Keys(unusual))[0]
}

// table writes the flips as Markdown.
func (c *corpora) table() string {
	columns := []flip{
		{"malicious", verdict.Escalate, verdict.Allow}, {"malicious", verdict.Escalate, verdict.Block}, {"malicious", verdict.Allow, verdict.Escalate}, {"malicious", verdict.Allow, verdict.Block},
		{"benign", verdict.Escalate, verdict.Allow}, {"benign", verdict.Escalate, verdict.Block}, {"benign", verdict.Allow, verdict.Escalate}, {"benign", verdict.Allow, verdict.Block},
	}
	var b strings.Builder
	b.WriteString("| without the model |")
	for _, f := range columns {
		fmt.Fprintf(&b, " %s: %s to %s |", map[string]string{"malicious": "attacks", "benign": "honest"}[f.label], f.from, f.to)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(columns)) + "\n")
	for _, why := range slices.Sorted(maps.Keys(c.flips)) {
		b.WriteString("| " + why + " |")
		shown := 0
		for _, f := range columns {
			fmt.Fprintf(&b, " %d |", c.flips[why][f])
			shown += c.flips[why][f]
		}
		b.WriteString("\n")
		for _, n := range c.flips[why] {
			shown -= n
		}
		if shown != 0 {
			c.t.Errorf("%s: %v has flips that the table does not show", why, c.flips[why])
		}
	}
	return b.String()
}
