package analysis_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// fresh is the memory of a session that has done nothing.
type fresh struct{}

func (fresh) Labels() []effect.TaintLabel                       { return nil }
func (fresh) FileOriginLabels(string) []effect.TaintLabel       { return nil }
func (fresh) DownloadedOrDecodedPaths() *effect.PathList        { return nil }
func (fresh) HasCreated(string) bool                            { return false }
func (fresh) HasRecentAction([]string, time.Duration, int) bool { return false }
func (fresh) Err() error                                        { return nil }

// TestDownloads holds that files in the folder for downloads came from elsewhere, anyone who
// fetched them, and stay so where they are copied, linked or unpacked.
func TestDownloads(t *testing.T) {
	t.Parallel()
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, Home: "/home/dev", CWD: "/home/dev/project", WorkspaceRoots: []string{"/home/dev/project"}})
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]bool{
		"bash ~/Downloads/x.sh":                                    true,
		"cp ~/Downloads/lint.sh a.sh && sh a.sh":                   true,
		"ln -sf ~/Downloads/check.sh c.sh; bash c.sh":              true,
		"tar -xzf ~/Downloads/t.tgz -C . && bash ./run.sh":         true,
		"bash scripts/x.sh":                                        false,
		"ls ~/Downloads && bash scripts/x.sh":                      false,
		"cp ~/Downloads/logo.png public/logo.png && bash build.sh": false,
	} {
		c := an.CaseWithSessionState(&action.Action{Type: "execute_command", Payload: map[string]any{"command": command}}, fresh{})
		got := slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
			return e.Kind == effect.RunCode && e.HasLabel(effect.LabelFromNetwork) || e.KindForPolicies() == effect.RunDownload
		})
		if got != want {
			t.Errorf("%s: %t: %v", command, got, c.Effects)
		}
	}
}
