package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinux holds that each format gives the same bytes each time.
func TestLinux(t *testing.T) {
	t.Parallel()
	r := sample(t)
	for format, name := range map[string]string{"deb": "shield_1.2.3-1_arm64.deb", "rpm": "shield-1.2.3-1.aarch64.rpm", "apk": "shield_1.2.3-r1_aarch64.apk"} {
		b := r.target(t, "linux_arm64")
		files, err := r.installed(b, r.Facts.Packages[format].Zsh)
		if err != nil {
			t.Fatal(err)
		}
		got, first, err := r.linuxPackage(b, format, files)
		if err != nil || got != name {
			t.Errorf("%s, want %s; %v", got, name, err)
		}
		if _, second, err := r.linuxPackage(b, format, files); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs the second time, or %v", name, err)
		}
	}
}

// TestDeb holds what a package for Debian says and has.
func TestDeb(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not there")
	}
	r := sample(t)
	b := r.target(t, "linux_amd64")
	b.Packages = []string{"deb"}
	if err := r.linux(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	file, dir := filepath.Join(r.dir, "shield_1.2.3-1_amd64.deb"), t.TempDir()
	out, err := exec.Command("dpkg-deb", "--field", file, "Package", "Version", "Architecture", "Depends").CombinedOutput()
	want := "Package: shield\nVersion: 1.2.3-1\nArchitecture: amd64\nDepends: libc6 (>= 2.28), libstdc++6 (>= 6)\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.Command("dpkg-deb", "--extract", file, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range strings.Fields("usr/bin/shield usr/share/man/man1/shield.1.gz usr/share/zsh/vendor-completions/_shield usr/share/doc/shield/copyright usr/share/doc/shield/README.md") {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "usr/bin/shield")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}
