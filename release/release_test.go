package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// repository returns a clone-able repository with a small program in shield's place.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                              "module github.com/shieldcli/shield\n\ngo 1.26.0\n",
		"main.go":                             "package main\n\nfunc main() { println(\"a program\") }\n",
		"README.md":                           "# shield\n",
		"LICENSE":                             "licence\n",
		"CHANGELOG.md":                        "# Changelog\n\n## Unreleased\nFirst version.\n\n## 0.0.1\nEarlier.\n",
		"man/shield.1":                        ".TH shield 1\n",
		"completions/_shield":                 "#compdef shield\n",
		"internal/ortlib/lib/linux_amd64.zst": strings.Repeat("library ", 1000),
		"internal/ortlib/ortlib.go":           "package ortlib\n\nconst Version = \"1.2.0\"\n",
		"models/default/model.onnx":           "model\n",
		"completions/shield.bash":             "complete shield\n",
		"completions/shield.fish":             "complete -c shield\n",
		"release/zig.txt":                     "ziglang==0.1 --hash=sha256:" + strings.Repeat("0", 64) + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "clients"), os.DirFS("../clients")); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	git(t, dir, "-c", "user.name=A", "-c", "user.email=a@x.test", "commit", "--quiet", "--message=first")
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// contents returns the files in a folder by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(data)
	}
	return got
}

// TestSameBytes holds that a commit gives the same files each time, whatever
// is in the repository that is not committed.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	repo, first, second := repository(t), filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	make := func(to string) {
		t.Helper()
		if err := release(t.Context(), []string{"-version=v0.0.0", "-test-key", "-to", to, "-repo", repo, "-only=linux_musl_amd64"}); err != nil {
			t.Fatal(err)
		}
	}
	make(first)
	if err := os.WriteFile(filepath.Join(repo, "main.go"), []byte("package main\n\nfunc main() { println(\"another\") }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	make(second)
	a, b := contents(t, first), contents(t, second)
	if !maps.Equal(a, b) {
		for name := range a {
			if a[name] != b[name] {
				t.Errorf("%s differs", name)
			}
		}
		t.Errorf("%q and %q", slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
	}
	if !strings.Contains(a["SHA256SUMS"], "  shield_0.0.0_linux_musl_amd64.tar.gz\n") {
		t.Errorf("SHA256SUMS:\n%s", a["SHA256SUMS"])
	}
	want := []string{"shield", "THIRD-PARTY.txt", "README.md", "LICENSE", "CHANGELOG.md", "man/shield.1", "completions/_shield", "completions/shield.bash", "completions/shield.fish"}
	if text := entry(t, a["shield_0.0.0_linux_musl_amd64.tar.gz"], "shield_0.0.0_linux_musl_amd64/THIRD-PARTY.txt"); !bytes.Contains(text, []byte("The Go Authors")) {
		t.Errorf("THIRD-PARTY.txt has\n%s", text)
	}
	if got := inTar(t, a["shield_0.0.0_linux_musl_amd64.tar.gz"], "shield_0.0.0_linux_musl_amd64/"); !slices.Equal(got, want) {
		t.Errorf("the archive has %q, want %q", got, want)
	}
}

// inTar returns the names in a compressed archive, without what all begin with.
func inTar(t *testing.T, data, top string) []string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, top)
		if !ok || h.Uname != "" || h.Uid != 0 {
			t.Errorf("%s: owner %q %d", h.Name, h.Uname, h.Uid)
		}
		names = append(names, name)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old.deb"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"expected vX.Y.Z":    {"-version=1.2.3", "-to=x"},
		"v1.2.3-rc.1":        {"-version=v1.2.3-rc.1", "-to=x"},
		"expected a folder":  {"-version=v1.2.3"},
		"no target is named": {"-version=v1.2.3", "-to=x", "-only=plan9_386"},
		"is not empty":       {"-version=v0.0.0", "-test-key", "-to", full},
		"only v0.0.0":        {"-version=v1.2.3", "-test-key", "-to=x"},
	} {
		if err := release(t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// TestCheck holds that a program of another commit, or of changed files, is not packed.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := Source{Version: "v1.2.3", Commit: "abc"}
	info := func(version, commit, modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: modified}, {Key: "-trimpath", Value: "true"},
		}}
	}
	if err := s.check(info("v1.2.3", "abc", "false")); err != nil {
		t.Error(err)
	}
	for _, bad := range []*debug.BuildInfo{info("v1.2.4", "abc", "false"), info("v1.2.3", "abd", "false"), info("v1.2.3", "abc", "true"), {}} {
		if s.check(bad) == nil {
			t.Errorf("taken: %v", bad)
		}
	}
}

// TestZig holds that no other compiler is taken than the one whose sum is given.
// Asked for its version, echo says "version".
func TestZig(t *testing.T) {
	t.Parallel()
	s := Source{Dir: repository(t)}
	for version, good := range map[string]bool{"version": true, "0.15.2": false} {
		text := "ziglang==" + version + " --hash=sha256:" + strings.Repeat("0", 64) + "\n"
		if err := os.WriteFile(filepath.Join(s.Dir, "release/zig.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.zigFolder(t.Context(), "echo"); (err == nil) != good {
			t.Errorf("version %q: %v", version, err)
		}
	}
}
