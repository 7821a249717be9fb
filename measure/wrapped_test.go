//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/shieldcli/shield/internal/built"
)

// TestWrapped holds that an attack of the repository that is not allowed alone is not allowed
// in a shell form either. The draw is always the same: fresh ones are for make fuzz.
func TestWrapped(t *testing.T) {
	if testing.Short() {
		t.Skip("starts shield")
	}
	shield, err := built.BuildShield()
	if err != nil {
		t.Fatal(err)
	}
	o := &options{shield: shield, home: filepath.Join(t.TempDir(), "home"), repo: "..", preset: "offline", extra: "--model none", rows: 2000, seed: 1}
	bad, n, err := o.findLeaks()
	if err != nil {
		t.Fatal(err)
	}
	if n < o.rows/2 {
		t.Errorf("only %d of %d were compared", n, o.rows)
	}
	for _, w := range bad {
		t.Errorf("%s is allowed:\n%s", w.forms, w.command)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	forms, err := readForms("../testdata/wraps/forms.txt")
	if err != nil || len(forms) < 50 {
		t.Fatalf("%d forms: %v", len(forms), err)
	}
	for _, f := range forms {
		got, ok := f.wrapText(plainText("rm x"))
		if !ok || got.command == "rm x" || got.shells == "" {
			t.Errorf("%s: %+v, %v", f.name, got, ok)
		}
	}
}

// TestApply holds that what later actions find is what the action before would have left.
func TestApply(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	root := filepath.Join(home, "app")
	w := actionApplier{home}
	command := func(text string) {
		w.applyAction(&step{action: action{Type: "execute_command", Payload: map[string]any{"command": text}}}, root)
	}
	old := "b"
	w.applyAction(&step{action: action{Type: "write_file", Payload: map[string]any{"path": "a.txt", "content": "a b c"}}}, root)
	w.applyAction(&step{action: action{Type: "write_file", Payload: map[string]any{"path": "a.txt", "content": "x"}}, Old: &old}, root)
	command("mkdir -p d && cd d && cat > e.sh <<'EOF'\necho 1\nEOF\nmv ../a.txt 'b c.txt'")
	command("cat > f.txt << EOF\nEOF")
	command("rm /etc/hostname-of-nobody; rm $(cat x)")
	for name, want := range map[string]string{"d/b c.txt": "a x c", "d/e.sh": "", "e.sh": "echo 1\n", "f.txt": "\n"} {
		got, err := os.ReadFile(filepath.Join(root, name))
		if want != "" && (err != nil || string(got) != want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	got, ok := splitWords(`a 'b c' "d \" e" f\ g ''`)
	if !ok || len(got) != 5 || got[1] != "b c" || got[2] != `d " e` || got[3] != "f g" {
		t.Errorf("%q, %v", got, ok)
	}
	if _, ok := splitWords("a 'b"); ok {
		t.Error("an open quote is accepted")
	}
}
