//go:build unix

package config

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Anyone who can write the settings decides what is allowed, so that no one but
// the person and root may.
func TestSettingsOfOthers(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o644: "", 0o400: "", 0o444: "",
		0o666: "other users can change this file, since its mode is 0666; run 'chmod go-w ", 0o664: "mode is 0664", 0o602: "mode is 0602", 0o620: "mode is 0620",
	} {
		file := write(t, "policy: strict\n")
		chmod(t, file, mode)
		link := filepath.Join(t.TempDir(), "link.yaml")
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		for _, src := range []Sources{{SystemSettingsPath: file}, {UserSettingsPath: file}, {UserSettingsPathOverride: file}, {UserSettingsPath: link}} {
			src.PresetPolicyNames = presets
			_, err := Load(src)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("mode %04o: %v, want %q", mode, err, want)
			}
		}
	}
	if os.Geteuid() == 0 { // only root can give a file away
		file := write(t, "policy: strict\n")
		if err := os.Chown(file, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Sources{UserSettingsPath: file, PresetPolicyNames: presets}); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("another user's file: %v", err)
		}
	}
}

func TestFoldersOfSettings(t *testing.T) {
	t.Parallel()
	for mode, ok := range map[os.FileMode]bool{
		0o700: true, 0o755: true, 0o775: true, 0o777: false, 0o703: false, 0o777 | os.ModeSticky: true,
	} {
		file := write(t, "policy: strict\n")
		link := filepath.Join(t.TempDir(), "link.yaml")
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(file)
		chmod(t, dir, mode)
		for _, name := range []string{file, link} {
			_, err := Load(Sources{UserSettingsPath: name, PresetPolicyNames: presets})
			if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "run 'chmod o-w "+dir+"'") {
				t.Errorf("folder with mode %v: %v", mode, err)
			}
		}
	}
}

// What would block, or is no file, is refused at once; and a file that is there
// but leads nowhere is not the same as none.
func TestSettingsThatAreNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, socket, dangling := filepath.Join(dir, "fifo"), filepath.Join(dir, "s"), filepath.Join(dir, "dangling")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Symlink(filepath.Join(dir, "none"), dangling); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{fifo: "the path is not a regular file; put a regular file there", socket: "the path is not a regular file; put a regular file there", dir: "the path is not a regular file; put a regular file there", "/dev/zero": "the path is not a regular file; put a regular file there", dangling: "no such file"} {
		for _, src := range []Sources{{SystemSettingsPath: name}, {UserSettingsPath: name}, {UserSettingsPathOverride: name}} {
			if _, err := Load(src); err == nil || !strings.Contains(err.Error(), "configuration "+name+": the file cannot be read: "+want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func chmod(t *testing.T, name string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}
