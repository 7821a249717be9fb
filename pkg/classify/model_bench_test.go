package classify

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// benchModels are the small models and the one that shield carries.
var benchModels = []string{"testdata/models/bert", "testdata/models/deberta", "../../models/default"}

// openBench opens a model and loads it.
func openBench(b *testing.B, dir string) (*Model, *loadedModel) {
	b.Helper()
	openTest(b, "bert") // skips where there is no runtime
	m, err := OpenModel(os.DirFS(dir), "known", library)
	if err != nil {
		b.Fatal(err)
	}
	l, err := m.load()
	if err != nil {
		b.Fatal(err)
	}
	return m, l
}

// BenchmarkScore is a text of some tokens, those around it among them.
func BenchmarkScore(b *testing.B) {
	for _, dir := range benchModels {
		for _, n := range []int{16, 64, 128} {
			b.Run(fmt.Sprintf("%s/%d", dir, n), func(b *testing.B) {
				m, l := openBench(b, dir)
				text := "execute_command:"
				for {
					ids, err := l.tokenizer.Encode(b.Context(), text+" a")
					if err != nil {
						b.Fatal(err)
					}
					if len(ids)+l.tokenizer.SpecialTokenCount() > n {
						break
					}
					text += " a"
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := m.Score(b.Context(), text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkScoreParallel is what goroutines, one a core, make of one session.
func BenchmarkScoreParallel(b *testing.B) {
	for _, dir := range benchModels {
		b.Run(dir, func(b *testing.B) {
			m, _ := openBench(b, dir)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := m.Score(b.Context(), `execute_command: {"command":"find . -name '*.go' | xargs grep -l context"}`); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkScoreLongest is a text of all the windows that are read.
func BenchmarkScoreLongest(b *testing.B) {
	text := strings.Repeat("- ", 30_000)
	for _, dir := range benchModels {
		b.Run(dir, func(b *testing.B) {
			m, _ := openBench(b, dir)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = m.Score(b.Context(), text)
			}
		})
	}
}
