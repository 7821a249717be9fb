//go:build !race

package shield

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
)

// maxAllocations is how many allocations judging the sample may take up to a tier, 2 %
// more than what it takes.
var maxAllocations = map[int]float64{TierPolicy: 208_000, TierClassify: 213_000}

// The allocations of 1,000 real actions do not grow unseen: they do not depend on the
// machine, as time does. Whoever lowers them lowers the bound.
func TestAllocations(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "testdata", "sample", "actions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var actions []*action.Action
	for lines := bufio.NewScanner(f); lines.Scan(); {
		a, err := action.Parse(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		actions = append(actions, a)
	}
	for until, most := range maxAllocations {
		p, err := NewPipeline(Config{Home: "/home/dev", WorkingDir: "/home/dev/project", PolicyNameOrPath: "offline", IgnoresFileSystem: true})
		if err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(1, func() {
			for _, a := range actions {
				p.judgeAndSealWithMAC(context.Background(), judgeRequest{Action: a}, TierRange{TierPolicy, until})
			}
		})
		t.Logf("tiers up to %d: %.0f allocations", until, n)
		if n > most {
			t.Errorf("tiers up to %d: %.0f allocations for %d actions, at most %.0f", until, n, len(actions), most)
		}
	}
}
