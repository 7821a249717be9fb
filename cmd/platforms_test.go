package cmd

import (
	"os"
	"strings"
	"testing"
)

// TestPlatforms holds that the page has the table, and that the doctor says on other systems than Linux what is not there.
func TestPlatforms(t *testing.T) {
	rows, err := readPlatforms()
	if err != nil || len(rows) == 0 {
		t.Fatal(rows, err)
	}
	for _, r := range rows {
		if r.Feature == "" || r.Linux == "" || r.Darwin == "" || r.Windows == "" {
			t.Errorf("incomplete: %+v", r)
		}
	}
	page, err := os.ReadFile("../docs/platforms.md")
	if err != nil || !strings.Contains(string(page), "\n"+platformTable(rows)+"\n") {
		t.Errorf("docs/platforms.md, %v, is to have\n%s", err, platformTable(rows))
	}
	said := func(system string) (all string) {
		var out doctorFindings
		examinePlatform(&out, system)
		for _, f := range out {
			if f.severity != severityNote {
				t.Errorf("%s: %+v", system, f)
			}
			all += f.description + "\n"
		}
		return all
	}
	if got := said("linux"); got != "" {
		t.Errorf("linux: %s", got)
	}
	for system, want := range map[string][]string{
		"windows": {"windows: copies for undo: nothing is kept", "not tested there: Tier 0 and Tier 1"},
		"darwin":  {"darwin: containment (--contain): --contain runs without it", "; copies for undo"},
		"freebsd": {"freebsd: shield is compiled for it, but not tested there: Tier 0 and Tier 1", "; containment"},
	} {
		for _, text := range want {
			if got := said(system); !strings.Contains(got, text) {
				t.Errorf("%s: no %q in\n%s", system, text, got)
			}
		}
	}
}
