package script

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract/worldtest"
)

var update = flag.Bool("update", false, "rewrite the expected lines; read the diff")

// TestRead reads the cases of testdata, a file a language.
func TestRead(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases:", err)
	}
	for _, file := range files {
		language := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(language, func(t *testing.T) {
			worldtest.CheckGoldenCases(t, file, *update, func(w *worldtest.RecordingContext, _, text string) {
				Interpret(w, language, text, effect.CommandTextSpan{})
			})
		})
	}
}

// TestReadGivesUp checks that code is left as unknown where the budget, its
// length or its depth ends.
func TestReadGivesUp(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"too long": strings.Repeat("a ", 40<<10),
		"too deep": "x = " + strings.Repeat("(", 300) + "1",
		"nested":   "a = ['b']" + strings.Repeat("; a = [a, a]", 40),
		"added":    "a = ['b']" + strings.Repeat("; a = a + a", 40),
		"reversed": "a = ['b']" + strings.Repeat("; a = [a.reverse(), a.reverse()]", 40),
	} {
		w := worldtest.New()
		if out := Interpret(w, "python", text, effect.CommandTextSpan{}); out.IsLiteral() {
			t.Errorf("%s: writes %+v", name, out)
		}
		if got := strings.Join(w.RecordedCalls, "\n"); !strings.Contains(got, "too long") && !strings.Contains(got, "gives up") {
			t.Errorf("%s: reports %q", name, got)
		}
	}
	w := worldtest.New()
	w.RemainingSteps = 3
	Interpret(w, "python", "open('a'); open('b'); open('c'); open('d')", effect.CommandTextSpan{})
	if !w.IsAnalysisAborted() {
		t.Errorf("goes on without a budget: %q", w.RecordedCalls)
	}
}

// TestReadBoundsTexts checks that texts that double with each call do not grow without limit.
func TestReadBoundsTexts(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"a = a + a", "a = a.replace('b', 'bb')", "a = a.join([a, a])", "a = '%s%s' % (a, a)"} {
		w := worldtest.New()
		Interpret(w, "python", "a = 'b'"+strings.Repeat("; "+again, 60)+"; open(a)", effect.CommandTextSpan{})
		for _, r := range w.RecordedCalls {
			if len(r) > 2*abstract.MaxValueBytes {
				t.Errorf("%s: %d bytes", again, len(r))
			}
		}
	}
}

// TestOutputIsTainted checks that what code writes carries what it has read.
func TestOutputIsTainted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]abstract.Taint{
		"print(open('/home/me/.ssh/id_rsa').read())": abstract.TaintReadCredentials,
		"import os; print(dict(os.environ))":         abstract.TaintEnvironmentDump,
		"print(1)":                                   0,
	} {
		if got := Interpret(worldtest.New(), "python", text, effect.CommandTextSpan{}).Taint; got != want {
			t.Errorf("%s: taint %b, want %b", text, got, want)
		}
	}
}
