package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"calls.yaml"}, []string{"calls_gen.go"})
}

// TestFiles holds that the table is written beside its source, and only from a
// source that is right.
func TestFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	gentest.CheckErrorMentions(t, "no source", writeCallEffectsGoFile(), "calls.yaml")
	t.Chdir(gentest.WriteFolder(t, map[string]string{"calls.yaml": "- {role: dance, calls: x}"}))
	gentest.CheckErrorMentions(t, "a wrong role", writeCallEffectsGoFile(), "dance")
	if _, err := os.Stat("calls_gen.go"); err == nil {
		t.Error("a table was written from a wrong source")
	}
	t.Chdir(gentest.WriteFolder(t, map[string]string{"calls.yaml": "- {role: delete, calls: x}"}))
	main()
	if src, err := os.ReadFile("calls_gen.go"); err != nil || !bytes.Contains(src, []byte("callEffectDeleteFile")) {
		t.Errorf("%v\n%s", err, src)
	}
}

// TestGenerate holds that the entries of one name stay in their order, since
// the first that fits counts, and that a bad entry is refused with its number.
func TestGenerate(t *testing.T) {
	t.Parallel()
	src, err := generateCallEffectsGoSource([]byte("- {role: delete, calls: rm wipe, owner: os, in: python}\n- {role: list, calls: rm, notin: perl, unless: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(src)), " ")
	for _, want := range []string{
		`"rm": {{callEffect: callEffectDeleteFile, receiverOrModuleGlobs: []string{"os"}, onlyLanguages: []string{"python"}}, {callEffect: callEffectListFolder, excludedReceiverOrModuleGlobs: []string{"x"}, excludedLanguages: []string{"perl"}}}`,
		`"wipe": {{callEffect: callEffectDeleteFile, receiverOrModuleGlobs: []string{"os"}, onlyLanguages: []string{"python"}}}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, src)
		}
	}
	for text, name := range map[string]string{
		"- {role: delete, calls: rm}\n- {role: dance, calls: x}": "entry 2",
		"- {role: delete}":                  "entry 1",
		"- {role: delete, calls: x, at: y}": "at",
		"- {role: delete, calls: x":         "[1:",
	} {
		_, err := generateCallEffectsGoSource([]byte(text))
		gentest.CheckErrorMentions(t, text, err, name)
	}
}
