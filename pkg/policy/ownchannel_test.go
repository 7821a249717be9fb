package policy

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestOwnChannel holds whose questions shield asks itself: those of the rules that the
// presets name, also under a file that extends none, and those that the file names.
func TestOwnChannel(t *testing.T) {
	t.Parallel()
	const rule = "verify:\n  - {name: mine, reason: it is mine, action_types: [read_file], tier_override: 3}\n"
	plain, err := Load("f", []byte(rule), Options{})
	if err != nil {
		t.Fatal(err)
	}
	named, err := Load("f", []byte("own_channel: [mine, XP-014]\n"+rule), Options{})
	if err != nil {
		t.Fatal(err)
	}
	preset, err := Preset("offline", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p    *Policy
		step verdict.TierStep
		want bool
	}{
		{preset, verdict.TierStep{Decision: verdict.Escalate, Rule: "raw_disks"}, true},
		{preset, verdict.TierStep{Decision: verdict.Escalate, Rule: "force_push_main"}, false},
		{preset, verdict.TierStep{Decision: verdict.Escalate}, false},
		{preset, verdict.TierStep{Decision: verdict.Allow, Rule: "raw_disks"}, false},
		{plain, verdict.TierStep{Decision: verdict.Escalate, Rule: "raw_disks"}, true},
		{plain, verdict.TierStep{Decision: verdict.Escalate, Rule: "mine"}, false},
		{named, verdict.TierStep{Decision: verdict.Escalate, Rule: "mine"}, true},
		{named, verdict.TierStep{Decision: verdict.Escalate, Rule: "XP-014"}, true},
	} {
		if got := c.p.MustPromptThroughShield(&analysis.ActionCase{EarlierTierSteps: []verdict.TierStep{{Decision: verdict.Escalate}, c.step}}); got != c.want {
			t.Errorf("%s, %+v: %v", c.p.Name(), c.step, got)
		}
	}
	// A preset may lose a rule with an update: that is a warning, and no policy that blocks everything.
	lost, err := Load("f", []byte("own_channel: [mien]\n"+rule), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := lost.MissingPresetRulesError(); err == nil || !strings.Contains(err.Error(), `own_channel names "mien", which is no verify rule`) {
		t.Errorf("a name that no rule has: %v", err)
	}
}
