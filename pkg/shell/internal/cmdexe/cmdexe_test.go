package cmdexe

import (
	"flag"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract/worldtest"
)

var update = flag.Bool("update", false, "rewrite the expected lines; read the diff")

func whole(int, int) effect.CommandTextSpan { return effect.CommandTextSpan{} }

func TestRead(t *testing.T) {
	worldtest.CheckGoldenCases(t, "testdata/cases.txt", *update, func(w *worldtest.RecordingContext, _, text string) {
		Interpret(w, text, whole)
	})
}

// TestReadGivesUp checks that text is left as unknown where the budget or its
// length ends.
func TestReadGivesUp(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"too long": strings.Repeat("dir ", 40<<10),
		"too wide": "dir " + strings.Repeat("a ", 5000),
	} {
		w := worldtest.New()
		Interpret(w, text, whole)
		if got := strings.Join(w.RecordedCalls, "\n"); !strings.Contains(got, "dynamic") && !strings.Contains(got, "gives up") {
			t.Errorf("%s: reports %.200q", name, got)
		}
	}
	w := worldtest.New()
	w.RemainingSteps = 1
	Interpret(w, "dir a & dir b & dir c", whole)
	if !w.IsAnalysisAborted() {
		t.Errorf("goes on without a budget: %q", w.RecordedCalls)
	}
}

// TestSpans checks that what is reported is said to be where it does.
func TestSpans(t *testing.T) {
	t.Parallel()
	const text = "dir a && del b | more"
	var got []string
	Interpret(worldtest.New(), text, func(start, end int) effect.CommandTextSpan {
		got = append(got, strings.TrimSpace(text[start:end]))
		return effect.CommandTextSpan{Start: start, End: end}
	})
	if s := strings.Join(got, ";"); s != "dir a;del b;more" {
		t.Errorf("spans are %q", s)
	}
}
