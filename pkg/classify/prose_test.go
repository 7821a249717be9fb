package classify

import (
	"context"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/shell"
	"github.com/shieldcli/shield/pkg/verdict"
)

// wary is a model that suspects each text with one of some words in it.
type wary []string

func (w wary) Score(_ context.Context, text string) (InjectionScore, error) {
	for _, word := range w {
		if strings.Contains(text, word) {
			return InjectionScore{HasInjectionLabel: true, LabelConfidence: 0.99}, nil
		}
	}
	return InjectionScore{LabelConfidence: 0.99}, nil
}

// TestProse judges commands with a model that suspects words about attacks: in a
// message they are data, and everywhere else they count.
func TestProse(t *testing.T) {
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, Home: "/home/dev", CWD: "/home/dev/project", WorkspaceRoots: []string{"/home/dev/project"}})
	if err != nil {
		t.Fatal(err)
	}
	k := New(Options{Model: wary{"rm -rf", "evil"}, Home: "/home/dev", WorkspaceRoots: []string{"/home/dev/project"}})
	for command, want := range map[string]verdict.Decision{
		"git commit -m 'refuse rm -rf / in scripts'":                        verdict.Allow,
		"git add a.go && git commit --message='refuse rm -rf / in scripts'": verdict.Allow,
		"git commit -m 'evil'":                                              verdict.Block, // one word may be a name
		"git commit -m 'refuse rm -rf / in scripts' evil.go":                verdict.Block,
		"git commit -m 'about rm -rf' -m 'x'; touch 'rm -rf x'":             verdict.Block,
		"touch 'rm -rf x'":                                 verdict.Block,
		"echo 'rm -rf build' > a.sh":                       verdict.Block,
		"git commit -m 'refuse rm -rf / in scripts'; evil": verdict.Block,
		"unheard -m 'refuse rm -rf / in scripts'":          verdict.Block,
		"bash -c 'rm -rf build'":                           verdict.Block,
		"git commit -m 'rm -rf ~/x' && rm -rf ~":           verdict.Block,
	} {
		v, err := k.Judge(t.Context(), an.AnalyzeAction(&action.Action{Type: "execute_command", Payload: map[string]any{"command": command}}))
		if err != nil || v.Decision != want {
			t.Errorf("%s: %v (%s), expected %v; error %v", command, v.Decision, v.Reasoning, want, err)
		}
	}
}
