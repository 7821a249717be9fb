package shield

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/action"
)

// BenchmarkSample judges 1,000 real actions in turn, and reports the median, the
// mean and the 99th percentile of what one takes. The least of all rounds counts
// for each, so that a busy machine changes little.
func BenchmarkSample(b *testing.B) {
	var actions []*action.Action
	f, err := os.Open(filepath.Join("..", "..", "testdata", "sample", "actions.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		a, err := action.Parse(lines.Bytes())
		if err != nil {
			b.Fatal(err)
		}
		actions = append(actions, a)
	}
	for name, until := range map[string]int{"policy": TierPolicy, "classify": TierClassify, "analysis": -1} {
		b.Run(name, func(b *testing.B) {
			p, err := NewPipeline(Config{Home: "/home/dev", WorkingDir: "/home/dev/project", PolicyNameOrPath: "offline"})
			if err != nil {
				b.Fatal(err)
			}
			took := make([]time.Duration, len(actions))
			b.ReportAllocs()
			for b.Loop() {
				for i, a := range actions {
					start := time.Now()
					if until < 0 {
						p.analyzer.AnalyzeAction(a)
					} else {
						p.judgeAndSealWithMAC(context.Background(), judgeRequest{Action: a}, TierRange{TierPolicy, until})
					}
					if d := time.Since(start); took[i] == 0 || d < took[i] {
						took[i] = d
					}
				}
			}
			slices.Sort(took)
			var sum time.Duration
			for _, d := range took {
				sum += d
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(micro(took[len(took)/2]), "µs-median")
			b.ReportMetric(micro(sum)/float64(len(took)), "µs-mean")
			b.ReportMetric(micro(took[len(took)*99/100]), "µs-p99")
		})
	}
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
