package classify

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell"
)

// The specification's tables: ids, names, severities where it gives them, and
// outcomes.
func TestSpecifiedRules(t *testing.T) {
	t.Parallel()
	want := []struct {
		id, name string
		severity Severity // "" where the specification names none
		outcome  RuleOutcome
	}{
		{"PI-001", "ignore_instructions", Critical, Block},
		{"PI-002", "system_message_spoof", Critical, Block},
		{"PI-003", "role_switch", Critical, Block},
		{"PI-004", "jailbreak_markers", High, Block},
		{"PI-005", "instruction_override", Critical, Block},
		{"PT-001", "dot_dot_traversal", "", Escalate},
		{"PT-002", "null_byte", "", Block},
		{"PT-003", "url_encoded_traversal", "", Block},
		{"DE-003", "webhook_exfil", "", Escalate},
		{"SD-001", "private_key_content", "", Block},
		{"SD-002", "aws_key", "", Block},
		{"SD-003", "jwt_token", "", Escalate},
		{"EE-001", "zero_width_chars", High, Block},
		{"SP-001", "shell_writes_protected_file", Critical, Block},
		{"GEN-001", "gen_real_person_explicit", Critical, Block},
		{"GEN-002", "gen_csam_adjacent", Critical, Block},
		{"GEN-003", "gen_weapons_visual", Critical, Block},
		{"EM-001", "email_move_to_trash", "", Escalate},
		{"EM-002", "email_bulk_mark", "", Escalate},
		{"XP-036", "agent_internal_files", "", AlwaysBlock},
		{"XP-037", "grpc_enumeration", "", AlwaysBlock},
	}
	byID := map[string]*Rule{}
	groups := map[string]int{}
	for i := range ruleTable {
		r := &ruleTable[i]
		byID[r.ID] = r
		group, _, _ := strings.Cut(r.ID, "-")
		groups[group]++
	}
	for _, w := range want {
		r := byID[w.id]
		if r == nil {
			t.Errorf("%s is missing", w.id)
		} else if r.Name != w.name || r.Outcome != w.outcome || w.severity != "" && r.Severity != w.severity {
			t.Errorf("%s: got %s %s %s, want %s %s %s", w.id, r.Name, r.Severity, r.Outcome, w.name, w.severity, w.outcome)
		}
	}
	detection := groups["PI"] + groups["PT"] + groups["DE"] + groups["SD"] + groups["EE"] + groups["SP"] + groups["GEN"] + groups["EM"]
	if groups["XP"] < 37 || groups["UX"] < 8 || groups["WIN"] < 13 || detection < 21 {
		t.Errorf("%d XP, %d UX, %d WIN and %d detection rules; at least 37, 8, 13 and 21 are due", groups["XP"], groups["UX"], groups["WIN"], detection)
	}
}

// Every expression compiles, and the prefilter takes every literal.
func TestTables(t *testing.T) {
	t.Parallel()
	var lits [][]string
	check := func(id string, p pattern) {
		if _, err := regexp.Compile(p.expr); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		lits = append(append(lits, p.lits), p.furtherRequiredLiterals...)
	}
	for i := range ruleTable {
		r := &ruleTable[i]
		check(r.ID, r.except)
		for _, p := range r.patterns {
			check(r.ID, p)
		}
		for _, list := range [][]ruleClause{r.clauses, r.requires, r.unless} {
			for _, c := range list {
				check(r.ID, c.args)
				check(r.ID, c.excludedArgs)
				for _, cause := range c.causes {
					if !slices.Contains(effect.Causes(), cause) {
						t.Errorf("%s: no cause %q", r.ID, cause)
					}
				}
				for _, globs := range [][]string{expandNamedListReferences(c.paths, knowledge.GlobsOfPathList), addDescendantGlobs(expandNamedListReferences(c.notPaths, knowledge.GlobsOfPathList))} {
					if _, err := effect.NewGlobs(globs, map[string][]string{"WORKSPACE": nil}); err != nil {
						t.Errorf("%s: %v", r.ID, err)
					}
				}
			}
		}
	}
	if _, ok := prefilter.TryNewLiteralSet(lits); !ok {
		t.Error("the prefilter refuses a literal")
	}
	if n := len(newEngine(ruleTable[:], exampleHome, []string{exampleWorkspaceRoot}).patternsWithoutLiterals); n > 8 {
		t.Errorf("%d patterns have no literal and are tried on every text; find them one", n)
	}
}

func TestExamplesOfOneRule(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"XP-037", "xp-037", "grpc_enumeration"} {
		got, err := RunRuleExamples(t.Context(), shell.Analyze, name)
		if err != nil || len(got) < 6 {
			t.Errorf("Examples(%q): %d, %v", name, len(got), err)
		}
	}
	if _, err := RunRuleExamples(t.Context(), shell.Analyze, "XP-999"); err == nil || !strings.Contains(err.Error(), "rules list") {
		t.Errorf("an unknown rule gives %v", err)
	}
	if f := BuiltInRulesFingerprint(); !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(f) {
		t.Errorf("fingerprint %q", f)
	}
}
