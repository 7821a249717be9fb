package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestCmdReadBothWays holds that a text which looks like one for cmd.exe hides
// nothing that a POSIX shell would do.
func TestCmdReadBothWays(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`echo 'a:\b' ; rm -rf ~/src`, `echo /s;rm -rf ~/src`, `echo C:\x $(rm -rf ~/src)`, `powershell -c 'Remove-Item -Recurse ~/src'`, `powershell.exe -NoProfile -Command 'rm -r ~/src'`} {
		res := Analyze(text, &effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}})
		if !slices.ContainsFunc(res.Effects, func(e effect.Effect) bool {
			return e.KindForPolicies() == effect.DeleteFile && e.Path == "/home/me/src"
		}) {
			t.Errorf("%s: %+v", text, res.Effects)
		}
	}
}
