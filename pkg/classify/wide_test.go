package classify

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/shieldcli/shield/models"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// estimator is a model that counts how often it is asked.
type estimator struct {
	estimate InjectionScoreBounds
	none     bool // it has no estimate
	crash    bool
	score    InjectionScore
	err      error
	asked    atomic.Int32
}

func (m *estimator) Estimate(context.Context, string) (InjectionScoreBounds, bool) {
	if m.crash {
		panic("table")
	}
	return m.estimate, !m.none
}

func (m *estimator) Score(context.Context, string) (InjectionScore, error) {
	m.asked.Add(1)
	return m.score, m.err
}

// The model is asked where its answer could change the decision, and nowhere else.
func TestEstimate(t *testing.T) {
	t.Parallel()
	safe := func(p float64) InjectionScore { return InjectionScore{LabelConfidence: p} }
	bad := func(p float64) InjectionScore { return InjectionScore{HasInjectionLabel: true, LabelConfidence: p} }
	broken := errors.New("no memory")
	cases := dualCases()
	for _, test := range []struct {
		name  string
		c     string
		m     *estimator
		want  verdict.Decision
		asked int32
	}{
		{"surely safe", "plain", &estimator{estimate: InjectionScoreBounds{safe(0.9), safe(0.8), safe(0.6)}, err: broken}, verdict.Allow, 0},
		{"surely an attack", "plain", &estimator{estimate: InjectionScoreBounds{bad(0.86), bad(0.9), bad(0.95)}, err: broken}, verdict.Block, 0},
		{"surely doubtful", "plain", &estimator{estimate: InjectionScoreBounds{bad(0.6), bad(0.7), bad(0.8)}, err: broken}, verdict.Escalate, 0},
		{"safe or not", "plain", &estimator{estimate: InjectionScoreBounds{safe(0.6), safe(0.51), bad(0.6)}, score: bad(0.55)}, verdict.Escalate, 1},
		{"not or safe", "plain", &estimator{estimate: InjectionScoreBounds{safe(0.6), bad(0.51), bad(0.6)}, score: safe(0.55)}, verdict.Allow, 1},
		{"an attack or not", "plain", &estimator{estimate: InjectionScoreBounds{bad(0.8), bad(0.86), bad(0.9)}, score: bad(0.84)}, verdict.Escalate, 1},
		{"broken where it is asked", "plain", &estimator{estimate: InjectionScoreBounds{safe(0.6), safe(0.51), bad(0.6)}, err: broken}, verdict.Block, 1},
		{"no estimate", "plain", &estimator{none: true, score: bad(0.9)}, verdict.Block, 1},
		{"no estimate, broken", "plain", &estimator{none: true, err: broken}, verdict.Block, 1},
		{"the estimate panics", "plain", &estimator{crash: true, score: bad(0.9)}, verdict.Block, 1},
		{"not a number", "plain", &estimator{estimate: InjectionScoreBounds{safe(math.NaN()), safe(math.NaN()), safe(math.NaN())}, score: bad(0.9)}, verdict.Block, 1},
		{"a rule blocks", "blocking", &estimator{estimate: InjectionScoreBounds{safe(0.9), bad(0.6), bad(0.99)}, err: broken}, verdict.Block, 0},
		{"a rule asks, and it cannot block", "escalating", &estimator{estimate: InjectionScoreBounds{safe(0.9), bad(0.6), bad(0.8)}, err: broken}, verdict.Escalate, 0},
		{"a rule asks, and it could block", "escalating", &estimator{estimate: InjectionScoreBounds{safe(0.9), bad(0.6), bad(0.9)}, score: bad(0.9)}, verdict.Block, 1},
		{"a doubt that nothing clears", "dynamic", &estimator{estimate: InjectionScoreBounds{safe(0.9), bad(0.6), bad(0.8)}, err: broken}, verdict.Escalate, 0},
		{"ordinary", "ordinary", &estimator{estimate: InjectionScoreBounds{safe(0.9), safe(0.8), safe(0.6)}, err: broken}, verdict.Allow, 0},
		{"ordinary and suspected", "ordinary", &estimator{estimate: InjectionScoreBounds{bad(0.6), bad(0.9), bad(0.95)}, score: bad(0.9)}, verdict.Block, 1},
	} {
		v, err := New(Options{Model: test.m}).Judge(t.Context(), cases[test.c])
		if err != nil {
			t.Fatal(err)
		}
		if v.Decision != test.want || test.m.asked.Load() != test.asked {
			t.Errorf("%s: %s, asked %d times; want %s, %d", test.name, v.Decision, test.m.asked.Load(), test.want, test.asked)
		}
	}
}

// What the default model estimates is what it answers, on actions that it was not
// trained on.
func TestEstimateOfDefault(t *testing.T) {
	t.Parallel()
	openTest(t, "bert") // skips where there is no runtime
	m, err := OpenModel(models.DefaultModelFolder(""), models.Digest, library)
	if err != nil {
		t.Fatal(err)
	}
	judged, settled, differ := 0, 0, 0
	side := func(s InjectionScore) string {
		return fmt.Sprint(s.HasInjectionLabel, s.HasInjectionLabel && s.LabelConfidence >= 0.85)
	}
	for text := range texts(t, 4) {
		judged++
		e, ok := m.Estimate(t.Context(), text)
		if !ok || side(e.Low) != side(e.High) {
			continue
		}
		settled++
		s, err := m.Score(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if side(s) != side(e.Likely) {
			differ++
			t.Logf("%.200s: estimated %+v, is %+v", text, e, s)
		}
	}
	t.Logf("%d actions, %d settled by the estimate, %d otherwise than by the model", judged, settled, differ)
	if judged < 280 || settled < judged*3/4 || differ > 0 {
		t.Errorf("%d actions, %d settled, %d differ", judged, settled, differ)
	}
}

// counted counts the windows that a graph reads.
type counted struct {
	modelGraphRunner
	n int
}

func (c *counted) run(ctx context.Context, ids []int64) ([]float32, error) {
	c.n++
	return c.modelGraphRunner.run(ctx, ids)
}

// Of a long text fewer windows are read than it has, and wherever the most suspicious
// of them stands, its answer is that of the text.
func TestWindowsOfDefault(t *testing.T) {
	t.Parallel()
	openTest(t, "bert") // skips where there is no runtime
	m, err := OpenModel(models.DefaultModelFolder(""), models.Digest, library)
	if err != nil {
		t.Fatal(err)
	}
	l, err := m.load()
	if err != nil {
		t.Fatal(err)
	}
	graph := &counted{modelGraphRunner: l.session}
	all, positions := 0, map[int]bool{}
	var long []string
	for text := range texts(t, 4) {
		if long = append(long, text); len(long) < 24 {
			continue
		}
		ids, err := l.tokenizer.Encode(t.Context(), strings.Join(long, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		long = nil
		windows, whole := m.splitWindows(ids, l.tokenizer.SpecialTokenCount())
		worst, at := 0.0, 0
		for i, window := range windows {
			logits, err := l.session.run(t.Context(), l.tokenizer.AddSpecialTokens(nil, window))
			if err != nil {
				t.Fatal(err)
			}
			p, err := probability(logits, m.maliciousLabelIndex)
			if err != nil {
				t.Fatal(err)
			}
			if p > worst {
				worst, at = p, i
			}
		}
		all += len(windows)
		positions[at] = true
		got, err := m.score(t.Context(), &loadedModel{l.tokenizer, graph}, ids)
		want := m.scoreForProbability(worst)
		if !whole && !want.HasInjectionLabel {
			if !errors.Is(err, ErrTooLong) {
				t.Errorf("%+v, %v; want %v", got, err, ErrTooLong)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%d windows: %+v, %v; want %+v, of window %d", len(windows), got, err, want, at)
		}
	}
	t.Logf("%d of %d windows were read", graph.n, all)
	if graph.n > all*2/3 || len(positions) < 3 {
		t.Errorf("%d of %d windows were read; the most suspicious stood at %v", graph.n, all, positions)
	}
}

// TestOwnModel holds that shield's own model answers to the last bit what the ONNX
// file answers that it was made of, whether it is loaded for one text or for many.
func TestOwnModel(t *testing.T) {
	t.Parallel()
	openTest(t, "bert") // skips where there is no runtime
	folder := os.DirFS(filepath.Join("..", "..", "models", "default"))
	data, err := fs.ReadFile(folder, "model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if g, err := parseONNXGraph(data); err != nil || !reflect.DeepEqual(g, &shieldModelGraph) {
		t.Errorf("the graph is %+v, %v; want %+v", g, err, shieldModelGraph)
	}
	var all []*Model
	for _, open := range []struct {
		files  fs.FS
		single bool
	}{{folder, false}, {models.DefaultModelFolder(""), false}, {models.DefaultModelFolder(""), true}} {
		m, err := OpenModel(open.files, models.Digest, library)
		if err != nil {
			t.Fatal(err)
		}
		m.ScoresOnlyOneTextPerProcess = open.single
		all = append(all, m)
	}
	n := 0
	for text := range texts(t, 6) {
		n++
		want, err := all[0].Score(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		estimate, ok := all[0].Estimate(t.Context(), text)
		for _, m := range all[1:] {
			if got, err := m.Score(t.Context(), text); err != nil || got != want {
				t.Errorf("%.200s: %+v, %v; want %+v", text, got, err, want)
			}
			if got, has := m.Estimate(t.Context(), text); has != ok || got != estimate {
				t.Errorf("%.200s: estimate %+v, %t; want %+v, %t", text, got, has, estimate, ok)
			}
		}
	}
	if n < 180 {
		t.Errorf("%d texts", n)
	}
}

// texts yields what the model is given of every nth of the labelled actions that it
// was not trained on.
func texts(t *testing.T, nth int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range []string{"everyday/actions.jsonl", "structured/cases.jsonl"} {
			f, err := os.Open(filepath.Join("..", "..", "testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			n := 0
			for lines := bufio.NewScanner(f); lines.Scan(); n++ {
				var row struct{ Action json.RawMessage }
				if n%nth != 0 || json.Unmarshal(lines.Bytes(), &row) != nil {
					continue
				}
				a, err := action.Parse(row.Action)
				if err != nil {
					t.Fatal(err)
				}
				text, err := ModelInputText(a)
				if err != nil {
					t.Fatal(err)
				}
				if !yield(text) {
					return
				}
			}
		}
	}
}

// A text that is not read to its end has no estimate, and neither has a model
// without a table.
func TestNoEstimate(t *testing.T) {
	t.Parallel()
	m, err := OpenModel(models.DefaultModelFolder(""), models.Digest, library)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{strings.Repeat("word ", 20000), strings.Repeat("x", 1<<20)} {
		if e, ok := m.Estimate(t.Context(), text); ok {
			t.Errorf("%d bytes: %+v", len(text), e)
		}
	}
	if _, ok := openTest(t, "bert").Estimate(t.Context(), "ls"); ok {
		t.Error("a model without a table estimates")
	}
}

// A card that says something impossible about the table is an error, or the whole
// model is asked.
func TestWideCard(t *testing.T) {
	t.Parallel()
	open := func(wide string) (*Model, error) {
		files := fstest.MapFS{"shield.json": {Data: []byte(`{"wide":` + wide + `}`)}}
		for _, name := range []string{"config.json", "tokenizer.json", "model.onnx"} {
			data, err := os.ReadFile(filepath.Join("testdata", "models", "bert", name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = &fstest.MapFile{Data: data}
		}
		return OpenModel(files, "", library)
	}
	for _, wide := range []string{
		`{"table":"t","scale":0,"bias":0,"slope":1,"offset":0,"margin":1}`,
		`{"table":"t","scale":1,"bias":0,"slope":-1,"offset":0,"margin":1}`,
		`{"table":"t","scale":1,"bias":0,"slope":1,"offset":0,"margin":-1}`,
		`{"table":"t","scale":1,"bias":1e999,"slope":1,"offset":0,"margin":1}`,
		`{"table":"t","scale":1,"bias":0,"slope":1,"offset":0,"margin":1,"more":1}`,
	} {
		if _, err := open(wide); err == nil {
			t.Errorf("%s: no error", wide)
		}
	}
	for _, table := range []string{"absent", "bert.embeddings.word_embeddings.weight", ""} {
		m, err := open(`{"table":"` + table + `","scale":1,"bias":0,"slope":1,"offset":0,"margin":1}`)
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := m.Estimate(t.Context(), "ls"); ok {
			t.Errorf("table %q: %+v", table, e)
		}
	}
}

// BenchmarkEstimate is what the estimate costs, to be compared with BenchmarkScore.
func BenchmarkEstimate(b *testing.B) {
	m, err := OpenModel(models.DefaultModelFolder(""), models.Digest, library)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{4, 16, 64} {
		text := "execute_command: " + strings.Repeat("make test ", n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := m.Estimate(b.Context(), text); !ok {
					b.Fatal("no estimate")
				}
			}
		})
	}
}
