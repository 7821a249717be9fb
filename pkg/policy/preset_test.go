package policy

import (
	"os"
	"testing"

	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
	"github.com/shieldcli/shield/policies"
)

// source parses a policy file that shield ships.
func source(t *testing.T, name string) *rulefile.File {
	t.Helper()
	data, err := policies.FS.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := rulefile.Parse(name+".yaml", data, criterionSyntaxChecks(testOptions().FoldersByGlobVariable))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// withoutExample are kinds that only commands have; their rules are tested by
// the table of cases.
var withoutExample = map[string]bool{
	"remote_shell": true, "shield_mounts": true, "shield_answers": true, "cannot_be_undone": true, "runs_foreign_code": true, "runs_fetched_files": true, "evaluate_fetched_code": true, "sends_secrets": true, "sends_seen_values": true,
	"watches_the_user": true, "evaluate_system_changes": true, "evaluate_secrets": true, "evaluate_system": true,
}

func TestPresetExamples(t *testing.T) {
	t.Parallel()
	for file, presets := range map[string][]string{
		"core": PresetNames(), "base": {"default", "permissive", "offline"},
		"default": {"default"}, "strict": {"strict"}, "permissive": {"permissive"}, "offline": {"offline"},
	} {
		f := source(t, file)
		for _, list := range [][]rulefile.Rule{f.Deny, f.Verify, f.Allow} {
			for _, r := range list {
				if r.OnlyAddsExceptionsToPreset { // it is a rule of base
					continue
				}
				if r.Reason == "" || !withoutExample[r.Name] && (len(r.MatchingExamples) < 2 || len(r.NonMatchingExamples) < 2) {
					t.Errorf("%s: rule %s needs a reason, two match and two pass examples", file, r.Name)
				}
			}
		}
		for _, name := range presets {
			p, err := Preset(name, testOptions())
			if err != nil {
				t.Fatal(err)
			}
			l := linter{ctx: t.Context(), analyzer: testAnalyzer, mergedRuleLists: p.rules, policy: p}
			for _, finding := range l.examine(f) {
				t.Errorf("%s: policies/%s.yaml:%d: %s", name, file, finding.Line, finding.Msg)
			}
		}
	}
}

func TestEveryPresetFile(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("../../policies")
	if err != nil {
		t.Fatal(err)
	}
	known := len(PresetNames()) + len([]string{"core", "base", "dangers", "policies.go"})
	if len(files) != known {
		t.Errorf("%d files in policies/, %d are compiled", len(files), known)
	}
}
