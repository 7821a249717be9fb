package policy

import (
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// A rule for places that are not trusted is met by any effect on such a place,
// and an allow rule for trusted places covers only cases that stay with them.
func TestTrusted(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `
verify:
  - {name: leaves, reason: data leaves, action_types: [send_data], trusted: false, tier_override: 2}
allow:
  - {name: ours, reason: our places, action_types: [send_data], trusted: true}
`)
	send := func(host string, trusted bool) effect.Effect {
		return effect.Effect{Kind: effect.SendData, Host: host, IsTargetTrusted: trusted}
	}
	for name, tt := range map[string]struct {
		effects []effect.Effect
		want    string
	}{
		"trusted":            {[]effect.Effect{send("a.test", true)}, "ours"},
		"foreign":            {[]effect.Effect{send("b.test", false)}, "leaves"},
		"both":               {[]effect.Effect{send("a.test", true), send("b.test", false)}, "leaves"},
		"trusted and a read": {[]effect.Effect{send("a.test", true), read("/x")}, ""},
		"another kind":       {[]effect.Effect{contact("b.test")}, ""},
	} {
		v, err := p.Judge(t.Context(), caseOf("execute_command", tt.effects...))
		if err != nil {
			t.Fatal(err)
		}
		if v.Rule != tt.want {
			t.Errorf("%s: rule %q, want %q", name, v.Rule, tt.want)
		}
	}
	for _, text := range []string{"trusted: maybe", "trusted: [true]", "trusted: 1"} {
		if _, err := Load("p.yaml", []byte("deny:\n  - {name: a, reason: r, action_types: [send_data], "+text+"}\n"), testOptions()); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
