//go:build linux

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServiceInstall holds what install writes and runs, and that uninstall leaves
// nothing of it.
func TestServiceInstall(t *testing.T) {
	w := servedWorld(t)
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte("#!/bin/sh\necho \"$*\" >>"+log+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(w.Environ(), "PATH="+bin)
	w.Environ = func() []string { return env }
	units := filepath.Join(w.Getenv("XDG_CONFIG_HOME"), "systemd", "user")
	if status, out, errs := run(t, w, "", "service", "install", "--dry-run"); status != 0 || !strings.Contains(out, "ListenStream="+w.Home) {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if _, err := os.Stat(units); err == nil {
		t.Error("a dry run writes")
	}
	for _, args := range [][]string{{"service", "install"}, {"service", "install"}} { // a second time changes nothing
		if status, out, errs := run(t, w, "", args...); status != 0 {
			t.Fatalf("status %d: %s%s", status, out, errs)
		}
	}
	if text, err := os.ReadFile(filepath.Join(units, "shield.service")); err != nil || !strings.Contains(string(text), `ExecStart=:"`+w.ShieldExecutablePath+`" serve`) {
		t.Errorf("%s%v", text, err)
	}
	if status, out, errs := run(t, w, "", "service", "uninstall"); status != 0 {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if left, err := os.ReadDir(units); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	start := "--user daemon-reload\n--user enable --now shield.socket\n"
	if got, err := os.ReadFile(log); err != nil || string(got) != start+start+"--user disable --now shield.socket\n--user stop shield.service\n" {
		t.Errorf("%s%v", got, err)
	}
	if status, _, errs := run(t, w, "", "service", "status"); status != 1 || !strings.Contains(errs, "is not running") {
		t.Errorf("status %d: %s", status, errs)
	}
}
