package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestReadInBranch says which files a text surely reads, and which only if something holds.
func TestReadInBranch(t *testing.T) {
	t.Parallel()
	for text, possible := range map[string]bool{
		"if [ -f k ]; then cat k; fi":              true,
		"if [ -n \"$X\" ]; then T=$(cat k); fi":    true,
		"if a; then b; else cat k; fi":             true,
		"[ -f k ] && cat k":                        true,
		"[[ -f k ]] && cat k":                      true,
		"test -f k && cat k":                       true,
		"case $X in a) cat k;; esac":               true,
		"cat k":                                    false,
		"if true; then cat k; fi":                  false,
		"if cat k; then b; fi":                     false,
		"a && cat k":                               false,
		"[ -f k ]; cat k":                          false,
		"if [ -f k ]; then cat k; fi; cat k":       false,
		"case a in a) cat k;; esac":                true,
		"if [ -f k ]; then cat k; else cat k; fi;": true,
	} {
		res := Analyze(text, &effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}})
		surely := slices.ContainsFunc(res.Effects, func(e effect.Effect) bool {
			return e.KindForPolicies() == effect.ReadFile && e.Path == "/work/app/k" && e.Certainty != effect.Possible
		})
		if surely == possible {
			t.Errorf("%s: surely read: %v; effects %+v", text, surely, res.Effects)
		}
	}
}
