//go:build linux

package hosts

import (
	"encoding/json"
	"testing"
	"time"
)

// TestHostsScan has each host record a session, and shield scan read what the host has kept of it.
func TestHostsScan(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			installed(t, d)
			r := newRun(t, d, []call{{"shell", "touch one"}, {"shell", "touch asked"}, {"shell", "touch unwanted"}}, "60s")
			started := r.start()
			out, err := r.command(time.Minute, r.shield, "scan", "--json", "--host", d.name)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var report struct {
				Calls, Questions, Blocks int
				CannotTell               int `json:"cannot_tell"`
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if report.Calls != 3 || report.Questions != 1 || report.Blocks != 1 || report.CannotTell != 0 {
				t.Errorf("got %+v, want three calls, a question and a block\n%s\n%.3000s", report, out, started)
			}
		})
	}
}
