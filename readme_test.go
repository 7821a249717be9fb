package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readmeBlock returns the indented text of the README that starts with a line.
func readmeBlock(t *testing.T, start string) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n    "+start)
	if !ok {
		t.Fatalf("README.md has no block that starts with %q", start)
	}
	var block strings.Builder
	for line := range strings.Lines(start + rest) {
		if line = strings.TrimPrefix(line, "    "); block.Len() > 0 && strings.TrimSpace(line) != "" && !strings.Contains(rest, "    "+line) {
			break
		}
		block.WriteString(line)
	}
	return block.String()
}

// TestReadme holds that the README's pipe gives what the README says, and that
// its policy can be used.
func TestReadme(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(in string, args ...string) (string, error) {
		cmd := exec.Command("shield", args...) // which TestMain puts into PATH
		cmd.Stdin, cmd.Dir = strings.NewReader(in), dir
		cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	block := readmeBlock(t, "$ echo '")
	_, in, ok := strings.Cut(block, "echo '")
	in, rest, cut := strings.Cut(in, "' | shield run --no-action\n")
	if !ok || !cut {
		t.Fatalf("no pipe in %q", block)
	}
	want, _, _ := strings.Cut(rest, "…")
	if got, _ := run(in, "run", "--no-action"); !strings.HasPrefix(got, want) {
		t.Errorf("the pipe gives\n%s\nREADME.md says\n%s", got, want)
	}

	policy, _, _ := strings.Cut(readmeBlock(t, "extends: offline"), "\n\n")
	file := filepath.Join(dir, "site.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run("", "policy", "check", file); err != nil || !strings.Contains(out, "can be used") {
		t.Errorf("policy check: %v\n%s\n%s", err, out, policy)
	}
}
