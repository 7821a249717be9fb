package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestClients runs the tests of the clients in other languages on the program
// built here. Their runners say how many tests ran, so that none is no success.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, client := range []struct {
		language string
		run      []string
		ran      *regexp.Regexp
	}{
		{"python", []string{"python3", "-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s", "tests"}, regexp.MustCompile(`(?m)^Ran (\d+) tests`)},
		{"node", []string{"node", "--test", "--test-reporter=tap", "test/shield.test.js"}, regexp.MustCompile(`(?m)^# pass (\d+)`)},
	} {
		t.Run(client.language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(client.run[0]); err != nil {
				t.Skip(err)
			}
			cmd := exec.Command(client.run[0], client.run[1:]...)
			cmd.Dir = filepath.Join("..", "clients", client.language)
			cmd.Env = append(os.Environ(), "SHIELD_TESTED="+builtShield, "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1", "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
			}
			ran := client.ran.FindSubmatch(out)
			if ran == nil {
				t.Fatalf("how many tests ran is not said:\n%s", out)
			}
			if n, _ := strconv.Atoi(string(ran[1])); n < 15 {
				t.Fatalf("%d tests ran:\n%s", n, out)
			}
			t.Logf("%s tests ran", ran[1])
		})
	}
}

// TestClientReadmes runs the first example of each client's README as it stands there.
func TestClientReadmes(t *testing.T) {
	t.Parallel()
	for language, fence := range map[string]string{"python": "python", "node": "js"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			needs(t, map[string]string{"python": "python3", "node": "node"}[language])
			client, err := filepath.Abs(filepath.Join("..", "clients", language))
			if err != nil {
				t.Fatal(err)
			}
			readme, err := os.ReadFile(filepath.Join(client, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(readme), "\n```"+fence+"\n")
			example, _, found := strings.Cut(rest, "\n```\n")
			if !found {
				t.Fatalf("README.md of %s has no example", language)
			}
			dir := t.TempDir()
			cmd := exec.Command("python3", "-W", "error", "-c", example)
			if language == "node" {
				scope := filepath.Join(dir, "node_modules", "@shieldcli")
				file := filepath.Join(dir, "example.mjs")
				if err := errors.Join(os.MkdirAll(scope, 0o700), os.Symlink(client, filepath.Join(scope, "shield")), os.WriteFile(file, []byte(example), 0o600)); err != nil {
					t.Fatal(err)
				}
				cmd = exec.Command("node", file)
			}
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(client, "src"), "PYTHONDONTWRITEBYTECODE=1", "HOME="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "BLOCK ") || strings.Count(string(out), "\n") != 1 {
				t.Errorf("%v: %v\n%s\n%s", cmd.Args, err, example, out)
			}
		})
	}
}
