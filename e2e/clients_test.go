package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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
