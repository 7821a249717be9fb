package verdict_test

import (
	"testing"

	"github.com/shieldcli/shield/pkg/verdict"
)

// TestWeigh holds that the gravest of two findings decides, then the more confident, then the
// first, in whatever order they come.
func TestWeigh(t *testing.T) {
	t.Parallel()
	if at := verdict.DecidingFindingIndex(); at != -1 {
		t.Errorf("nothing: %d", at)
	}
	of := func(who verdict.ApprovalAuthority, confidence float64) verdict.Finding {
		return verdict.Finding{RequiredAuthority: who, Confidence: confidence}
	}
	whos := []verdict.ApprovalAuthority{verdict.AuthorityNotNeeded, verdict.AuthorityClassifier, verdict.AuthorityEvaluator, verdict.AuthorityPerson, verdict.AuthorityNoneSuffices}
	for _, a := range whos {
		for _, b := range whos {
			for _, c := range []float64{0.5, 0.7, 0.9} {
				want := 0
				if b > a || b == a && c > 0.7 {
					want = 1
				}
				if got := verdict.DecidingFindingIndex(of(a, 0.7), of(b, c)); got != want {
					t.Errorf("%d 0.7, %d %v: %d", a, b, c, got)
				}
				if got := verdict.DecidingFindingIndex(of(b, c), of(a, 0.7)); got == want && (a != b || c != 0.7) {
					t.Errorf("%d %v, %d 0.7: %d", b, c, a, got)
				}
			}
		}
	}
}

// TestWho holds what each tier decides.
func TestWho(t *testing.T) {
	t.Parallel()
	for who, want := range map[verdict.ApprovalAuthority][4]verdict.Decision{
		verdict.AuthorityNotNeeded:        {verdict.Allow, verdict.Allow, verdict.Allow, verdict.Allow},
		verdict.AuthorityClassifier:       {verdict.Escalate, verdict.Allow, verdict.Allow, verdict.Allow},
		verdict.AuthorityEvaluator:        {verdict.Escalate, verdict.Escalate, verdict.Allow, verdict.Allow},
		verdict.AuthorityPerson:           {verdict.Escalate, verdict.Escalate, verdict.Escalate, verdict.Allow},
		verdict.AuthorityNoneSuffices:     {verdict.Block, verdict.Block, verdict.Block, verdict.Block},
		verdict.AuthorityNoneSuffices + 9: {verdict.Block, verdict.Block, verdict.Block, verdict.Block},
	} {
		for tier, decision := range want {
			f := verdict.Finding{RequiredAuthority: who}
			v, s := f.Verdict(tier), f.Step(tier)
			if v.Decision != decision || s.Decision != decision {
				t.Errorf("%d at tier %d: %s, %s, want %s", who, tier, v.Decision, s.Decision, decision)
			}
			if next := v.NextTier; (decision == verdict.Escalate) != (next > tier) || next > 3 {
				t.Errorf("%d at tier %d: next %d", who, tier, next)
			}
		}
	}
	for tier := -1; tier < 9; tier++ {
		if w := verdict.AuthorityOfTier(tier); w > verdict.AuthorityPerson || tier >= 0 && tier <= 3 && int(w) != tier {
			t.Errorf("tier %d: %d", tier, w)
		}
	}
}
