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
	causes := eachExplained(t, "causes.txt", func(line, out string, said bool) {
		if strings.HasPrefix(out, "ALLOW") || !said {
			t.Errorf("%s: want an effect or rule of its cause, not allowed; got\n%s", line, out)
		}
	})
	if causes != 44 {
		t.Errorf("%d causes, want %d", causes, 44)
	}
}

// TestExplainTwins holds that explain names no effect and no rule of a cause for the honest
// work that looks like it.
func TestExplainTwins(t *testing.T) {
	causes := eachExplained(t, "twins.txt", func(line, out string, said bool) {
		if said || strings.HasPrefix(out, "BLOCK") {
			t.Errorf("%s: want none of the effects and rules of the cause, not blocked; got\n%s", line, out)
		}
	})
	if causes != 12 {
		t.Errorf("%d causes, want %d", causes, 12)
	}
}

// eachExplained asks explain about each action of a file, and reports to check whether it
// names one of the effects and rules that are behind the cause. It returns how many
// causes the file has, with ten actions each.
func eachExplained(t *testing.T, file string, check func(line, out string, said bool)) (causes int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "explain", file))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^[ │├└─]*[a-z_]+\b|\brule [\w-]+|\btier \d: .+`)
	words := regexp.MustCompile(`[\w-]+`)
	w := explainWorld(t)
	args := []string{"explain", "--policy", "offline", "--model", "none", "--root", "/home/dev/project", "--width", "1000"}
	count, cause := map[string]int{}, ""
	var listed []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if head, ok := strings.CutPrefix(line, "["); ok {
			names := ""
			cause, names, _ = strings.Cut(strings.TrimSuffix(head, "]"), ": ")
			listed = strings.Fields(names)
			continue
		}
		count[cause]++
		in, asked := "", append(args[:len(args):len(args)], line)
		if strings.HasPrefix(line, `{"type"`) {
			in, asked = line, args
		}
		_, out, errs := run(t, w, in, asked...)
		if errs != "" {
			t.Errorf("%s: %s", line, errs)
		}
		_, effects, _ := strings.Cut(out, "\nEffects\n")
		verdict, _, _ := strings.Cut(out, "\n")
		said := words.FindAllString(strings.Join(names.FindAllString(verdict+"\n"+effects, -1), "\n"), -1)
		check(line, out, slices.ContainsFunc(said, func(name string) bool { return slices.Contains(listed, name) }))
	}
	for cause, n := range count {
		if n != 10 {
			t.Errorf("%s: %d actions, want 10", cause, n)
		}
	}
	return len(count)
}
