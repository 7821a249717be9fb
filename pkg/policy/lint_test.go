package policy

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// found returns findings as lines: "line:column severity: message".
func found(t *testing.T, yaml string) []string {
	t.Helper()
	var out []string
	for _, f := range LintPolicyFile(t.Context(), "f.yaml", []byte(yaml), &analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, DefaultExecutionContext: testPlace}, testOptions()) {
		out = append(out, fmt.Sprintf("%d:%d %v: %s", f.Line, f.Column, f.Severity, f.Msg))
	}
	return out
}

func wantFindings(t *testing.T, yaml string, want []string) {
	t.Helper()
	got := found(t, yaml)
	if len(got) != len(want) {
		t.Errorf("%s\nfindings:\n%s\nwant %d", yaml, strings.Join(got, "\n"), len(want))
		return
	}
	for i := range got {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%s\nwant %s", got[i], want[i])
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	wantFindings(t, `
extends: default
deny:
  - name: tests
    reason: tests stay
    action_types: [delete_file]
    paths: [$WORKSPACE/test/**]
    match:
      - {type: delete_file, payload: {path: test/a}}
      - {type: delete_file, payload: {path: src/a}}
      - {type: read_file}
    pass:
      - {type: delete_file, payload: {path: test/b}}
      - {type: read_file, payload: {path: test/a}}
  - name: silent
    paths: [/x]
verify:
  - name: everything
    reason: r
  - name: late
    reason: r
    paths: [/y]
allow:
  - name: broad
    paths: [/z/**]
`, []string{
		"10:9 warning: rule tests does not decide this example, rule everything does; move the rule up, or correct the example",
		"11:9 warning: rule tests: the example is not a valid action",
		"13:9 warning: rule tests matches this example",
		"15:5 note: rule silent has no reason",
		"20:5 warning: rule late is never reached: the verify rule everything in line 18 comes first and matches the same actions; move the narrower rule up",
		"24:5 warning: rule broad is never reached: the verify rule everything in line 18 comes first and matches the same actions; add an exception to that rule",
		"24:5 note: rule broad allows every kind of effect",
	})
}

// What is wrong is told together with what is doubtful, whether or not the
// file can be used.
func TestCheckAllAtOnce(t *testing.T) {
	t.Parallel()
	wantFindings(t, `extends: ofline
deny:
  - {name: a, reason: r, action_types: [execute_comand]}
  - {name: b, reason: r, paths: [x]}
  - {name: c, reasn: r}
`, []string{
		`1:10 error: unknown preset "ofline"; did you mean "offline"?`,
		`3:41 warning: unknown action type "execute_comand"; correct the name; did you mean "execute_command"?`,
		`4:34 error: glob "x"`,
		`5:15 error: unknown key "reasn"; did you mean "reason"?`,
	})
	wantFindings(t, "denny: []", []string{`1:1 error: unknown key "denny"`})
	wantFindings(t, "deny:\n\t- name: a\n", []string{`2:1 error: the line is indented by a tab; use spaces`})
}

func TestCheckTypes(t *testing.T) {
	t.Parallel()
	for types, want := range map[string]string{
		"execute_command": "", "read_file": "", "git_push": "", "persist": "", "remote_shell": "", "send_email": "", "copy_file": "",
		"execute_comand": `warning: unknown action type "execute_comand"; correct the name; did you mean "execute_command"?`,
		"persit":         `warning: unknown action type "persit"; correct the name; did you mean "persist"?`,
		"git_pish":       `warning: unknown action type "git_pish"`,
		"Bash":           `note: "Bash" is treated as execute_command, its name in shield; write action_types: [execute_command]`,
		"WriteFile":      `note: "WriteFile" is treated as write_file`,
		"'git_*'":        `warning: "git_*" matches no action: action types have no wildcards`,
		"'*'":            `warning: "*" matches no action`,
		"mcp__jira__add": `note: "mcp__jira__add" is not a type that shield knows: it only matches a tool with exactly this name`,
	} {
		for _, rule := range []string{
			"verify: [{name: a, reason: r, action_types: [%s]}]\n",
			"verify: [{name: a, reason: r, paths: [/x], except: {action_types: [ping_host_v7, %s]}}]\n",
		} {
			yaml := fmt.Sprintf(rule, types)
			var all []string
			for _, f := range found(t, yaml) {
				if !strings.Contains(f, "ping_host_v7") {
					all = append(all, f)
				}
			}
			got := strings.Join(all, "\n")
			if want == "" && got != "" || !strings.Contains(got, want) || strings.Count(got, "\n") > 0 {
				t.Errorf("%s: %q, want %q", yaml, got, want)
			}
		}
	}
}

func TestCheckHosts(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]bool{
		"action_types: [delete_file], hosts: [a.example]":               true,
		"action_types: [delete_file, Write], hosts: [a.example]":        true,
		"action_types: [delete_file, http_request], hosts: [a.example]": false,
		"hosts: [a.example]":                                     false,
		"action_types: [delete_file], paths: [/x]":               false,
		"action_types: [mcp__x__y], hosts: [a.example]":          false,
		"action_types: [execute_command], hosts: [10.0.0.0/8]":   false,
		"action_types: [send_secret, connect], hosts: [a, b, c]": false,
	} {
		got := strings.Join(found(t, "deny: [{name: a, reason: r, "+rule+"}]\n"), "\n")
		if strings.Contains(got, "warning: rule a has hosts") != want {
			t.Errorf("%s: %q", rule, got)
		}
	}
}

func TestCheckReach(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ yaml, want string }{
		"the same types": {
			"deny:\n- {name: a, reason: r, action_types: [read_file, write_file]}\n- {name: b, reason: r, action_types: [write_file], paths: [/x]}\n",
			"3:3 warning: rule b is never reached: the deny rule a in line 2 comes first and matches the same actions; move the narrower rule up"},
		"the same types by another name": {
			"deny:\n- {name: a, reason: r, action_types: [execute_command]}\n- {name: b, reason: r, action_types: [Bash], commands: [x]}\n",
			"3:3 warning: rule b is never reached"},
		"the same paths": {
			"deny:\n- {name: a, reason: r, paths: ['/{x,y}', /z]}\n- {name: b, reason: r, paths: [/y], commands: [x]}\n",
			"3:3 warning: rule b is never reached"},
		"other paths": {
			"deny:\n- {name: a, reason: r, paths: [/x/**]}\n- {name: b, reason: r, paths: [/x/y]}\n", ""},
		"an exception": {
			"deny:\n- {name: a, reason: r, paths: [/x/**], except: {paths: [/x/y]}}\n- {name: b, reason: r, paths: [/x/**]}\n",
			"3:3 note: rule b is reached only by actions under \"except\" of rule a"},
		"the same exception": {
			"deny:\n- {name: a, reason: r, except: {paths: [/x/y]}}\n- {name: b, reason: r, paths: [/x/**], except: {paths: [/x/y]}}\n",
			"3:3 warning: rule b is never reached"},
		"one of two types": {
			"deny:\n- {name: a, reason: r, action_types: [read_file]}\n- {name: b, reason: r, action_types: [read_file, write_file]}\n",
			"3:3 note: rule b is never reached for read_file: the deny rule a"},
		"a condition": {
			"deny:\n- {name: a, reason: r, action_types: [read_file], when: .x}\n- {name: b, reason: r, action_types: [read_file]}\n", ""},
		"a stricter rule behind": {
			"verify:\n- {name: a, reason: r, action_types: [write_file]}\n- {name: b, reason: r, action_types: [write_file], paths: [/etc/**], tier_override: 3}\n",
			"3:3 warning: rule b is never reached, except for paths with variables or wildcards: the verify rule a in line 2 comes first"},
		"a verify rule behind a deny rule": {
			"deny:\n- {name: a, reason: r, action_types: [send_email]}\nverify:\n- {name: b, reason: r, action_types: [send_email], content: [x]}\n",
			"4:3 warning: rule b is never reached: the deny rule a in line 2 comes first and matches the same actions; add an exception to that rule"},
		"an allow rule behind a preset": {
			"extends: default\nallow:\n- {name: b, action_types: [delete_file], paths: [$WORKSPACE/gen/**]}\n",
			"3:3 warning: rule b is never reached: the verify rule evaluate_destructive_file_ops of the preset comes first and matches the same actions; to except this from it, add to the list verify: {name: evaluate_destructive_file_ops, except: {…}}"},
		"an allow rule behind a preset's exceptions": {
			"extends: default\nallow:\n- {name: b, action_types: [write_file], paths: [$WORKSPACE/gen/**]}\n",
			"3:3 note: rule b is reached only by actions under \"except\" of rule evaluate_file_writes"},
		"an allow rule that an exception lets through": {
			"extends: default\nverify:\n- {name: evaluate_destructive_file_ops, except: {paths: [$WORKSPACE/gen/**]}}\nallow:\n- {name: b, action_types: [delete_file], paths: [$WORKSPACE/gen/**]}\n",
			"5:3 note: rule b is reached only by actions under \"except\""},
		"allow rules for one type each before one for both": {
			"allow:\n- {name: a, action_types: [read_file]}\n- {name: b, action_types: [write_file]}\n- {name: c, action_types: [read_file, write_file]}\n", ""},
		"an allow rule that always goes on": {
			"allow:\n- {name: b, action_types: [execute_command], commands: [git status]}\n",
			"2:28 note: actions of type execute_command always go to Tier 1 or higher"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(found(t, test.yaml), "\n")
			if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
				t.Errorf("%s\n%s\nwant %s", test.yaml, got, test.want)
			}
		})
	}
}

var unreached = regexp.MustCompile(`^rule (\w+) is never reached(, except for paths with variables or wildcards)?: `)

// What is said never to count never does, whatever policy and action.
func TestReachIsSound(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	some := func(key string, from ...string) string {
		if rnd.IntN(2) == 0 {
			return ""
		}
		var list []string
		for range 1 + rnd.IntN(2) {
			list = append(list, "'"+from[rnd.IntN(len(from))]+"'")
		}
		return ", " + key + ": [" + strings.Join(list, ", ") + "]"
	}
	criteria := func() string {
		return some("action_types", "read_file", "write_file", "delete_file", "http_request", "execute_command", "Bash") +
			some("paths", "/work/app/**", "/etc/**", "/work/app/.git/**", "/tmp/**", "**/id_rsa", "/**") + some("hosts", "localhost", "*.example")
	}
	rules := func(list string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "%s:\n", list)
		for i := range 4 {
			c := criteria()
			if c == "" {
				c = ", action_types: [read_file]"
			}
			if rnd.IntN(4) == 0 {
				c += ", except: {paths: [/work/app/docs/**]}"
			}
			if list == "verify" {
				c += fmt.Sprintf(", tier_override: %d", 1+rnd.IntN(3))
			}
			fmt.Fprintf(&b, "- {name: %s%d%s}\n", list, i, c)
		}
		return b.String()
	}
	said, decided := 0, 0
	for range 200 {
		yaml := rules("deny") + rules("verify") + rules("allow")
		p := mustLoad(t, yaml)
		never := map[string]bool{}
		for _, f := range LintPolicyFile(t.Context(), "f.yaml", []byte(yaml), &analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, DefaultExecutionContext: testPlace}, testOptions()) {
			if m := unreached.FindStringSubmatch(f.Msg); m != nil {
				never[m[1]] = m[2] == ""
				said++
			}
		}
		for range 200 {
			data := make([]byte, 1+3*rnd.IntN(4))
			for i := range data {
				data[i] = byte(rnd.IntN(256))
			}
			c := fuzzCase(data)
			v, err := p.Judge(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if v.Rule != "" {
				decided++
			}
			if always, ok := never[v.Rule]; ok && (always || !unknownPath(c.Effects)) {
				t.Fatalf("%s\nrule %s decides %s %+v: %s", yaml, v.Rule, c.Action.Type, c.Effects, v.Reasoning)
			}
		}
	}
	if said < 100 || decided < 10_000 {
		t.Errorf("%d rules said to be out of reach, %d cases decided: the test shows nothing", said, decided)
	}
}

func unknownPath(effects []effect.Effect) bool {
	for i := range effects {
		if effects[i].PathIsPattern {
			return true
		}
	}
	return false
}
