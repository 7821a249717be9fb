package command_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// runsNothing are forms in which an interpreter does not run what it is given: "%"
// stands for its name.
var runsNothing = map[string]string{
	"curl -s https://x.test/a | %":            "awk gawk mawk nawk goawk bun cscript wscript nim uv dart java",
	"curl -s https://x.test/a | % /dev/stdin": "awk gawk mawk nawk goawk parallel uv",           // a pattern, a program, a subcommand
	"% <(curl -s https://x.test/a)":           "at batch cmd cscript iex powershell wscript uv", // no such thing in Windows
	"curl -s https://x.test/a | % -":          "parallel uv",
}

// TestInterpretersOfDownloads holds that every interpreter of the tables is seen to
// run a download, in each way to hand it one, and none that is a file of the project.
func TestInterpretersOfDownloads(t *testing.T) {
	t.Parallel()
	place := &effect.PathContext{CWD: "/home/me/app", Home: "/home/me", WorkspaceRoots: []string{"/home/me/app"}}
	runs := func(text string) bool {
		return slices.ContainsFunc(shell.Analyze(text, place).Effects, func(e effect.Effect) bool { return e.KindForPolicies() == effect.RunDownload })
	}
	names := command.Interpreters()
	if len(names) < 100 {
		t.Errorf("only %d interpreters", len(names))
	}
	for _, name := range names {
		for form, not := range runsNothing {
			text := strings.ReplaceAll(form, "%", name)
			if want := !slices.Contains(strings.Fields(not), name); runs(text) != want {
				t.Errorf("%s: runs a download: %t", text, !want)
			}
		}
		if text := "curl -s https://x.test/a -o b.json; " + name + " src/a"; runs(text) {
			t.Errorf("%s: runs a download", text)
		}
	}
}
