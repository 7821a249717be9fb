package main

import (
	"maps"
	"os"
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"programs", "words.yaml", "installers.yaml", "loads.yaml", "recipes.yaml"}, []string{"programs_gen.go", "words_gen.go", "installers_gen.go", "loads_gen.go"})
}

// TestRefuses holds that a table which is not there, or says something that there
// is not, is refused by its name.
func TestRefuses(t *testing.T) {
	good := map[string]string{"programs/frob.yaml": "frob:\n  does: readonly\n  examples:\n    frob: frob\n"}
	for _, name := range []string{"words.yaml", "installers.yaml", "loads.yaml", "recipes.yaml"} {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		good[name] = string(text)
	}
	for _, c := range [...]struct{ file, text, name string }{
		{"programs/frob.yaml", "frob:\n  does: magic\n", "frob"},
		{"programs/frob.yaml", "frob:\n  operands: fly...\n", "frob"},
		{"programs/frob.yaml", "frob:\n  colour: red\n", "colour"},
		{"words.yaml", "nothing: [a]\n", "words.yaml"},
		{"installers.yaml", "x: {colour: red}\n", "installers.yaml"},
		{"installers.yaml", "x: {programs: a}\n", "installers.yaml"},
		{"installers.yaml", "x: {programs: a, bin: b, names: c}\n", "installers.yaml"},
		{"loads.yaml", "- {colour: red}\n", "loads.yaml"},
		{"recipes.yaml", "- {colour: red}\n", "recipes.yaml"},
		{"words.yaml", "", "words.yaml"},
		{"installers.yaml", "", "installers.yaml"},
		{"loads.yaml", "", "loads.yaml"},
		{"recipes.yaml", "", "recipes.yaml"},
	} {
		t.Run(c.file+c.text, func(t *testing.T) {
			files := maps.Clone(good)
			files[c.file] = c.text
			if c.text == "" {
				delete(files, c.file)
			}
			t.Chdir(gentest.WriteFolder(t, files))
			gentest.CheckErrorMentions(t, c.file+": "+c.text, run(), c.name)
			if _, err := os.Stat("loads_gen.go"); err == nil {
				t.Error("the last table was written")
			}
		})
	}
}
