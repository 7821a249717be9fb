package approve

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestNotificationText: desktops take the text for markup, a script or options.
func TestNotificationText(t *testing.T) {
	t.Parallel()
	got := notificationText("shield asks whether to run “<b>x</b> \"$(id)\" `id` 'a' & \\ --hint=x\n\x1b[2J\u202e; | % @ é”: why")
	if strings.ContainsAny(got, "<>\"$`'&\\\n\x1b;|%@\u202e“”") || !strings.HasPrefix(got, "shield asks whether to run ·b·x·/b· ") || !strings.Contains(got, "é") {
		t.Errorf("got %q", got)
	}
	if long := notificationText(strings.Repeat("é", 10_000)); len(long) > maxNotificationBytes+100 {
		t.Errorf("%d bytes", len(long))
	}
}

func TestHasDesktop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		system, env string
		want        bool
	}{
		{"linux", "", false},
		{"linux", "DISPLAY=:0", false},
		{"linux", "DBUS_SESSION_BUS_ADDRESS=unix:path=/x", false},
		{"linux", "DBUS_SESSION_BUS_ADDRESS=autolaunch: DISPLAY=:0", false}, // would start a daemon
		{"linux", "DBUS_SESSION_BUS_ADDRESS=unix:path=/x DISPLAY=:0", true},
		{"freebsd", "DBUS_SESSION_BUS_ADDRESS=unix:path=/x WAYLAND_DISPLAY=w", true},
		{"darwin", "", true},
		{"darwin", "SSH_CONNECTION=x", false},
		{"windows", "", true},
		{"plan9", "DISPLAY=:0", false},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(tt.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		if got := hasDesktop(tt.system, func(name string) string { return env[name] }); got != tt.want {
			t.Errorf("%s with %q: %v", tt.system, tt.env, got)
		}
	}
}

// TestOwnHelpers holds that the code of the page is not given to a program that PATH names.
func TestOwnHelpers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere other programs send notifications")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if !canOnlyRootReplaceNotifierPrograms("linux") {
		t.Error("without a helper there is nothing to mistrust")
	}
	if err := os.WriteFile(filepath.Join(dir, "kdialog"), []byte("#!/bin/sh\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { // also where root runs the tests
		t.Fatal(err)
	}
	if canOnlyRootReplaceNotifierPrograms("linux") {
		t.Error("a program in a folder of another user gets the code")
	}
}
