package cmd

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/host"
)

// TestHostSettingsAreGuarded checks that no preset lets an agent change the files
// that make a host ask shield, or that can keep it from that.
func TestHostSettingsAreGuarded(t *testing.T) {
	w := newWorld(t)
	var in strings.Builder
	var paths []string
	for _, name := range host.Names() {
		h, err := host.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.HookSettings(t.Context(), host.HookCommands{BeforeTool: "x", AfterTool: "y"}, 60, w.WorkingDir, "linux")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.SettingsFiles {
			base := w.WorkingDir
			switch p.Scope {
			case "user":
				base = w.Home
			case "managed":
				base = ""
			}
			path := strings.ReplaceAll(filepath.Join(base, p.Folder, p.File), "*", "other")
			paths = append(paths, path)
			fmt.Fprintf(&in, "{\"type\":\"delete_file\",\"payload\":{\"path\":%q}}\n", path)
		}
	}
	_, out, errs := run(t, w, in.String(), "policy", "--policy", "permissive", "--no-action")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(paths) {
		t.Fatalf("%d verdicts for %d files: %s", len(lines), len(paths), errs)
	}
	for i, line := range lines {
		if !strings.Contains(line, `"decision":"BLOCK"`) {
			t.Errorf("%s: %s", paths[i], line)
		}
	}
}
