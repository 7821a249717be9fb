package policy

import (
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// A rule for what cannot be restored is met by any effect that loses something,
// and so is its exception; an allow rule for what can be restored covers no other.
func TestRestorable(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `
verify:
  - {name: loses, reason: files are lost, action_types: [delete_file], restorable: false, tier_override: 2}
  - {name: moves, reason: files move, action_types: [move_file], tier_override: 2, except: [{restorable: true}]}
allow:
  - {name: kept, reason: git has it, action_types: [delete_file, move_file], restorable: true}
`)
	change := func(kind effect.Kind, kept bool) effect.Effect {
		return effect.Effect{Kind: kind, Path: "/work/app/a", IsRestorableWithoutBackup: kept}
	}
	for name, tt := range map[string]struct {
		effects []effect.Effect
		want    string
	}{
		"kept":            {[]effect.Effect{change(effect.DeleteFile, true)}, "kept"},
		"lost":            {[]effect.Effect{change(effect.DeleteFile, false)}, "loses"},
		"both":            {[]effect.Effect{change(effect.DeleteFile, true), change(effect.DeleteFile, false)}, "loses"},
		"kept and a read": {[]effect.Effect{change(effect.DeleteFile, true), read("/x")}, ""},
		"moved, kept":     {[]effect.Effect{change(effect.MoveFile, true)}, "kept"},
		"moved, lost":     {[]effect.Effect{change(effect.MoveFile, false)}, "moves"},
	} {
		v, err := p.Judge(t.Context(), caseOf("execute_command", tt.effects...))
		if err != nil {
			t.Fatal(err)
		}
		if v.Rule != tt.want {
			t.Errorf("%s: rule %q, want %q", name, v.Rule, tt.want)
		}
	}
	if _, err := Load("p.yaml", []byte("deny:\n  - {name: a, reason: r, action_types: [delete_file], restorable: maybe}\n"), testOptions()); err == nil {
		t.Error("restorable: maybe is taken")
	}
}
