package shield

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// awaiting is a tier that answers when the verdict before has been written.
type awaiting chan struct{}

func (a awaiting) Judge(context.Context, *analysis.ActionCase) (verdict.Verdict, error) {
	<-a
	return verdict.Verdict{Decision: verdict.Block}, nil
}

// A verdict is written before the next action is put to something outside this process,
// however much is waiting to be judged.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	for _, tier := range []int{TierClassify, TierEvaluate, TierApprove} {
		synctest.Test(t, func(t *testing.T) {
			p := pipelineOf(t, Config{PolicyNameOrPath: "offline", Home: "/home/me", WorkingDir: "/home/me/app", Clock: instant})
			written := make(awaiting)
			p.tiers[tier] = written
			p.usesClassifierSidecar = tier == TierClassify
			asks := deletes
			if tier == TierClassify {
				asks = listing
			}
			in := NewActionSource(strings.NewReader(read+"\n"+asks+"\n"+read+"\n"), "in", 1<<20)
			var decisions []string
			err := p.JudgeStream(t.Context(), in, func(j *InputRecordResult) error {
				if decisions = append(decisions, j.Verdict.Decision.String()); len(decisions) == 1 {
					close(written)
				}
				return nil
			}, StreamOptions{Tiers: AllTiers})
			if got := strings.Join(decisions, " "); err != nil || got != "ALLOW BLOCK ALLOW" {
				t.Errorf("tier %d: %s, %v", tier, got, err)
			}
		})
	}
}

// Where the next verdict is ready, too, the sink is told so; after the last it never is.
func TestMore(t *testing.T) {
	t.Parallel()
	p := pipelineOf(t, Config{PolicyNameOrPath: "offline", Home: "/home/me", WorkingDir: "/home/me/app", StateDir: t.TempDir(), Clock: instant})
	const n = 200
	in := NewActionSource(strings.NewReader(strings.Repeat(read+"\n", n)), "in", 1<<20)
	together, verdicts, more := 0, 0, false
	err := p.JudgeStream(t.Context(), in, func(j *InputRecordResult) error {
		verdicts++
		if more = j.IsNextResultReady; more {
			together++
		}
		return nil
	}, StreamOptions{Tiers: AllTiers})
	if err != nil || verdicts != n || more {
		t.Errorf("%d verdicts of %d, more to come: %v, %v", verdicts, n, more, err)
	}
	if together == 0 {
		t.Error("each verdict was written by itself")
	}
}
