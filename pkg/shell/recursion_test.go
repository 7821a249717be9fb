package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestRecursion holds which functions that call themselves never end, which may be
// as bad, and which are ordinary.
func TestRecursion(t *testing.T) {
	t.Parallel()
	const endless, doubtful, ordinary = "endless", "doubtful", "ordinary"
	for text, want := range map[string]string{
		":(){ :|:& };:":                                  endless,
		"bomb() { bomb | bomb & }; bomb":                 endless,
		"f() { f; }; f":                                  endless,
		"f() { echo x; f & f & }; f":                     endless,
		"f() { x=1; f | f & }; f":                        endless,
		"f() { while true; do f & done; }; f":            endless,
		"f() { while :; do f & done; }; f":               endless,
		"f() { if true; then f | f; fi; }; f":            endless,
		"f() { [ 1 ] && f | f & }; f":                    endless,
		"f() { test 1 && f; }; f":                        endless,
		"f() { for i in 1 2; do f & done; }; f":          endless,
		"f() { if a; then f; else f; fi; }; f":           endless,
		"f() { (f & f &) }; f":                           endless,
		"f() { time f; }; f":                             endless,
		"f() { coproc f; }; f":                           endless,
		"f() { eval 'f | f &'; }; f":                     endless,
		"a() { b | b & }; b() { a; }; a":                 endless,
		"f() { [ -e /none ] && return; f | f & }; f":     doubtful,
		"f() { if [ -d x ]; then exit; fi; f & f & }; f": doubtful,
		"f() { [ -z \"$1\" ] || f | f; }; f":             doubtful,
		"f() { [ -z \"$X\" ] || f | f; }; f":             doubtful,
		"walk() { for x in \"$1\"/*; do [ -d \"$x\" ] && walk \"$x\"; done; }; walk src": ordinary,
		"tree() { ls $1 | while read x; do [ -d $1/$x ] && tree $1/$x; done; }; tree .":  ordinary,
		"fact() { [ $1 -le 1 ] && { echo 1; return; }; fact $(($1 - 1)); }; fact 5":      ordinary,
		"fib() { if [ $1 -lt 2 ]; then echo $1; else fib 1; fi; }; fib 5":                ordinary,
		"up() { [ -e .git ] || { cd ..; up; }; }; up":                                    ordinary,
		"retry() { make || { sleep 1; retry; }; }; retry":                                ordinary,
		"case_() { case $1 in a) case_ b ;; esac; }; case_ a":                            ordinary,
		"f() { until [ -s a ]; do sleep 1; done; }; f":                                   ordinary,
		"build() { make all | tee log; }; build":                                         ordinary,
	} {
		res := Analyze(text, &effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}})
		got := ordinary
		switch {
		case slices.ContainsFunc(res.Effects, func(e effect.Effect) bool { return e.Cause == effect.CauseEndlessRecursion }):
			got = endless
		case slices.ContainsFunc(res.Effects, func(e effect.Effect) bool {
			return e.Certainty == effect.Unknown && e.Cause == effect.CauseAnalysisLimitExceeded
		}):
			got = doubtful
		}
		if got != want {
			t.Errorf("%s: %s, want %s: %+v", text, got, want, res.Effects)
		}
	}
}
