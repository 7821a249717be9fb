package classify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// dualModels are the columns of the tables below.
var dualModels = map[string]InjectionScorer{
	"absent":   nil,
	"safe":     scorer{score: InjectionScore{LabelConfidence: 0.9}},
	"low":      scorer{score: InjectionScore{HasInjectionLabel: true, LabelConfidence: 0.84}},
	"high":     scorer{score: InjectionScore{HasInjectionLabel: true, LabelConfidence: 0.85}},
	"error":    scorer{err: errors.New("no memory")},
	"panic":    scorer{crash: true},
	"NaN":      scorer{score: InjectionScore{LabelConfidence: math.NaN()}},
	"too-long": scorer{err: fmt.Errorf("model: %w", ErrTooLong)},
}

// dualCases are the rows.
func dualCases() map[string]*analysis.ActionCase {
	listing := run("ls")
	listing.Class = effect.ReadOnly
	unexamined := command(run("make"))
	unexamined.UnexaminedReason = "the action has more text than shield scans"
	return map[string]*analysis.ActionCase{
		"harmless":   command(listing),
		"ordinary":   command(run("make", "test")),
		"plain":      command(unknownProgram("frobnicate")),
		"escalating": command(run("git", "push", "--force", "origin", "main")),
		"blocking":   command(effect.EffectOfPolicyKind(effect.RunDownload)),
		"always":     command(run("grpcurl", "-plaintext", "localhost:1", "list")),
		"dynamic":    command(run("make"), effect.Effect{Certainty: effect.Unknown, Reason: "eval of an unknown value"}),
		"unexamined": unexamined,
	}
}

// dualTables say what both classifiers make of each case. A cell is the
// decision (A, E, B) and the confidence in percent; then who decided (h, m, or
// n for none), "!" if that was a failure; then who was asked, in order.
var dualTables = []struct {
	name  string
	opts  Options
	table string
}{
	{"both", Options{}, `
		           absent   safe      low       high      error      panic      NaN        too-long
		harmless   A95 h h  A95 h h   A95 h h   A95 h h   A95 h h    A95 h h    A95 h h    A95 h h
		ordinary   A90 h h  A90 m hm  E84 m hm  B85 m hm  B50 m! hm  B50 m! hm  B50 m! hm  E50 m hm
		plain      E70 h h  A90 m hm  E84 m hm  B85 m hm  B50 m! hm  B50 m! hm  B50 m! hm  E50 m hm
		escalating E85 h h  E85 h hm  E85 h hm  B85 m hm  B50 m! hm  B50 m! hm  B50 m! hm  E85 h hm
		blocking   B95 h h  B95 h hm  B95 h hm  B95 h hm  B95 h hm   B95 h hm   B95 h hm   B95 h hm
		always     B85 h h  B85 h hm  B85 h hm  B85 h hm  B85 h hm   B85 h hm   B85 h hm   B85 h hm
		dynamic    E70 h h  E90 m hm  E84 m hm  B85 m hm  B50 m! hm  B50 m! hm  B50 m! hm  E50 m hm
		unexamined E70 h h  E90 m hm  E84 m hm  B85 m hm  B50 m! hm  B50 m! hm  B50 m! hm  E50 m hm`},
	{"both, fail open", Options{FailOpen: true}, `
		           absent   safe      low       high      error      panic      NaN        too-long
		harmless   A95 h h  A95 h h   A95 h h   A95 h h   A95 h h    A95 h h    A95 h h    A95 h h
		ordinary   A90 h h  A90 m hm  E84 m hm  B85 m hm  E50 m! hm  E50 m! hm  E50 m! hm  E50 m hm
		plain      E70 h h  A90 m hm  E84 m hm  B85 m hm  E50 m! hm  E50 m! hm  E50 m! hm  E50 m hm
		escalating E85 h h  E85 h hm  E85 h hm  B85 m hm  E85 h hm   E85 h hm   E85 h hm   E85 h hm
		blocking   B95 h h  B95 h hm  B95 h hm  B95 h hm  B95 h hm   B95 h hm   B95 h hm   B95 h hm
		always     B85 h h  B85 h hm  B85 h hm  B85 h hm  B85 h hm   B85 h hm   B85 h hm   B85 h hm
		dynamic    E70 h h  E90 m hm  E84 m hm  B85 m hm  E50 m! hm  E50 m! hm  E50 m! hm  E50 m hm
		unexamined E70 h h  E90 m hm  E84 m hm  B85 m hm  E50 m! hm  E50 m! hm  E50 m! hm  E50 m hm`},
	{"heuristics off", Options{RunsOnlyAlwaysBlockRules: true}, `
		           absent   safe      low       high      error      panic      NaN        too-long
		harmless   A95 h h  A95 h h   A95 h h   A95 h h   A95 h h    A95 h h    A95 h h    A95 h h
		ordinary   E50 n n  A90 m m   E84 m m   B85 m m   B50 m! m   B50 m! m   B50 m! m   E50 m m
		plain      E50 n n  A90 m m   E84 m m   B85 m m   B50 m! m   B50 m! m   B50 m! m   E50 m m
		escalating E50 n n  A90 m m   E84 m m   B85 m m   B50 m! m   B50 m! m   B50 m! m   E50 m m
		blocking   E70 h h  E90 m m   E84 m m   B85 m m   B50 m! m   B50 m! m   B50 m! m   E50 m m
		always     B85 h h  B85 h hm  B85 h hm  B85 h hm  B85 h hm   B85 h hm   B85 h hm   B85 h hm
		dynamic    E70 h h  E90 m m   E84 m m   B85 m m   B50 m! m   B50 m! m   B50 m! m   E50 m m
		unexamined E70 h h  E90 m m   E84 m m   B85 m m   B50 m! m   B50 m! m   B50 m! m   E50 m m`},
	{"heuristics off, fail open", Options{RunsOnlyAlwaysBlockRules: true, FailOpen: true}, `
		           absent   safe      low       high      error      panic      NaN        too-long
		harmless   A95 h h  A95 h h   A95 h h   A95 h h   A95 h h    A95 h h    A95 h h    A95 h h
		ordinary   A50 n n  A90 m m   E84 m m   B85 m m   E50 m! m   E50 m! m   E50 m! m   E50 m m
		plain      A50 n n  A90 m m   E84 m m   B85 m m   E50 m! m   E50 m! m   E50 m! m   E50 m m
		escalating A50 n n  A90 m m   E84 m m   B85 m m   E50 m! m   E50 m! m   E50 m! m   E50 m m
		blocking   E70 h h  E90 m m   E84 m m   B85 m m   E50 m! m   E50 m! m   E50 m! m   E50 m m
		always     B85 h h  B85 h hm  B85 h hm  B85 h hm  B85 h hm   B85 h hm   B85 h hm   B85 h hm
		dynamic    E70 h h  E90 m m   E84 m m   B85 m m   E50 m! m   E50 m! m   E50 m! m   E50 m m
		unexamined E70 h h  E90 m m   E84 m m   B85 m m   E50 m! m   E50 m! m   E50 m! m   E50 m m`},
}

// dualRows reads a table: by row and column, three words a cell.
func dualRows(t *testing.T, table string) map[string]map[string]string {
	t.Helper()
	var columns []string
	rows := map[string]map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		words := strings.Fields(line)
		if columns == nil {
			columns = words
			continue
		}
		if len(words) != 1+3*len(columns) {
			t.Fatalf("%d words in %q", len(words), line)
		}
		rows[words[0]] = map[string]string{}
		for i, name := range columns {
			rows[words[0]][name] = strings.Join(words[1+3*i:4+3*i], " ")
		}
	}
	return rows
}

// dualCell writes a verdict as a cell.
func dualCell(v verdict.Verdict) string {
	decided, asked := "?", ""
	for _, s := range v.Trail {
		asked += s.JudgeName[:1]
		if s.Decision == v.Decision && s.Confidence == v.Confidence && s.Rule == v.Rule && (s.Reasoning == v.Reasoning || len(v.Trail) == 1) && s.ErrorCode == v.ErrorCode && decided == "?" {
			decided = s.JudgeName[:1]
		}
	}
	if v.ErrorCode == "classifier" {
		decided += "!"
	}
	return fmt.Sprintf("%s%.0f %s %s", v.Decision.String()[:1], 100*v.Confidence, decided, asked)
}

// TestDual holds every combination of case, model and settings to its cell.
func TestDual(t *testing.T) {
	t.Parallel()
	cases := dualCases()
	for _, tt := range dualTables {
		rows := dualRows(t, tt.table)
		if len(rows) != len(cases) {
			t.Fatalf("%s: %d rows", tt.name, len(rows))
		}
		for row, cells := range rows {
			if len(cells) != len(dualModels) {
				t.Fatalf("%s: %d columns", tt.name, len(cells))
			}
			for column, want := range cells {
				opts := tt.opts
				opts.Model = dualModels[column]
				v, err := New(opts).Judge(t.Context(), cases[row])
				if err != nil {
					t.Fatal(err)
				}
				if got := dualCell(v); got != want {
					t.Errorf("%s: %s, model %s: %s, want %s: %s", tt.name, row, column, got, want, v.Reasoning)
				}
				if v.IsAllowedDespiteFailure != strings.HasPrefix(want, "A50 n") || (v.NextTier == 2) != (want[0] == 'E') {
					t.Errorf("%s: %s, model %s: degraded %v, next tier %d", tt.name, row, column, v.IsAllowedDespiteFailure, v.NextTier)
				}
			}
		}
	}
}

// unasked is a model that must not be asked.
type unasked struct{ t *testing.T }

func (u unasked) Score(context.Context, string) (InjectionScore, error) {
	u.t.Error("the model was asked")
	return InjectionScore{}, errors.New("not to be asked")
}

// TestDualUnasked holds what happens to actions that the model is not asked
// about: those on their way to a higher tier, and those of a skipped type.
// What any rule blocks stays blocked, and failing open changes nothing.
func TestDualUnasked(t *testing.T) {
	t.Parallel()
	rows := dualRows(t, `
		           higher   skipped  higher,off  skipped,off
		harmless   E70 h h  A95 h h  E70 h h     A95 h h
		ordinary   E70 h h  E70 h h  E70 h h     E70 h h
		plain      E70 h h  E70 h h  E70 h h     E70 h h
		escalating E70 h h  E85 h h  E70 h h     E70 h h
		blocking   B95 h h  B95 h h  E70 h h     E70 h h
		always     B85 h h  B85 h h  B85 h h     B85 h h
		dynamic    E70 h h  E70 h h  E70 h h     E70 h h
		unexamined E70 h h  E70 h h  E70 h h     E70 h h`)
	for row, cells := range rows {
		for column, want := range cells {
			for _, open := range []bool{false, true} {
				for _, tier := range []int{0, 1, 2, 3} {
					kind, _, off := strings.Cut(column, ",")
					if (tier >= 2) != (kind == "higher") {
						continue
					}
					c := dualCases()[row]
					c.MinAllowTier = tier
					v, err := New(Options{Model: unasked{t}, RunsOnlyAlwaysBlockRules: off, FailOpen: open, ModelSkippedActionTypes: []string{"write_file", "execute_command"}}).Judge(t.Context(), c)
					if err != nil {
						t.Fatal(err)
					}
					if got := dualCell(v); got != want {
						t.Errorf("%s, %s, tier %d, fail open %v: %s, want %s: %s", row, column, tier, open, got, want, v.Reasoning)
					}
					if next := max(2, tier); v.Decision == verdict.Escalate && v.NextTier != next {
						t.Errorf("%s, %s, tier %d: next tier %d", row, column, tier, v.NextTier)
					}
				}
			}
		}
	}
	// Another type's skipping says nothing.
	asked := ""
	if _, err := New(Options{Model: scorer{asked: &asked}, ModelSkippedActionTypes: []string{"write_file"}}).Judge(t.Context(), dualCases()["plain"]); err != nil || asked == "" {
		t.Errorf("asked %q, %v", asked, err)
	}
}

// TestDualCancelled: an action whose caller stops waiting is not judged, unless
// a rule has blocked it already.
func TestDualCancelled(t *testing.T) {
	t.Parallel()
	for row, c := range dualCases() {
		for _, open := range []bool{false, true} {
			ctx, stop := context.WithCancel(t.Context())
			v, err := New(Options{Model: cancelling{stop}, FailOpen: open}).Judge(ctx, c)
			switch {
			case row == "harmless":
				if err != nil || v.Decision != verdict.Allow {
					t.Errorf("%s: %v, %v", row, v.Decision, err)
				}
			case slices.Contains([]string{"blocking", "always"}, row):
				if err != nil || v.Decision != verdict.Block || v.ErrorCode != "" {
					t.Errorf("%s: %v %q, %v", row, v.Decision, v.ErrorCode, err)
				}
			case row == "escalating" && open: // the next tier sees that no one waits
				if err != nil || v.Decision != verdict.Escalate {
					t.Errorf("%s: %v, %v", row, v.Decision, err)
				}
			default:
				if !errors.Is(err, context.Canceled) || v.Decision != verdict.NoDecision {
					t.Errorf("%s, fail open %v: %v %s, %v", row, open, v.Decision, v.Reasoning, err)
				}
			}
			stop()
		}
	}
}

// cancelling is a model whose caller stops waiting.
type cancelling struct{ stop func() }

func (m cancelling) Score(ctx context.Context, _ string) (InjectionScore, error) {
	m.stop()
	return InjectionScore{}, fmt.Errorf("model: %w", ctx.Err())
}

// Each classifier of a tier says how long it took, anyone who the model is.
func TestLatencies(t *testing.T) {
	t.Parallel()
	server := sidecar(t, healthy(says(`{"label":"SAFE","confidence":0.9}`)), SidecarOptions{})
	for name, model := range map[string]InjectionScorer{"in process": dualModels["safe"], "sidecar": server, "failing": dualModels["error"]} {
		var ticks atomic.Int64
		clock := func() time.Time { return time.Unix(0, 0).Add(time.Duration(ticks.Add(1)) * time.Millisecond) }
		c := dualCases()["plain"]
		v, err := New(Options{Model: model, Clock: clock}).Judge(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range v.Trail {
			if st.LatencyMicroseconds < 1000 {
				t.Errorf("%s: %s took %d µs by a clock of milliseconds", name, st.JudgeName, st.LatencyMicroseconds)
			}
		}
		if len(v.Trail) != 2 {
			t.Errorf("%s: %d steps, want those of the rules and of the model", name, len(v.Trail))
		}
	}
}
