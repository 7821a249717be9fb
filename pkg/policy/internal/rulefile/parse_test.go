package rulefile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/allocated"
	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/knowledge"
)

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, yaml, want string }{
		{"unknown key", "deny: []\ndenny: []\n", `policy f.yaml:2:1: unknown key "denny"; did you mean "deny"?`},
		{"unknown key of a rule", "deny:\n  - name: a\n    path: [/x]\n", `f.yaml:3:5: unknown key "path"; did you mean "paths"?`},
		{"unknown key, nothing near", "deny: []\nzzzzzzz: 1\n", "f.yaml:2:1: unknown key \"zzzzzzz\""},
		{"empty", "", "f.yaml:1:1: the file is empty"},
		{"comment only", "# nothing\n", "f.yaml:1:1: the file is empty"},
		{"top is a list", "- a\n", "expected a mapping, found a list"},
		{"top is text", "deny\n", "expected a mapping, found text"},
		{"list is a mapping", "deny: {a: b}\n", "f.yaml:1:7: expected a list, found a mapping"},
		{"rule is text", "deny: [a]\n", "f.yaml:1:8: expected a mapping, found text"},
		{"no name", "deny: [{paths: [/x]}]\n", "the rule has no name; add one"},
		{"name twice", "deny: [{name: a, paths: [/x]}]\nallow: [{name: a, paths: [/x]}]\n", `f.yaml:2:9: the rule name "a" is already used in line 1`},
		{"name with a newline", "deny: [{name: \"a\\nb\", paths: [/x]}]\n", "letters, digits"},
		{"name is a number", "deny: [{name: 1, paths: [/x]}]\n", "expected text, found a number; put it in quotes"},
		{"name is true", "deny: [{name: true, paths: [/x]}]\n", "found a boolean"},
		{"key twice", "deny: []\ndeny: []\n", "f.yaml:2:1:"},
		{"key twice in a rule", "deny:\n- name: a\n  paths: [/x]\n  paths: [/y]\n", "f.yaml:4:3:"},
		{"key twice, quoted", "deny: []\n\"deny\": []\n", "f.yaml:2:1:"},
		{"key twice, in brackets", "deny: [{name: a, name: b, paths: [/x]}]\n", "f.yaml:1:18:"},
		{"key twice in an example", "deny: [{name: a, match: [{type: a, 'type': b}]}]\n", "f.yaml:1:"},
		{"deep", "deny: " + strings.Repeat("[", 16+1), "nested deeper than 16"},
		{"deep without brackets", "deny:\n" + strings.Repeat("- ", 16+1), "nested deeper than 16"},
		{"empty list", "deny: [{name: a, paths: []}]\n", "paths is empty"},
		{"empty text", "deny: [{name: a, paths: ['']}]\n", "the text is empty; remove it"},
		{"unknown list", "deny: [{name: a, paths: ['@wallet']}]\n", `f.yaml:1:26: unknown list "@wallet"; did you mean "wallets"?`},
		{"too many listed", "deny: [{name: a, paths: [" + strings.Repeat("'@wallets', ", 500) + "]}]\n", "more than 2000 entries"},
		{"null", "deny: [{name: a, paths: ~}]\n", "expected text, found nothing"},
		{"nested list", "deny: [{name: a, paths: [[/x]]}]\n", "expected text, found a list"},
		{"bad RE2", "deny:\n- name: a\n  commands: ['a(b']\n", "f.yaml:3:14: error parsing regexp: missing closing )"},
		{"look-ahead", "deny:\n- name: a\n  content: ['(?=x)']\n", "f.yaml:3:13: error parsing regexp"},
		{"tier of a deny rule", "deny: [{name: a, tier_override: 2}]\n", "tier_override is allowed in verify rules only; remove it"},
		{"tier out of range", "verify: [{name: a, tier_override: 4}]\n", "tier_override must be 1, 2 or 3"},
		{"tier is text", "verify: [{name: a, tier_override: two}]\n", "expected a whole number, found text"},
		{"tier is a fraction", "verify: [{name: a, tier_override: 1.5}]\n", "expected a whole number"},
		{"allows everything", "allow: [{name: a}]\n", "would allow everything"},
		{"empty exception", "verify: [{name: a, paths: [/x], except: {}}]\n", "an exception without criteria would disable the rule; give it a criterion, such as paths"},
		{"exception with a name", "verify: [{name: a, except: {name: b}}]\n", `unknown key "name"`},
		{"exceptions to nothing", "verify: [{name: a, except: {paths: [/x]}}]\n", "the file does not extend a preset"},
		{"anchor", "deny: &a []\nverify: *a\n", "f.yaml:1:7: anchors and aliases"},
		{"merge key", "deny: [{<<: {name: a}}]\n", "anchors and aliases"},
		{"tag", "deny: !!binary aaaa\n", "tags and directives"},
		{"directive", "%YAML 1.2\n---\ndeny: []\n", "tags and directives"},
		{"two documents", "deny: []\n---\ndeny: []\n", "one document"},
		{"not UTF-8", "deny: []\n# \xff\n", "f.yaml:2:3: the file is not UTF-8"},
		{"NUL", "deny: []\n\x00", "f.yaml:2:1: the file contains the control character U+0000"},
		{"escape", "# \x1b[2J\n", "control character U+001B"},
		{"unclosed", "deny: [\n", "f.yaml:1:7:"},
		{"tab", "deny:\n\t- name: a\n", "f.yaml:2:1: the line is indented by a tab"},
		{"bad indent", "deny:\n  - name: a\n - name: b\n", "f.yaml:"},
		{"example of a session", "deny: [{name: a, match: [[1]]}]\n", "expected an action, or a command as text, found a number"},
		{"example of an empty session", "deny: [{name: a, match: [[]]}]\n", "the list must have 1 to 101 actions"},
		{"example in a session is a list", "deny: [{name: a, match: [[[ls]]]}]\n", "expected an action, or a command as text, found a list"},
		{"session has no criterion; add labels, after or value_flow", "deny: [{name: a, session: {}}]\n", "session has no criterion; add labels, after or value_flow"},
		{"session of another kind", "deny: [{name: a, session: [secret]}]\n", "expected a mapping"},
		{"session with an unknown key", "deny: [{name: a, session: {label: secret}}]\n", "unknown key \"label\"; did you mean \"labels\"?"},
		{"session with an unknown label", "deny: [{name: a, session: {labels: [secret+untrustd]}}]\n", "\"untrustd\" is not a label of a session; did you mean \"untrusted\"?"},
		{"session within nothing", "deny: [{name: a, session: {labels: secret, within: 30m}}]\n", "\"within\" limits the time since the actions under \"after\", which are missing; add \"after\", or remove \"within\""},
		{"session within no time", "deny: [{name: a, session: {after: read_file, within: soon}}]\n", "within \"soon\" is neither a time"},
		{"session within no actions", "deny: [{name: a, session: {after: read_file, within: 0 actions}}]\n", "neither a time"},
		{"session within years", "deny: [{name: a, session: {after: read_file, within: 10000h}}]\n", "neither a time"},
		{"session with a value that flows somehow", "deny: [{name: a, session: {value_flow: whole}}]\n", "write true or false"},
		{"example is no list", "deny: [{name: a, match: ls}]\n", "expected a list, found text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f.yaml", []byte(test.yaml), CriterionSyntaxChecks{})
			var e yamlfile.Errors
			if !errors.As(err, &e) || len(e) == 0 || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%q:\nerror %v\nwant one with %s", test.yaml, err, test.want)
			}
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("control characters in %q", err)
			}
		})
	}
}

// All that is wrong is found in one go, and told in the order of the file.
func TestAllErrors(t *testing.T) {
	t.Parallel()
	_, err := Parse("f.yaml", []byte(`extend: default
verify:
  - {name: a b, tier_override: 7, path: [/x]}
  - name: c
    commands: ['(', 'ok', '[']
    except: [{}, {hosts: []}]
    match: [[1]]
  - {paths: [/x]}
deny:
  - {name: d, paths: [/x], tier_override: 1}
  - {name: e, paths: 7}
allow:
  - {name: f}
  - name
`), CriterionSyntaxChecks{})
	var all yamlfile.Errors
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	want := []string{
		`1:1: unknown key "extend"; did you mean "extends"?`,
		`3:12: name "a b"`, `3:32: tier_override must be 1, 2 or 3`, `3:35: unknown key "path"`,
		`5:16: error parsing regexp`, `5:27: error parsing regexp`,
		`6:14: an exception without criteria`, `6:19: hosts is empty`, `7:14: expected an action`,
		`8:5: the rule has no name; add one`,
		`10:28: tier_override is allowed in verify rules only; remove it`, `11:22: expected text, found a number`,
		`13:5: rule "f" would allow everything`, `14:5: expected a mapping, found text`,
	}
	if len(all) != len(want) {
		t.Errorf("%d errors, want %d", len(all), len(want))
	}
	for i, e := range all {
		if i < len(want) && !strings.HasPrefix(e.Error(), "policy f.yaml:"+want[i]) {
			t.Errorf("%v\nwant %s", e, want[i])
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	f, err := Parse("f.yaml", []byte(`
extends: strict
deny:
  - name: one
    reason: >-
      folded
      text
    action_types: [read_file, ping]
    paths: /x/**
    hosts: [a.example, 10.0.0.0/8]
    commands: ['^a']
    content: [b]
    when: .action
    match:
      - ls -la
      - {type: a, payload: {n: 1.50, t: true, l: [null, "x\ty"]}}
verify:
  - name: two
  - {name: three, tier_override: 3, except: [{paths: [/y]}, {hosts: [b]}]}
  - {name: four, except: {paths: [/z]}}
allow:
`), CriterionSyntaxChecks{})
	if err != nil {
		t.Fatal(err)
	}
	one := f.Deny[0]
	if one.Reason != "folded text" || !slices.Equal(one.Paths, []string{"/x/**"}) || one.ConditionJQ != ".action" || one.Pos != (yamlfile.Pos{Line: 4, Column: 5}) {
		t.Errorf("first rule %+v", one)
	}
	for i, want := range []string{
		`{"type":"execute_command","payload":{"command":"ls -la"}}`,
		`{"type":"a","payload":{"n":1.50,"t":true,"l":[null,"x\ty"]}}`,
	} {
		if got := string(one.MatchingExamples[i].Action); got != want {
			t.Errorf("example %s, want %s", got, want)
		}
	}
	for i, want := range []struct {
		tier, except int
		amends       bool
	}{{1, 0, false}, {3, 2, false}, {0, 1, true}} {
		if r := f.Verify[i]; r.Tier != want.tier || len(r.Except) != want.except || (r.OnlyAddsExceptionsToPreset != want.amends && i != 1) {
			t.Errorf("verify rule %d: %+v, want %+v", i, r, want)
		}
	}
}

// Whatever the file, reading it ends soon: a policy that takes forever to load
// is a guard that does not come up.
func TestHostileFiles(t *testing.T) {
	rep := strings.Repeat
	files := map[string]string{
		"10 MB":          rep("# x\n", 10<<20/4),
		"brackets":       "deny: " + rep("[", 500_000),
		"braces":         "deny: " + rep("{", 500_000),
		"mappings":       "deny: " + rep("{a: ", 200_000),
		"dashes":         "deny:\n" + rep("- ", 400_000) + "a",
		"question marks": rep("? ", 400_000),
		"colons":         rep("a: ", 300_000),
		"indented": func() string {
			var b strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&b, "%sa:\n", rep(" ", i))
			}
			return b.String()
		}(),
		"keys": func() string {
			var b strings.Builder
			for i := range 60_000 {
				fmt.Fprintf(&b, "k%d: a\n", i)
			}
			return b.String()
		}(),
		"rules":             "deny:\n" + rep("- {name: a, paths: [/x]}\n", 30_000),
		"entries":           "deny:\n- name: a\n  paths: [" + rep("/x, ", 100_000) + "]\n",
		"laughs":            "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n",
		"long text":         "deny:\n- name: " + rep("a", 900_000) + "\n",
		"long quoted text":  "deny:\n- name: \"" + rep("\\n", 400_000) + "\"\n",
		"unclosed quote":    "deny: '" + rep("a\n", 100_000),
		"block text":        "deny: |\n" + rep("  a\n", 40_000),
		"comments":          rep("#\n", 40_000),
		"spaces":            rep(" ", 1<<20),
		"newlines":          rep("\n", 1<<20),
		"commas":            "deny: [" + rep(",", 500_000),
		"quotes":            rep("'", 500_000),
		"ampersands":        rep("&", 500_000),
		"repeated regexp":   "deny:\n- name: a\n  commands: ['((((a{9}){9}){9}){9}){9}']\n",
		"many dashes lines": "deny:\n" + rep("-\n", 40_000),
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			if len(file) > yamlfile.MaxFileBytes && name != "10 MB" {
				file = file[:yamlfile.MaxFileBytes]
			}
			var err error
			n := allocated.Bytes(func() { _, err = Parse("f.yaml", []byte(file), CriterionSyntaxChecks{}) })
			if err == nil {
				t.Error("no error")
			} else if len(err.Error()) > 1000 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
			if n > 128<<20 {
				t.Errorf("%d bytes allocated for %d", n, len(file))
			}
		})
	}
}

// TestLists holds that "@NAME" stands for a list, and each glob of it for the place of the name.
func TestLists(t *testing.T) {
	t.Parallel()
	f, err := Parse("f.yaml", []byte("deny:\n- name: a\n  paths: [/x, '@wallets', /y]\n"), CriterionSyntaxChecks{})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := knowledge.GlobsOfPathList("wallets")
	c := f.Deny[0].Criteria
	if want := slices.Concat([]string{"/x"}, list, []string{"/y"}); !slices.Equal(c.Paths, want) {
		t.Errorf("%q, want %q", c.Paths, want)
	}
	if at := c.EntryPositionsByCriterionKey["paths"]; len(at) != len(c.Paths) || at[len(list)] != (yamlfile.Pos{Line: 3, Column: 15}) {
		t.Errorf("positions %v", at)
	}
}

// TestHostLists holds that "@NAME" stands for hosts and all below them, which an
// address has none of, and that a name which is no list is refused.
func TestHostLists(t *testing.T) {
	t.Parallel()
	f, err := Parse("f.yaml", []byte("deny:\n- name: a\n  hosts: [x.test, '@metadata_services']\n"), CriterionSyntaxChecks{})
	if err != nil {
		t.Fatal(err)
	}
	got := f.Deny[0].Hosts
	for _, host := range []string{"x.test", "169.254.169.254", "metadata.goog", "*.metadata.goog"} {
		if !slices.Contains(got, host) {
			t.Errorf("%q is not among %q", host, got)
		}
	}
	if slices.Contains(got, "*.169.254.169.254") {
		t.Error("something lies below an address")
	}
	if _, err := Parse("f.yaml", []byte("deny:\n- name: a\n  hosts: ['@metadata_service']\n"), CriterionSyntaxChecks{}); err == nil || !strings.Contains(err.Error(), "metadata_services") {
		t.Errorf("a list that is not there: %v", err)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for glob, want := range map[string]string{
		"/a":                        "/a",
		"/{a,b}":                    "/a /b",
		"/{a,b/{c,d}}/e":            "/a/e /b/c/e /b/d/e",
		"{,a}b{c}":                  "bc abc",
		"/{a,b":                     "/{a,b",
		`/\{a,b}`:                   `/\{a,b}`,
		"/a}":                       "/a}",
		strings.Repeat("{a,b}", 12): strings.Repeat("{a,b}", 12),
	} {
		if got := strings.Join(ExpandGlobBraces(glob), " "); got != want {
			t.Errorf("%s: %s, want %s", glob, got, want)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	parse := func(yaml string) string {
		f, err := Parse("f", []byte(yaml), CriterionSyntaxChecks{})
		if err != nil {
			t.Fatal(err)
		}
		return f.Fingerprint()
	}
	base := parse("deny: [{name: a, reason: r, paths: [/x, /y]}]")
	if same := parse("deny:\n  # comment\n  - {name: a, paths: [/x, /y], reason: r, match: [ls]}"); same != base {
		t.Error("layout, comments or examples change the fingerprint")
	}
	for _, other := range []string{
		"deny: [{name: b, reason: r, paths: [/x, /y]}]",
		"deny: [{name: a, reason: s, paths: [/x, /y]}]",
		"deny: [{name: a, reason: r, paths: [/y, /x]}]",
		"deny: [{name: a, reason: r, paths: [/x], hosts: [/y]}]",
		"deny: [{name: a, reason: r, paths: ['/x\", \"/y']}]",
		"verify: [{name: a, reason: r, paths: [/x, /y]}]",
		"deny: [{name: a, reason: r, paths: [/x, /y], except: {paths: [/x]}}]",
		"deny: [{name: a, reason: r, paths: [/x, /y], when: 'true'}]",
	} {
		if parse(strings.ReplaceAll(other, "hosts: [/y]", "hosts: [y]")) == base {
			t.Errorf("%s has the fingerprint of another policy", other)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("deny: [{name: a, paths: [/x]}]\n"))
	f.Add([]byte("extends: default\nverify:\n- name: b\n  except: {paths: [/y]}\n"))
	f.Add([]byte("cases:\n- {action: ls, want: {a: ALLOW}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f", data, CriterionSyntaxChecks{})
		if err == nil {
			for _, r := range slices.Concat(file.Deny, file.Verify, file.Allow) {
				if r.Name == "" {
					t.Error("a rule without a name")
				}
			}
		}
		_, _ = ParseCases("f", data)
		if err != nil && bytes.ContainsAny([]byte(err.Error()), "\x00\x1b") {
			t.Errorf("control characters in %q", err)
		}
	})
}
