//go:build unix

package soundness

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestDenied demands that no script is allowed that calls a denied program, however it comes to that: a generated one, or a
// form of testdata/wraps around the call. The model has its say.
func TestDenied(t *testing.T) {
	if testing.Short() {
		t.Skip("runs programs")
	}
	scripts, first := number(t, "SHIELD_SCRIPTS", 75), seed(t)
	for _, sh := range shells {
		t.Run(sh.argv[0], func(t *testing.T) {
			t.Parallel()
			r, g := newRunner(t, sh.argv), readGrammar(t, sh.letter)
			allows := judge(t, r)
			called := 0
			check := func(script string) {
				if !slices.ContainsFunc(r.run(t, script), func(c call) bool { return c[0] == stubs[0] }) {
					return
				}
				if called++; allows(script) {
					t.Errorf("calls %s, and is allowed:\n%s", stubs[0], script)
				}
			}
			for n := first; n < first+scripts; n++ {
				check(g.script(n).String())
			}
			forms, err := os.ReadFile("../../testdata/wraps/forms.txt")
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(forms)) {
				fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
				if len(fields) == 3 && strings.Contains(fields[1], sh.letter) && fields[0] != "#" {
					check(strings.NewReplacer("␤", "\n", "«c»", stubs[0]+" w1", "«q»", "'"+stubs[0]+" w1'").Replace(fields[2]))
				}
			}
			if called == 0 {
				t.Error("no script calls the program")
			}
		})
	}
}

// judge returns what says whether a script is allowed where a policy denies the first stub.
func judge(t *testing.T, r *runner) (allows func(script string) bool) {
	t.Helper()
	if err := os.MkdirAll(r.work(), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.home, "policy.yaml")
	rules := "extends: offline\ndeny:\n  - name: denied\n    action_types: [execute_command]\n    programs: [" + stubs[0] + "]\n    reason: it is denied\n"
	if err := os.WriteFile(file, []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := shield.NewPipeline(shield.Config{PolicyNameOrPath: file, Home: filepath.Join(r.home, "user"), WorkspaceRoots: []string{r.work()}, WorkingDir: r.work()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return func(script string) bool {
		a := &action.Action{Type: "execute_command", Payload: map[string]any{"command": script}, CWD: r.work()}
		return p.Evaluate(context.Background(), a).Decision == verdict.Allow
	}
}
