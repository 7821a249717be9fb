package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

func load(preset string) func(Options) (*Policy, error) {
	return func(o Options) (*Policy, error) { return Preset(preset, o) }
}

// TestCaseTables runs testdata/policy under every preset: a case that names no
// preset is what all of them decide.
func TestCaseTables(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/policy/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		table, err := LoadCases(filepath.Base(file), data)
		if err != nil {
			t.Fatal(err)
		}
		cases += len(table.caseFile.Cases)
		for _, preset := range PresetNames() {
			results, err := table.Run(t.Context(), &analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile}, load(preset))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if !r.OK && (r.PolicyName == preset) {
					t.Errorf("%s:%d: %s: %s: want %s, got %s [%s] %s", filepath.Base(file), r.Line, r.PolicyName, r.Name, r.Want, r.Got, r.Rule, r.ReasoningOrError)
				}
			}
		}
	}
	if cases < 150 {
		t.Errorf("%d cases, want 150 or more", cases)
	}
}

func TestCases(t *testing.T) {
	t.Parallel()
	const yaml = `
place: {cwd: /w, home: /home/a, roots: [/w], vars: {SHIELD: [/opt/s]}}
cases:
  - {name: right, action: {type: read_file, payload: {path: x}}, want: ALLOW}
  - {name: wrong, action: {type: read_file, payload: {path: x}}, want: BLOCK}
  - {name: other rule, action: {type: read_file, payload: {path: x}}, want: ALLOW, rule: nope}
  - {name: other tier, action: {type: read_file, payload: {path: /x}}, want: ESCALATE 2}
  - {action: {type: read_file, payload: {path: /opt/s/k}}, want: {strict: BLOCK, offline: BLOCK}}
  - {name: no action, action: {type: read_file}, want: BLOCK}
`
	const lines = `{"name":"right","action":{"type":"read_file","payload":{"path":"x"}},"want":"ESCALATE 1"}

{"name":"wrong","action":{"type":"read_file","payload":{"path":"x"}},"want":"ALLOW","rule":"a"}
`
	for name, want := range map[string]string{
		yaml:  "4 default ok|5 default failed|6 default failed|7 default failed|8 strict ok|8 offline ok|9 default failed",
		lines: "1 default ok|3 default failed",
	} {
		table, err := LoadCases("t", []byte(name))
		if err != nil {
			t.Fatal(err)
		}
		results, err := table.Run(t.Context(), &analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, DefaultExecutionContext: effect.PathContext{CWD: "/"}}, load("default"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range results {
			ok := map[bool]string{true: "ok", false: "failed"}[r.OK]
			got = append(got, string(rune('0'+r.Line))+" "+r.PolicyName+" "+ok)
			if r.Name == "" || !r.OK && r.ReasoningOrError == "" {
				t.Errorf("line %d: name %q, why %q", r.Line, r.Name, r.ReasoningOrError)
			}
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%s\nwant %s", s, want)
		}
	}
}

func TestLoadCasesErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "t:1:1: the file is empty",
		"cases: {a: b}":                      "t:1:8: expected a list",
		"cazes: []":                          `did you mean "cases"?`,
		"cases: [{want: ALLOW}]":             "the case has no action",
		"cases: [{action: ls}]":              "the case has no want",
		"- {action: ls, want: ALOW}":         `t:1:22: "ALOW" is not a decision; did you mean "ALLOW"?`,
		"- {action: 3, want: ALLOW}":         "expected an action",
		"{\"action\":\"ls\"":                 "t:1:",
		"{\"a\":1}\n{\"b\"":                  "t:1:",
		"place: {cwd: 1}\ncases: []":         "expected text, found a number",
		"place: {fold_case: a}\n":            "expected true or false",
		"- {action: {a: .inf}, want: ALLOW}": "put it in quotes",
	} {
		if _, err := LoadCases("t", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func TestCasesUnknownPreset(t *testing.T) {
	t.Parallel()
	table, err := LoadCases("t.yaml", []byte("- {action: ls, want: {defualt: ALLOW}}"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = table.Run(t.Context(), &analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile}, load("default"))
	if err == nil || !strings.Contains(err.Error(), `t.yaml:1: unknown preset "defualt"; did you mean "default"?`) {
		t.Errorf("error %v", err)
	}
}
