package shell

import (
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestCutGlobs holds which file is written where its name is cut out of one that a
// glob or a list gives: the folder stays known where only the last name changes,
// and nothing else does.
func TestCutGlobs(t *testing.T) {
	t.Parallel()
	const unknown = "unknown"
	dir := here().CWD + "/"
	for text, want := range map[string]string{
		`for f in *.a; do touch "${f%.a}.b"; done`:                              dir + "*.b",
		`for f in src/*.a; do touch "${f%.*}.b"; done`:                          dir + "src/*.b",
		`for f in src/*.a; do touch "${f%%.*}.b"; done`:                         dir + "src/*.b",
		`for f in src.d/*.a; do touch "${f%%.*}.b"; done`:                       unknown, // the folder's dot is the first
		`for f in */*.a; do touch "${f%%.*}.b"; done`:                           unknown,
		`for f in src/*; do touch "${f%.*}.b"; done`:                            unknown, // src.d/a has no other dot
		`for f in src/*.a; do touch "${f%/*}.b"; done`:                          unknown,
		`for f in src/*.a; do touch "${f%src/x.a}.b"; done`:                     unknown,
		`for f in src/*.a; do touch "${f%$X}.b"; done`:                          unknown,
		`for f in src/*.a; do touch "out/${f##*/}"; done`:                       dir + "out/*.a",
		`for f in src/*.a; do touch "out/${f#*/}"; done`:                        unknown,
		`for f in src/*.a; do touch "out/${f#src/}"; done`:                      dir + "out/*.a",
		`for f in src/*.a; do touch "${f/.a/.b}"; done`:                         dir + "src/*",
		`for f in src/*.a; do touch "${f/src/..\/..\/etc}"; done`:               unknown,
		`for f in src/*.a; do touch "${f/.a/\/..\/..\/b}"; done`:                unknown,
		`for f in src/*.a; do touch "$(basename "$f" .a).b"; done`:              dir + "*.b",
		`for f in src/*.a; do touch "$(basename "$f" .a)/../../b"; done`:        unknown,
		`for f in src/*.a; do touch "$(dirname "$f")/b"; done`:                  dir + "src/b",
		`for f in $(find src -name '*.a'); do touch "${f%.a}.b"; done`:          dir + "src/**.b",
		`find src -name '*.a' | while read -r f; do touch "${f%.a}.b"; done`:    dir + "src/**.b",
		`find src -name '*.a' -exec sh -c 'touch "${1%.a}.b"' _ {} \;`:          dir + "src/**/*.b",
		`for f in $(find src -name '*.a'); do touch "${f%.a}/../../../b"; done`: unknown,
		`for f in $(find src -name '*.a'); do touch "${f%/*}.b"; done`:          unknown,
	} {
		got := unknown
		for _, e := range Analyze(text, here()).Effects {
			if e.KindForPolicies() == effect.WriteFile && here().IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot) {
				got = e.Path
			}
		}
		if got != want {
			t.Errorf("%s: writes %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		`for f in $(find .); do rm -rf "$f."; done`,
		`for f in $(find . -name '*.a'); do rm -rf "$f/../.."; done`,
		`for f in *; do rm -rf "/${f%x}"; done`,
		`for f in /*; do rm -rf "${f%x}"; done`,
	} {
		for _, e := range Analyze(text, here()).Effects {
			if e.KindForPolicies() == effect.DeleteFile && here().IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot) {
				t.Errorf("%s: deletes %s inside the workspace alone", text, e.Path)
			}
		}
	}
}
