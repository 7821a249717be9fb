package policy

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

func mustLayer(t testing.TB, layer, yaml string) *Policy {
	t.Helper()
	p, err := LoadLayer(layer, layer+".yaml", []byte(yaml), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLayerRefuses holds that a lower layer has nothing in it that could loosen.
func TestLayerRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ yaml, want string }{
		"allow":      {"allow:\n  - name: all\n    action_types: [read_file]\n", "team.yaml:2:5: the team layer cannot allow actions"},
		"preset":     {"extends: permissive\n", "team.yaml:1:10: the team layer cannot extend a preset"},
		"exception":  {"deny:\n  - name: x\n    action_types: [read_file]\n    except: {paths: [/a]}\n", `team.yaml:2:5: rule "x" has exceptions`},
		"only those": {"verify:\n  - name: writes\n    except: {paths: [/a]}\n", "exceptions"},
		"trusted":    {"trusted: {hosts: ['*']}\n", `unknown key "trusted"`},
		"roots":      {"roots: [/]\n", `unknown key "roots"`},
		"empty":      {"", "empty"},
		"garbage":    {"\x00\x01", "team.yaml"},
		"rule name":  {"deny:\n  - name: a/b\n", "only letters"},
	} {
		_, err := LoadLayer("team", "team.yaml", []byte(tt.yaml), testOptions())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func TestLayersTighten(t *testing.T) {
	t.Parallel()
	top := mustLoad(t, `
deny: [{name: keys, action_types: [read_file], paths: [/keys/**]}]
verify: [{name: writes, action_types: [write_file], tier_override: 2}]
allow: [{name: reads, action_types: [read_file]}]
`)
	team := mustLayer(t, "team", `
deny: [{name: data, action_types: [read_file], paths: [/data/**]}]
verify:
  - {name: writes, action_types: [write_file], tier_override: 1}
  - {name: asks, action_types: [read_file], paths: [/ask/**], tier_override: 1}
  - {name: net, action_types: [http_request], tier_override: 1}
`)
	user := mustLayer(t, "user", `
deny: [{name: mine, action_types: [read_file], paths: [/data/**, /srv/mine/deep/**]}]
verify: [{name: writes, action_types: [write_file], paths: [/etc/**], tier_override: 3}]
`)
	p := top.WithLowerLayers(team, user)
	for name, tt := range map[string]struct {
		c    *analysis.ActionCase
		want verdict.Decision
		tier int
		rule string
	}{
		"the highest denies":           {caseOf("read_file", read("/keys/a")), verdict.Block, 0, "keys"},
		"the highest allows":           {caseOf("read_file", read("/a")), verdict.Allow, 0, "reads"},
		"a lower one denies":           {caseOf("read_file", read("/data/a")), verdict.Block, 0, "team/data"},
		"the lowest denies":            {caseOf("read_file", read("/srv/mine/deep/a")), verdict.Block, 0, "user/mine"},
		"one of two effects":           {caseOf("read_file", read("/a"), read("/srv/mine/deep/a")), verdict.Block, 0, "user/mine"},
		"a lower one asks":             {caseOf("read_file", read("/ask/a")), verdict.Escalate, 1, "team/asks"},
		"a lower tier does not count":  {caseOf("write_file", write("/a")), verdict.Escalate, 2, "writes"},
		"a higher tier does":           {caseOf("write_file", write("/etc/a")), verdict.Escalate, 3, "user/writes"},
		"possibly denied":              {caseOf("read_file", tree(read("/srv"))), verdict.Escalate, 2, "user/mine"},
		"a rule instead of none":       {caseOf("http_request", contact("a.test")), verdict.Escalate, 1, "team/net"},
		"no layer has a rule":          {caseOf("list_directory", effect.Effect{Kind: effect.ListDirectory, Path: "/a"}), verdict.Escalate, 1, ""},
		"what cannot be known is not":  {caseOf("read_file", read("/a"), effect.Effect{Certainty: effect.Unknown}), verdict.Escalate, 1, ""},
		"the first of equal ones wins": {caseOf("read_file", read("/data/a"), read("/srv/mine/deep/a")), verdict.Block, 0, "team/data"},
	} {
		v, err := p.Judge(t.Context(), tt.c)
		if err != nil || v.Decision != tt.want || v.NextTier != tt.tier || v.Rule != tt.rule {
			t.Errorf("%s: %v, tier %d, rule %q, error %v", name, v.Decision, v.NextTier, v.Rule, err)
		}
		answers, err := p.LayerVerdicts(t.Context(), tt.c)
		if err != nil || len(answers) != 3 {
			t.Fatalf("%s: %d answers, error %v", name, len(answers), err)
		}
		for i, a := range answers {
			if a.Layer != []string{HighestPolicyLayerName, "team", "user"}[i] || a.IsDecisive && a.Verdict.Rule != tt.rule {
				t.Errorf("%s: %+v decides", name, a)
			}
		}
	}
}

// TestLayersNeverLoosen judges each case of several kinds, places and certainties with
// and without layers that say all that a layer can say.
func TestLayersNeverLoosen(t *testing.T) {
	t.Parallel()
	rank := map[verdict.Decision]int{verdict.Allow: 0, verdict.Escalate: 1, verdict.Block: 2}
	lower := mustLayer(t, "team", `
deny: [{name: d, paths: [/b/**]}]
verify:
  - {name: one, paths: ["/**"], tier_override: 1}
  - {name: three, paths: [/c/**], tier_override: 3}
`)
	judged := 0
	for _, preset := range PresetNames() {
		top, err := Preset(preset, testOptions())
		if err != nil {
			t.Fatal(err)
		}
		both := top.WithLowerLayers(lower)
		if both.Fingerprint() == top.Fingerprint() {
			t.Error("a layer does not change the fingerprint")
		}
		for _, kind := range effect.Kinds() {
			for _, path := range []string{"/a/x", "/b/x", "/c/x", "/etc/passwd", "/home/me/.ssh/id_rsa", "/home/me/work/x"} {
				for _, change := range []func(effect.Effect) effect.Effect{unknown, tree, func(e effect.Effect) effect.Effect { return e }} {
					e := change(effect.Effect{Kind: kind, Path: path})
					was, err1 := top.Judge(t.Context(), caseOf(string(kind), e))
					is, err2 := both.Judge(t.Context(), caseOf(string(kind), e))
					if err1 != nil || err2 != nil {
						t.Fatal(err1, err2)
					}
					if judged++; rank[is.Decision] < rank[was.Decision] || is.NextTier < was.NextTier && is.Decision == was.Decision {
						t.Errorf("%s, %+v: %v tier %d becomes %v tier %d", preset, e, was.Decision, was.NextTier, is.Decision, is.NextTier)
					}
				}
			}
		}
	}
	if judged < 1000 {
		t.Errorf("only %d cases", judged)
	}
}

// TestLayersTurnOnNoBackups holds that a rule about backups in a lower layer does not
// have shield allow what it backs up, which the highest layer did not ask for.
func TestLayersTurnOnNoBackups(t *testing.T) {
	t.Parallel()
	const aboutBackups = "verify: [{name: x, action_types: [delete_file], restorable: kept}]\n"
	for name, tt := range map[string]struct {
		top, lower string
		want       bool
	}{
		"highest": {aboutBackups, "deny: [{name: y, paths: [/a]}]\n", true},
		"lower":   {"verify: [{name: x, action_types: [delete_file], restorable: false}]\n", aboutBackups, false},
	} {
		if got := mustLoad(t, tt.top).WithLowerLayers(mustLayer(t, "team", tt.lower)).HasBackedUpFileCriterion(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestLayersRemember(t *testing.T) {
	t.Parallel()
	team := mustLayer(t, "team", "deny: [{name: x, session: {after: [read_secret]}}]\n")
	if events, _ := mustLoad(t, "allow: [{name: reads, action_types: [read_file]}]\n").WithLowerLayers(team).RequiredSessionHistory(); !strings.Contains(strings.Join(events, " "), "read_secret") {
		t.Errorf("%q", events)
	}
}
