package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestExplainCauses holds that no action of the list is allowed without a model, and that
// explain names an effect or a rule of its cause.
func TestExplainCauses(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "testdata", "explain", "causes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^[ │├└─]*[a-z_]+\b|\brule [\w-]+|\btier \d: .+`)
	words := regexp.MustCompile(`[\w-]+`)
	w := explainWorld(t)
	args := []string{"explain", "--policy", "offline", "--model", "none", "--root", "/home/dev/project", "--width", "1000"}
	count, cause := map[string]int{}, ""
	var accepted []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if head, ok := strings.CutPrefix(line, "["); ok {
			names := ""
			cause, names, _ = strings.Cut(strings.TrimSuffix(head, "]"), ": ")
			accepted = strings.Fields(names)
			continue
		}
		count[cause]++
		in, asked := "", append(args[:len(args):len(args)], line)
		if strings.HasPrefix(line, `{"type"`) {
			in, asked = line, args
		}
		_, out, errs := run(t, w, in, asked...)
		_, effects, _ := strings.Cut(out, "\nEffects\n")
		verdict, _, _ := strings.Cut(out, "\n")
		said := words.FindAllString(strings.Join(names.FindAllString(verdict+"\n"+effects, -1), "\n"), -1)
		if errs != "" || strings.HasPrefix(out, "ALLOW") || !slices.ContainsFunc(said, func(name string) bool { return slices.Contains(accepted, name) }) {
			t.Errorf("%s: want one of %s, not allowed; got\n%s%s", line, accepted, out, errs)
		}
	}
	if len(count) != 32 {
		t.Errorf("%d causes, want 32", len(count))
	}
	for cause, n := range count {
		if n != 10 {
			t.Errorf("%s: %d actions, want 10", cause, n)
		}
	}
}
