package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder makes a folder with the sources of the command package, of which some
// texts are changed, the working folder.
func folder(t *testing.T, file, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "programs"), os.DirFS("../programs")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"words.yaml", "loads.yaml", "recipes.yaml"} {
		data, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if file != "" {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTablesAreFresh(t *testing.T) {
	dir := folder(t, "", "")
	old := map[string][]byte{}
	for _, name := range []string{"programs_gen.go", "words_gen.go", "loads_gen.go"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		old[name] = text
	}
	t.Chdir(dir)
	main()
	for name, want := range old {
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is older than its tables; run go generate ./pkg/shell/command (%v)", name, err)
		}
	}
}

// TestRefuses holds that a table which says something that there is not is
// refused, and that nothing is written then.
func TestRefuses(t *testing.T) {
	for _, c := range [...]struct{ file, text, names string }{
		{"programs/frob.yaml", "frob:\n  does: magic\n", "frob"},
		{"programs/frob.yaml", "frob:\n  operands: fly...\n", "frob"},
		{"programs/frob.yaml", "frob:\n  colour: red\n", "colour"},
		{"words.yaml", "nothing: [a]\n", "words.yaml"},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Chdir(folder(t, c.file, c.text))
			if err := run(); err == nil || !strings.Contains(err.Error(), c.names) {
				t.Errorf("error %v, which is to name %q", err, c.names)
			}
			if _, err := os.Stat("words_gen.go"); err == nil {
				t.Error("a table was written")
			}
		})
	}
}
