package main

import (
	"path/filepath"
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"rules"}, []string{"hidden_gen.go"})
}

// TestSources holds that a source that is wrong is refused.
func TestSources(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"styles: [{name: broken, pattern: '('}]":                "broken",
		"styles: [{name: open, pattern: abc, unless: '('}]":     "open",
		"styles: [{name: anything, pattern: '.*'}]":             "anything",
		"styles: [{name: coloured, pattern: abc, colour: red}]": "colour",
	} {
		_, err := generateHiddenTextRules(filepath.Join(gentest.WriteFolder(t, map[string]string{"a.yaml": text}), "a.yaml"))
		gentest.CheckErrorMentions(t, text, err, name, "a.yaml")
	}
	if _, err := generateHiddenTextRules("nowhere.yaml"); err == nil {
		t.Error("a file that is missing gave no error")
	}
}
