package policy

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/shell"
)

func suggestions(t *testing.T, commands []string, rule string, times int) ([]SuggestedException, *analysis.Analyzer, Options) {
	t.Helper()
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, CWD: "/srv/app", Home: "/home/me", WorkspaceRoots: []string{"/srv/app"}})
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{FoldersByGlobVariable: map[string][]string{"HOME": {"/home/me"}, "WORKSPACE": {"/srv/app"}}}
	var approvals []Approval
	for range times {
		for _, command := range commands {
			approvals = append(approvals, Approval{Command: command, CWD: "/srv/app", Rule: rule})
		}
	}
	out, err := SuggestVerifyRuleExceptions(t.Context(), approvals, "offline", 3, an, opts)
	if err != nil {
		t.Fatal(err)
	}
	return out, an, opts
}

// An exception lets through what was approved, and files of the same kind in the
// same folder if several were; everything else is asked about as before.
func TestSuggest(t *testing.T) {
	t.Parallel()
	const deleting = "ask_before_deleting"
	tests := map[string]struct {
		commands []string
		times    int
		asked    []string // still
		passes   []string
	}{
		"one file": {[]string{"rm notes.txt"}, 3,
			[]string{"rm other.txt", "rm notes.txt other.txt", "rm -f notes.txt", "rm notes.txt; rm other.txt", "rm sub/notes.txt", "cd sub; rm notes.txt", "rm notes.txt.bak", "unlink notes.txt"},
			[]string{"rm notes.txt"}},
		"files of a folder": {[]string{"rm data/a.csv", "rm data/b.csv", "rm data/c.csv"}, 1,
			[]string{"rm data/a.txt", "rm data/x/a.csv", "rm data/../a.csv", "rm data/..", "rm data/.csv", "rm data/*.csv", "rm -r data/a.csv", "rm data/a.csv src/a.csv", "rm other/a.csv", "rm data/$X.csv", "rm data/a.csv\nrm src/a.csv"},
			[]string{"rm data/a.csv", "rm data/z.csv"}},
		"folders": {[]string{"rm -r runs/a", "rm -r runs/b", "rm -r runs/c"}, 1,
			[]string{"rm -r runs", "rm -r runs/.", "rm -rf runs/a", "rm -r src/a"}, []string{"rm -r runs/d"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, an, opts := suggestions(t, tt.commands, deleting, tt.times)
			if len(found) != 1 || found[0].ApprovalCount != len(tt.commands)*tt.times {
				t.Fatalf("suggestions: %+v", found)
			}
			text := FormatSuggestionPolicy("offline", found)
			for _, f := range LintPolicyFile(t.Context(), "f.yaml", []byte(text), an, opts) {
				t.Errorf("%d: %v: %s\n%s", f.Line, f.Severity, f.Msg, text)
			}
			p, err := Load("f.yaml", []byte(text), opts)
			if err != nil {
				t.Fatal(err)
			}
			rule := func(command, cwd string) string {
				v, err := p.Judge(t.Context(), an.AnalyzeAction(Approval{Command: command, CWD: cwd}.Action()))
				if err != nil {
					t.Fatal(err)
				}
				return v.Rule
			}
			for _, command := range tt.asked {
				if rule(command, "/srv/app") != deleting {
					t.Errorf("%s is not asked about with\n%s", command, text)
				}
			}
			for _, command := range tt.passes {
				if rule(command, "/srv/app") != "" {
					t.Errorf("%s is asked about with\n%s", command, text)
				}
				if rule(command, "/srv/app/other") != deleting || rule(command, "") != deleting {
					t.Errorf("%s is not asked about in another folder with\n%s", command, text)
				}
			}
		})
	}
}

// Nothing is suggested for what was approved too rarely, what may be anything, and
// what no words of a command may let through.
func TestSuggestsNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command, rule string
		times         int
	}{
		{"rm notes.txt", "ask_before_deleting", 2},
		{"rm notes.txt", "another_rule", 3},
		{"cat .env", "secret_names", 3},
		{"rm .env", "ask_before_deleting", 3},
		{"rm id_rsa", "ask_before_deleting", 3},
		{"rm CLAUDE.md", "agent_identity", 3},
		{"rm .claude/settings.json", "ask_before_deleting", 3},
		{"rm -rf .git", "git_history", 3},
		{"gh auth token", "shows_secrets", 3},
		{"rm -r src/$X", "ask_before_deleting", 3},
		{"rm *.txt", "ask_before_deleting", 3},
		{"rm a.txt; rm b.txt", "ask_before_deleting", 3},
		{"sudo rm notes.txt", "ask_before_deleting", 3},
		{"frobnicate notes.txt", "ask_before_deleting", 3},
		{"rm '[redacted]'", "ask_before_deleting", 3},
		{"rm " + strings.Repeat("a", maxCommandBytes), "ask_before_deleting", 3},
	} {
		if found, _, _ := suggestions(t, []string{tt.command}, tt.rule, tt.times); len(found) > 0 {
			t.Errorf("%s, %d times: %s", tt.command, tt.times, FormatSuggestionPolicy("offline", found))
		}
	}
	mixed := []string{"rm data/a.csv", "rm other/b.csv", "rm -f data/c.csv", "rm data/d.txt", "rm data/.e.csv"}
	if found, _, _ := suggestions(t, mixed, "ask_before_deleting", 1); len(found) > 0 {
		t.Errorf("commands with little in common: %s", FormatSuggestionPolicy("offline", found))
	}
}
