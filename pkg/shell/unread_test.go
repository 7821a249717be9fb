package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestPathsIn holds which parts of a word of unknown use are paths that can lead out of the working folder.
func TestPathsIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"--config=/a/b":             {"/a/b"},
		"--config=../b":             {"../b"},
		"--config=a/../../b":        {"a/../../b"},
		"--config=./a/../../b":      {"./a/../../b"},
		"--config=a/..//./../b":     {"a/..//./../b"},
		"-ca/b/../../../c":          {"a/b/../../../c"},
		"dest=a/../..":              {"a/../.."},
		"--config=a/../b":           nil,
		"--config=a/b/../../c.json": nil,
		"--config=a/...":            nil,
		"--config=a..b/c..":         nil,
		"a/..b/../c":                nil,
		"--config=jest.config.js":   nil,
	} {
		if got := pathsIn(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	reads := func(text string) bool {
		return slices.ContainsFunc(Analyze(text, here()).Effects, func(e effect.Effect) bool {
			return e.Kind == effect.ReadFile && effect.IsSecretPath(e.Path, false)
		})
	}
	if text := "jest --config=a/../../../../../home/u/.ssh/id_rsa"; !reads(text) {
		t.Errorf("%s: no read of a key", text)
	}
	if text := "jest --config=packages/a/../../jest.config.js"; reads(text) {
		t.Errorf("%s: a read of a key", text)
	}
}
