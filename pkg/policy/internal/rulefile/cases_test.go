package rulefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/yamlfile"
)

// TestCases holds what is read of a table, which may be YAML with a place, a list, or
// JSON Lines.
func TestCases(t *testing.T) {
	t.Parallel()
	table, err := ParseCases("c.yaml", []byte(`
place:
  cwd: /a
  home: /h
  roots: [/a, /b]
  fold_case: true
  vars: {X: [1.test, 2.test], Y: z}
cases:
  - name: one
    action: ls -la
    want: ESCALATE 2
    rule: r
  - action: {type: read_file, payload: {path: x}}
    want: {default: ALLOW, strict: ESCALATE, offline: BLOCK}
`))
	if err != nil {
		t.Fatal(err)
	}
	if table.CWD != "/a" || table.Home != "/h" || !slices.Equal(table.WorkspaceRoots, []string{"/a", "/b"}) || !table.FoldsPathLetterCase || !slices.Equal(table.Vars["X"], []string{"1.test", "2.test"}) || !slices.Equal(table.Vars["Y"], []string{"z"}) {
		t.Errorf("place: %+v", table)
	}
	for i, want := range []string{
		`{"type":"execute_command","payload":{"command":"ls -la"}} [{ ESCALATE 2}] "r" 9:5`,
		`{"type":"read_file","payload":{"path":"x"}} [{default ALLOW 0} {strict ESCALATE 0} {offline BLOCK 0}] "" 13:5`,
	} {
		c := table.Cases[i]
		if got := fmt.Sprintf("%s %v %q %d:%d", c.Action, c.Want, c.ExpectedRule, c.Pos.Line, c.Pos.Column); got != want {
			t.Errorf("case %d: %s\nwant %s", i, got, want)
		}
	}
	for name, text := range map[string]string{
		"list":       "- {name: a, action: ls, want: BLOCK}\n- {name: b, action: pwd, want: ALLOW}\n",
		"JSON Lines": "\n{\"name\":\"a\",\"action\":\"ls\",\"want\":\"BLOCK\"}\n \n{\"name\":\"b\",\"action\":\"pwd\",\"want\":\"ALLOW\"}",
	} {
		table, err := ParseCases("c", []byte(text))
		if err != nil || len(table.Cases) != 2 || table.Cases[1].Name != "b" || table.Cases[1].Want[0].Decision != "ALLOW" {
			t.Errorf("%s: %+v, %v", name, table, err)
		}
	}
}

// TestCasesRefused holds that a table which does not say what it seems to say is
// refused, and where: a case that is passed over would be a check that never fails.
func TestCasesRefused(t *testing.T) {
	t.Parallel()
	const good = `{"action":"ls","want":"ALLOW"}` + "\n"
	for _, c := range [...]struct{ text, want string }{
		{"", "c:1:1: the file is empty"},
		{"# none\n", "the file is empty"},
		{"text\n", "expected a mapping, found text"},
		{"case: []\n", `c:1:1: unknown key "case"; did you mean "cases"?`},
		{"cases: {a: b}\n", "expected a list, found a mapping"},
		{"- ls\n", "c:1:3: expected a mapping, found text"},
		{"- {want: ALLOW}\n", "c:1:3: the case has no action"},
		{"- {action: ls}\n", "the case has no want"},
		{"- {action: ls, want: ALOW}\n", `"ALOW" is not a decision; did you mean "ALLOW"?`},
		{"- {action: ls, want: allow}\n", `"allow" is not a decision`},
		{"- {action: ls, want: ESCALATE 4}\n", "is not a decision"},
		{"- {action: ls, want: ESCALATE 0}\n", "is not a decision"},
		{"- {action: ls, want: 'ESCALATE  2'}\n", "is not a decision"},
		{"- {action: ls, want: [ALLOW]}\n", "expected text, found a list"},
		{"- {action: ls, want: {default: [ALLOW]}}\n", "expected text, found a list"},
		{"- {action: ls, want: {default: ALLOW, default: BLOCK}}\n", "c:1:"},
		{"- {action: ls, want: ALLOW, decision: BLOCK}\n", `unknown key "decision"`},
		{"- {action: ls, want: ALLOW, want: BLOCK}\n", "c:1:"},
		{"- {action: [[ls]], want: ALLOW}\n", "c:1:"},
		{"- {name: [a], action: ls, want: ALLOW}\n", "expected text, found a list"},
		{"- {rule: 7, action: ls, want: ALLOW}\n", "expected text, found a number"},
		{"place: []\n", "expected a mapping, found a list"},
		{"place: {cwd: 7}\n", "expected text, found a number"},
		{"place: {home: [a]}\n", "expected text, found a list"},
		{"place: {roots: {a: b}}\n", "expected text"},
		{"place: {fold_case: 'yes'}\n", "c:1:20: expected true or false, found text"},
		{"place: {vars: [a]}\n", "expected a mapping, found a list"},
		{"place: {vars: {X: {a: b}}}\n", "expected text"},
		{"place: {folder: /}\n", `unknown key "folder"`},
		{good + "{\n", "c:2:"},
		{good + "\n" + `{"action":"ls","want":"ALOW"}`, "c:3:"},
		{good + `{"action":"ls","want":"ALLOW"} {"action":"ls"}`, "c:2:"},
		{good + "ls\n", "c:2:"},
		{good + `{"action":"ls"}`, "c:2:"},
	} {
		table, err := ParseCases("c", []byte(c.text))
		var errs yamlfile.Errors
		if !errors.As(err, &errs) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, error %v, want %s", c.text, table, err, c.want)
		}
	}
}

// TestOver holds that the rules of a policy come before those of its preset, and that
// an exception reaches the rule of that name and no copy of it.
func TestOver(t *testing.T) {
	t.Parallel()
	base := PolicyRuleLists{
		Deny:   []Rule{{Name: "one", Criteria: Criteria{Paths: []string{"/x"}}}, {Name: "two", Except: []Criteria{{Paths: []string{"/old"}}}}},
		Verify: []Rule{{Name: "three"}},
		Allow:  []Rule{{Name: "four"}},
	}
	file, err := Parse("f.yaml", []byte(`
extends: base
deny:
  - {name: own, paths: [/y]}
  - {name: two, except: {paths: [/new]}}
verify: [{name: mine, paths: [/z]}]
allow: [{name: none, paths: [/w]}]
`), CriterionSyntaxChecks{})
	if err != nil {
		t.Fatal(err)
	}
	got, lost := file.MergeBeforeBase(base)
	if len(lost) > 0 {
		t.Fatal(lost)
	}
	for name, c := range map[string]struct {
		rules []Rule
		want  string
	}{
		"deny": {got.Deny, "own one two"}, "verify": {got.Verify, "mine three"}, "allow": {got.Allow, "none four"},
	} {
		if names := strings.Join(ruleNames(c.rules), " "); names != c.want {
			t.Errorf("%s: %s, want %s", name, names, c.want)
		}
	}
	if except := got.Deny[2].Except; len(except) != 2 || except[0].Paths[0] != "/old" || except[1].Paths[0] != "/new" {
		t.Errorf("exceptions %+v", except)
	}
	if len(base.Deny[1].Except) != 1 {
		t.Error("the preset itself was changed")
	}
	if got.Fingerprint() == base.Fingerprint() {
		t.Error("another set has the same fingerprint")
	}
	for _, name := range []string{"tow", "three", "own"} { // misspelled, of another list, not of the preset
		wrong := PolicyRuleLists{Deny: []Rule{{Name: name, OnlyAddsExceptionsToPreset: true, Pos: yamlfile.Pos{Line: 3, Column: 5}}}}
		set, lost := wrong.MergeBeforeBase(base)
		if len(lost) != 1 || !strings.Contains(lost.Error(), `"`+name+`" only has exceptions`) {
			t.Errorf("exceptions to %s: %v", name, lost)
		}
		if set.Fingerprint() != base.Fingerprint() {
			t.Errorf("exceptions to %s change the set", name)
		}
	}
}

// TestTrusted holds that a criterion of trust is a boolean, and that neither value is
// the same as none.
func TestTrusted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"true": "true", "false": "false"} {
		f, err := Parse("f.yaml", []byte("deny: [{name: a, trusted: "+text+"}]"), CriterionSyntaxChecks{})
		if err != nil || f.Deny[0].RequiredTargetTrust != want || f.Deny[0].Empty() {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
	for _, text := range []string{"yes", "'true'", "1", "[true]", "~"} {
		f, err := Parse("f.yaml", []byte("deny: [{name: a, paths: [/x], trusted: "+text+"}]"), CriterionSyntaxChecks{})
		if err == nil || !strings.Contains(err.Error(), "write true or false") {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
}
