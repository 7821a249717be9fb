//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/ortlib"
)

// TestIncidents holds which public incidents are stopped, and which honest twins are
// allowed: all but those of testdata/incidents/open.txt. One that no longer belongs
// there is to be taken out.
func TestIncidents(t *testing.T) {
	if testing.Short() || !ortlib.Available() {
		t.Skip("needs processes and the model")
	}
	text, err := os.ReadFile("../testdata/incidents/open.txt")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			open = append(open, line)
		}
	}
	cmd := exec.CommandContext(t.Context(), builtShield, "demo", "incidents", "--json", "--dir", os.TempDir())
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 {
		t.Fatal(err)
	}
	rows, found := 0, []string{}
	for line := range strings.Lines(string(out)) {
		var r struct {
			ID             string
			Incident, Twin struct{ Stopped bool }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows++
		if !r.Incident.Stopped {
			found = append(found, r.ID+" passes")
		}
		if r.Twin.Stopped {
			found = append(found, r.ID+" twin stopped")
		}
	}
	if rows < 24 {
		t.Fatalf("only %d incidents; %v", rows, err)
	}
	if status := cmd.ProcessState.ExitCode(); (status == 0) != (len(found) == 0) {
		t.Errorf("status %d with %d wrong", status, len(found))
	}
	for _, what := range found {
		varies := strings.NewReplacer(" twin ", " twin sometimes ", " passes", " sometimes passes").Replace(what)
		if !slices.Contains(open, what) && !slices.Contains(open, varies) {
			t.Errorf("%s", what)
		}
	}
	for _, what := range open {
		if !slices.Contains(found, what) && !strings.Contains(what, " sometimes ") {
			t.Errorf("%s: no longer true; take the line out of testdata/incidents/open.txt", what)
		}
	}
}
