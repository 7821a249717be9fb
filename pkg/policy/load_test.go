package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
	"github.com/shieldcli/shield/pkg/verdict"
)

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, yaml, want string }{
		{"unknown key", "deny: []\nextend: default\n", `policy site.yaml:2:1: unknown key "extend"; did you mean "extends"?`},
		{"unknown preset", "extends: defualt\n", `site.yaml:1:10: unknown preset "defualt"; did you mean "default"?`},
		{"relative glob", "deny:\n- name: a\n  paths: [etc/passwd]\n", "site.yaml:3:11: glob"},
		{"unknown variable", "deny:\n- name: a\n  paths: [$NOWHERE/x]\n", "unknown variable $NOWHERE"},
		{"unclosed bracket", "deny:\n- name: a\n  paths: ['/a/[b']\n", "site.yaml:3:11:"},
		{"URL as host", "deny:\n- name: a\n  hosts: ['https://example.com']\n", "site.yaml:3:11: host"},
		{"host with a port", "deny:\n- name: a\n  hosts: ['example.com:80']\n", "remove the port"},
		{"bad CIDR", "deny:\n- name: a\n  hosts: [10.0.0/8]\n", "not a CIDR prefix"},
		{"host that is none", "deny:\n- name: a\n  hosts: ['a..b']\n", "site.yaml:3:11: host"},
		{"host with a star in another script", "deny:\n- name: a\n  hosts: ['*.bücher.example']\n", "xn--"},
		{"bad jq", "deny:\n- name: a\n  when: .a[\n", "site.yaml:3:9: jq: unexpected EOF"},
		{"jq with a module", "deny:\n- name: a\n  when: import \"a\" as a; a::b\n", "site.yaml:3:9: jq:"},
		{"jq with a clock", "deny:\n- name: a\n  when: now > 0\n", "site.yaml:3:9: jq: now is not available in a condition"},
		{"unknown function", "deny:\n- name: a\n  when: nope\n", "jq: function not defined: nope"},
		{"bad glob in an exception", "verify:\n- name: a\n  paths: [/x]\n  except: {paths: [y]}\n", "site.yaml:4:20: glob"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, err := Load("site.yaml", []byte(test.yaml), testOptions())
			if err == nil || p != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("policy %v, error %v\nwant one with %s", p, err, test.want)
			}
		})
	}
}

// What a file says about rules that the preset lacks, or has too, has no effect, and a
// person is told: an update must not turn a policy into one that blocks everything.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, yaml, want string }{
		{"name of the preset", "extends: default\ndeny:\n- {name: cloud_metadata, hosts: [a]}\n", `policy site.yaml:3:3: the preset already has a rule "cloud_metadata", and both apply`},
		{"name of the core", "deny:\n- {name: wipe_system, paths: [/x]}\n", `the preset already has a rule "wipe_system"`},
		{"exception to the core", "extends: permissive\ndeny:\n- {name: shield_files, except: {paths: [/**]}}\n", `no rule of this name that can have exceptions`},
		{"exception to nothing", "extends: default\nverify:\n- {name: nope, except: {paths: [/x]}}\n", "they have no effect"},
		{"exception to a similar name", "extends: default\nverify:\n- {name: secret_name, except: {paths: [/x]}}\n", `did you mean "secret_names"?`},
		{"exception in the wrong list", "extends: default\nallow:\n- {name: secret_names, except: {paths: [/x]}}\n", "they have no effect"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, err := Load("site.yaml", []byte(test.yaml), testOptions())
			if err != nil || p.MissingPresetRulesError() == nil || !strings.Contains(p.MissingPresetRulesError().Error(), test.want) {
				t.Fatalf("error %v, lost %v\nwant one with %s", err, p.MissingPresetRulesError(), test.want)
			}
			if v, err := p.Judge(t.Context(), caseOf("read_file", effect.Effect{Kind: effect.ReadFile, Path: "/home/me/.config/shield/shield.yaml"})); err != nil || v.Decision != verdict.Block {
				t.Errorf("shield's own settings: %v, %v", v.Decision, err)
			}
		})
	}
	if p := mustLoad(t, "extends: default\n"); p.MissingPresetRulesError() != nil {
		t.Errorf("lost %v", p.MissingPresetRulesError())
	}
}

func TestLoadTooManyRules(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("deny:\n")
	for i := range maxRules {
		fmt.Fprintf(&b, "- {name: r%d, paths: [/x]}\n", i)
	}
	if _, err := Load("site.yaml", []byte(b.String()), testOptions()); err == nil || !strings.Contains(err.Error(), "more than 256 deny and verify rules") {
		t.Errorf("error %v", err)
	}
}

// A person learns of all that is wrong at once.
func TestLoadAllErrors(t *testing.T) {
	t.Parallel()
	_, err := Load("site.yaml", []byte(`extends: offline
deny:
- {name: a, paths: [etc]}
- {name: b, when: '.a['}
verify:
- {name: nope, except: {paths: [/x]}}
`), testOptions())
	var all yamlfile.Errors
	if !errors.As(err, &all) || len(all) != 2 {
		t.Fatalf("%d errors: %v", len(all), all.Unwrap())
	}
	for i, line := range []int{3, 4} {
		if all[i].Line != line {
			t.Errorf("error %d: %v", i, all[i])
		}
	}
}

// A rule for "Bash" is one for execute_command, and still one for another tool
// that is called so.
func TestAliasesInRules(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `
deny:
  - {name: shell, action_types: [Bash]}
  - {name: files, action_types: [write_file], except: {action_types: [Edit, create-file], paths: [/work/app/**]}}
allow:
  - {name: look, action_types: [Read], paths: [/work/app/**]}
`)
	for want, c := range map[string]*analysis.ActionCase{
		"BLOCK shell":  caseOf("execute_command", execute),
		"BLOCK shell ": caseOf("Bash"),
		"ALLOW look":   caseOf("read_file", read("/work/app/a")),
		"BLOCK files":  caseOf("write_file", write("/etc/a")),
		"ESCALATE 1 ":  caseOf("edit_file", write("/work/app/a")),
	} {
		v, err := p.Judge(t.Context(), c)
		if got := short(v); err != nil || strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s %v: %s, %v; want %s", c.Action.Type, c.Effects, got, err, want)
		}
	}
}

// A rule also matches by the name that was given where that is one of many tools'.
func TestGivenNamesInRules(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `
deny:
  - {name: prod, action_types: [mcp__prod__run]}
  - {name: shell, action_types: [execute_command], except: {action_types: [run]}}
`)
	for given, want := range map[string]string{"mcp__prod__run": "BLOCK prod", "run": "ESCALATE 1 ", "execute": "BLOCK shell"} {
		c := caseOf("execute_command", execute)
		c.Action.OriginalTypeSharedByOtherTools = given
		v, err := p.Judge(t.Context(), c)
		if got := short(v); err != nil || strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: %s, %v; want %s", given, got, err, want)
		}
	}
}

// Types in presets are what shield calls them, since presets are not read
// again when shield starts.
func TestPresetTypesAreCanonical(t *testing.T) {
	t.Parallel()
	for i := range presetRules {
		r := &presetRules[i]
		for _, types := range append([][]string{r.ActionTypesAndEffectKinds}, exceptTypes(r)...) {
			if got := withCanonicalActionTypes(types); len(got) != len(types) {
				t.Errorf("rule %s: %v means %v", r.Name, types, got)
			}
		}
	}
}

func exceptTypes(r *rulefile.Rule) (out [][]string) {
	for i := range r.Except {
		out = append(out, r.Except[i].ActionTypesAndEffectKinds)
	}
	return out
}

// Without extends a file's own rules are all there is, but for the core.
func TestCoreAlwaysApplies(t *testing.T) {
	t.Parallel()
	for _, yaml := range []string{
		"allow: [{name: all, action_types: [read_file, write_file, delete_directory], paths: [/**]}]\n",
		"extends: permissive\nallow: [{name: all, action_types: [read_file, write_file, delete_directory], paths: [/**]}]\n",
		"deny: []\n",
	} {
		p := mustLoad(t, yaml)
		for _, c := range []*analysis.ActionCase{
			caseOf("read_file", read("/home/me/.local/state/shield/seal.key")),
			caseOf("write_file", write("/home/me/.config/shield/shield.yaml")),
			caseOf("write_file", write("/opt/shield/bin/shield")),
			caseOf("delete_directory", tree(effect.Effect{Kind: effect.DeleteDirectory, Path: "/"})),
		} {
			v, err := p.Judge(t.Context(), c)
			if err != nil || v.Decision != verdict.Block {
				t.Errorf("%s: %s %s: %v, %v; want BLOCK", yaml, c.Action.Type, c.Effects[0].Path, v.Decision, err)
			}
		}
	}
}

func TestExtends(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `
extends: default
deny:
  - {name: mine, action_types: [read_file], paths: [$WORKSPACE/secret/**]}
  - {name: credential_files, except: {paths: [~/.npmrc]}}
verify:
  - {name: mine_first, action_types: [delete_file], paths: [$WORKSPACE/gen/**], tier_override: 1}
  - name: evaluate_file_writes
    except:
      - {paths: [$WORKSPACE/gen/**]}
      - {paths: [$WORKSPACE/out/**], action_types: [write_file]}
allow:
  - {name: gen, action_types: [write_file], paths: [$WORKSPACE/gen/**]}
`)
	tests := []struct {
		c    *analysis.ActionCase
		want string
	}{
		{caseOf("read_file", read("/work/app/secret/a")), "BLOCK mine"},
		{caseOf("read_file", read("/home/me/.netrc")), "BLOCK credential_files"},
		{caseOf("read_file", read("/home/me/.npmrc")), "ESCALATE 1 "},
		{caseOf("execute_command", tree(read("/home/me"))), "ESCALATE 2 secret_names"},
		{caseOf("delete_file", effect.Effect{Kind: effect.DeleteFile, Path: "/work/app/gen/a"}), "ESCALATE 1 mine_first"},
		{caseOf("delete_file", effect.Effect{Kind: effect.DeleteFile, Path: "/work/app/src/a"}), "ESCALATE 2 evaluate_destructive_file_ops"},
		{caseOf("write_file", write("/work/app/gen/a")), "ALLOW gen"},
		{caseOf("write_file", write("/work/app/out/a")), "ESCALATE 1 "},
		{caseOf("write_file", write("/work/app/src/a")), "ESCALATE 2 evaluate_file_writes"},
		{caseOf("write_file", write("/work/app/gen/a"), write("/work/app/src/a")), "ESCALATE 2 evaluate_file_writes"},
	}
	for _, test := range tests {
		v, err := p.Judge(t.Context(), test.c)
		if got := short(v); err != nil || got != test.want {
			t.Errorf("%s %v: %s, %v; want %s", test.c.Action.Type, test.c.Effects, got, err, test.want)
		}
	}
	preset, err := Preset("default", testOptions())
	if err != nil {
		t.Fatal(err)
	}
	if p.Fingerprint() == preset.Fingerprint() {
		t.Error("a file that changes rules has its preset's fingerprint")
	}
	v, err := preset.Judge(t.Context(), caseOf("read_file", read("/home/me/.npmrc")))
	if err != nil || v.Decision != verdict.Block {
		t.Errorf("the exception of a file reached the preset: %v, %v", v.Decision, err)
	}
}

func TestPresetNames(t *testing.T) {
	t.Parallel()
	if got := PresetNames(); !slices.Equal(got, []string{"default", "strict", "permissive", "offline", "assisted"}) {
		t.Errorf("presets %v", got)
	}
	if _, err := Preset("ofline", Options{}); err == nil || !strings.Contains(err.Error(), `did you mean "offline"?`) {
		t.Errorf("error %v", err)
	}
	seen := map[string]string{}
	for _, name := range PresetNames() {
		p, err := Preset(name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[p.Fingerprint()]; other != "" || !strings.HasPrefix(p.Fingerprint(), "sha256:") {
			t.Errorf("%s: fingerprint %s, that of %q", name, p.Fingerprint(), other)
		}
		seen[p.Fingerprint()] = name
	}
}

// Without folders a policy knows no workspace: nothing is inside it.
func TestNoFolders(t *testing.T) {
	t.Parallel()
	p, err := Preset("permissive", Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Judge(t.Context(), caseOf("read_file", read("/work/app/a")))
	if err != nil || v.Decision != verdict.Escalate {
		t.Errorf("%v, %v; want ESCALATE", v.Decision, err)
	}
}

// A broken folder must not open the gate.
func TestBadFolders(t *testing.T) {
	t.Parallel()
	p, err := Preset("default", Options{FoldersByGlobVariable: map[string][]string{"SHIELD": {strings.Repeat("/a", 5000)}}})
	if err != nil {
		return
	}
	v, err := p.Judge(t.Context(), caseOf("read_file", read("/work/app/a")))
	if err == nil && v.Decision == verdict.Allow {
		t.Errorf("ALLOW although the folders are of no use")
	}
}

func TestAllowCommands(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, "allow:\n- {name: status, action_types: [execute_command], commands: ['git status( -s)?']}\n")
	tests := map[string]string{
		"git status":                  "ALLOW",
		"git status -s":               "ALLOW",
		"git status; rm -rf x":        "ESCALATE",
		"git status -s\nrm x":         "ESCALATE",
		"x git status":                "ESCALATE",
		"git status -s && git status": "ESCALATE",
	}
	for command, want := range tests {
		c := caseOf("execute_command", execute)
		c.Action.Payload = map[string]any{"command": command}
		if strings.Contains(command, "&&") {
			c.Effects = append(c.Effects, execute)
		}
		v, err := p.Judge(t.Context(), c)
		if err != nil || v.Decision.String() != want {
			t.Errorf("%q: %v, %v; want %s", command, v.Decision, err, want)
		}
	}
	c := caseOf("execute_command", execute, execute)
	c.Action.Payload = map[string]any{"command": "git status"}
	if v, _ := p.Judge(t.Context(), c); v.Decision == verdict.Allow {
		t.Error("two programs are allowed by a pattern for one")
	}
}

func TestDenyCommandsAndContent(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `
deny:
  - {name: drop, commands: ['(?i)drop\s+table']}
  - {name: marker, content: ['INTERNAL ONLY']}
`)
	for raw, want := range map[string]string{
		`{"type":"execute_command","payload":{"command":"psql -c 'DROP  TABLE a'"}}`:              "BLOCK drop",
		`{"type":"execute_command","payload":{"command":"psql -c 'SELECT 1'"}}`:                   "ESCALATE 1 ",
		`{"type":"send_email","payload":{"to":"a","subject":"s","body":"this is INTERNAL ONLY"}}`: "BLOCK marker",
		`{"type":"write_file","payload":{"path":"a","content":"INTERNAL ONLY"}}`:                  "BLOCK marker",
		`{"type":"write_file","payload":{"path":"INTERNAL ONLY","content":"a"}}`:                  "ESCALATE 1 ",
	} {
		v, err := judgeRuleExample(t.Context(), testAnalyzer, p, &rulefile.Example{Action: []byte(raw)})
		if got := short(v); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", raw, got, err, want)
		}
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, host string
		want          bool
	}{
		{"example.com", "example.com", true},
		{"Example.COM.", "example.com", true},
		{"example.com", "a.example.com", false},
		{"*.example.com", "a.b.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "example.com.evil.test", false},
		{"10.0.0.0/8", "10.255.0.1", true},
		{"10.1.2.3/8", "10.255.0.1", true},
		{"10.0.0.0/8", "11.0.0.1", false},
		{"10.0.0.0/8", "10.example.com", false},
		{"fd00::/8", "fd12:3456::1", true},
		{"::1", "::1", true},
		{"10.0.0.0/8", "::ffff:10.1.2.3", true},
		{"fe80::/10", "fe80::1%eth0", true},
		{"*", "anything", true},
		{"bücher.example", "xn--bcher-kva.example", true},
		{"0x7f.1", "127.0.0.1", true},
		{"::ffff:10.1.2.3", "10.1.2.3", true},
		{"a*b*c", "axxbxxc", true},
		{"a*b*c", "axxcxxb", false},
	}
	for _, test := range tests {
		p, err := effect.ParseHostPattern(test.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Match(test.host, effect.ParseAddr(test.host)); got != test.want {
			t.Errorf("%s matches %s: %v, want %v", test.pattern, test.host, got, test.want)
		}
	}
}
