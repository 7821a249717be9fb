package command

import (
	"path"
	"testing"
)

// What tells globs apart by their end never decides otherwise than matching does.
func TestNamedAsMatched(t *testing.T) {
	t.Parallel()
	names := []string{"", "/", ".", "Makefile", "GNUmakefile", "build.gradle.kts", "x.py", "conftest.py", "package.json", "a*", "a]", "x?"}
	globs := []string{"", "*", "a\\*", "[a-z]", "x[?]", "x\\?", "*.p[xy]"}
	for _, l := range loaders {
		globs = append(append(globs, l.FileNameGlobs...), l.RequiredArgGlobs...)
		names = append(append(names, l.FileNameGlobs...), l.RequiredArgGlobs...)
	}
	matched := 0
	for _, glob := range globs {
		for _, name := range names {
			want, _ := path.Match(glob, name)
			if want {
				matched++
			}
			if got := matchesAnyGlob([]string{glob}, name); got != want {
				t.Errorf("glob %q, name %q: got %t, want %t", glob, name, got, want)
			}
		}
	}
	if matched < len(loaders) {
		t.Errorf("only %d of the names match: this shows nothing", matched)
	}
}
