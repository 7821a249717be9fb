package cmd

import (
	"strings"
	"testing"
)

// TestIncidentData holds that each incident says what it has to, and that its twin
// differs from it.
func TestIncidentData(t *testing.T) {
	t.Parallel()
	all, err := readIncidents()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 24 {
		t.Errorf("%d incidents", len(all))
	}
	ids := map[string]bool{}
	for _, i := range all {
		if i.ID == "" || ids[i.ID] || i.Title == "" || i.Source == "" || i.IncidentDescription == "" || i.Twin.Fact == "" || (i.Steps == nil) == (i.Server == nil) || (i.Server == nil) != (i.Call == nil) {
			t.Errorf("%s lacks something", i.ID)
		}
		ids[i.ID] = true
		if !strings.HasPrefix(i.Date, "2025") && !strings.HasPrefix(i.Date, "2026") {
			t.Errorf("%s: date %s", i.ID, i.Date)
		}
		if _, err := i.applyHarmlessVariant(); err != nil {
			t.Error(err)
		}
		if len(i.Twin.NewTextByOldText)+len(i.Twin.Files) == 0 {
			t.Errorf("%s: the twin is the same", i.ID)
		}
	}
	i := all[0]
	i.Twin.NewTextByOldText = map[string]string{"no such text": ""}
	if _, err := i.applyHarmlessVariant(); err == nil {
		t.Error("a twin that replaces what is not there is accepted")
	}
}
