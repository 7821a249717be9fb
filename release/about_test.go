package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// installer makes archives and install.sh in the folder of r, and returns how to
// run it with a home folder of its own.
func installer(t *testing.T, r *Release) (run func(args ...string) (string, error), home string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the archives are for Linux")
	}
	for _, name := range []string{"linux_" + runtime.GOARCH, "linux_musl_" + runtime.GOARCH} {
		if err := r.archive(t.Context(), r.target(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	home = t.TempDir()
	return func(args ...string) (string, error) {
		cmd := exec.Command("sh", append([]string{filepath.Join(r.dir, "install.sh")}, args...)...)
		cmd.Env, cmd.Dir = append(os.Environ(), "HOME="+home), home
		out, err := cmd.CombinedOutput()
		return string(out), err
	}, home
}

// installed returns the files below a folder.
func installed(t *testing.T, dir string) []string {
	t.Helper()
	files, err := walk(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	return names
}

func TestInstaller(t *testing.T) {
	t.Parallel()
	r := sample(t)
	r.complete = false
	run, home := installer(t, r)
	for _, args := range [][]string{{"--from", r.dir}, {"--from", "file://" + r.dir, "--to", "there"}} {
		if out, err := run(args...); err != nil || !strings.Contains(out, "installed "+home+"/") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, to := range []string{".local", "there"} {
		want := strings.Fields("bin/shield share/bash-completion/completions/shield share/fish/vendor_completions.d/shield.fish share/man/man1/shield.1 share/zsh/site-functions/_shield")
		if got := installed(t, filepath.Join(home, to)); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", to, got, want)
		}
	}
	if info, err := os.Stat(filepath.Join(home, ".local/bin/shield")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestInstallerRefuses holds that an archive with another sum is not unpacked, and
// that a part of the script does nothing.
func TestInstallerRefuses(t *testing.T) {
	t.Parallel()
	r := sample(t)
	r.complete = false
	run, home := installer(t, r)
	names, err := filepath.Glob(filepath.Join(r.dir, "*.tar.gz"))
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	// the archive of another target is a good one, and not the right one
	a, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(names[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names[0], b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names[1], append(a, 0), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := run("--from", r.dir); err == nil || !strings.Contains(out, "nothing was installed") {
		t.Errorf("%v\n%s", err, out)
	}
	for want, args := range map[string][]string{"cannot be fetched": {"--from", home}, "usage: ": {"--form", home}} {
		if out, err := run(args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	script := filepath.Join(r.dir, "install.sh")
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range 20 {
		if err := os.WriteFile(script, text[:len(text)*cut/20], 0o644); err != nil {
			t.Fatal(err)
		}
		_, _ = run("--from", r.dir) // a syntax error, or nothing to do
	}
	if got := installed(t, home); len(got) > 0 {
		t.Errorf("installed: %q", got)
	}
}

// TestAbout holds what the formula, the manifest and the statement of provenance
// say about files of the release.
func TestAbout(t *testing.T) {
	t.Parallel()
	r := sample(t)
	for _, target := range r.Targets {
		b := r.target(t, target.Name)
		if err := r.archive(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		r.built = append(r.built, Packed{Target: target, HasModel: target.Zig != "", files: []string{"a.deb"}})
	}
	sums := map[string]string{}
	for _, f := range r.files {
		sums[f.Name] = f.Sum
	}
	if err := r.about(); err != nil {
		t.Fatal(err)
	}
	if err := r.provenance(); err != nil {
		t.Fatal(err)
	}
	made := contents(t, r.dir)
	for _, name := range []string{"darwin_arm64", "linux_amd64", "linux_arm64"} {
		file := "shield_1.2.3_" + name + ".tar.gz"
		if want := "/releases/download/v1.2.3/" + file + "\"\n      sha256 \"" + sums[file] + "\"\n"; !strings.Contains(made["shield.rb"], want) {
			t.Errorf("shield.rb has no %s", want)
		}
	}
	var scoop struct {
		Version      string
		Architecture map[string]struct{ URL, Hash string }
	}
	if err := json.Unmarshal([]byte(made["shield.json"]), &scoop); err != nil || scoop.Version != "1.2.3" || scoop.Architecture["64bit"].Hash != sums["shield_1.2.3_windows_amd64.zip"] {
		t.Errorf("%v\n%+v", err, scoop)
	}
	for _, want := range []string{"| linux_amd64 | yes | a.deb |", "| windows_amd64 | no | a.deb |", "\nFirst version.\n"} {
		if !strings.Contains(made["RELEASE.md"], want) {
			t.Errorf("RELEASE.md has no %q", want)
		}
	}
	if strings.Contains(made["RELEASE.md"], "Earlier") {
		t.Error("RELEASE.md has the changes of another release")
	}
	var statement struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
	}
	if err := json.Unmarshal([]byte(made["provenance.json"]), &statement); err != nil || len(statement.Subject) != len(r.files)-1 {
		t.Errorf("%v, %d subjects of %d files", err, len(statement.Subject), len(r.files))
	}
	for _, s := range statement.Subject {
		if sum, ok := sums[s.Name]; ok && sum != s.Digest["sha256"] {
			t.Errorf("%s: %s", s.Name, s.Digest["sha256"])
		}
	}
	r.files = r.files[:len(r.files)-1]
	if again, err := r.statement(); err != nil || string(again) != made["provenance.json"] {
		t.Errorf("%v; the second time it is\n%s", err, again)
	}
}

// TestComponents holds that the list of parts names modules as they were built,
// and the model only where it is.
func TestComponents(t *testing.T) {
	t.Parallel()
	r := sample(t)
	b := &Build{Info: &debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{
		{Path: "x.test/a", Version: "v1.0.0"}, {Path: "x.test/b", Version: "v1.0.0", Replace: &debug.Module{Path: "x.test/c", Version: "v2.0.0"}},
	}}}
	names := func() []string {
		components, err := r.components(b)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range components {
			names = append(names, c.PackageURL)
		}
		return names
	}
	want := []string{"pkg:golang/stdlib@1.26.0", "pkg:golang/x.test/a@v1.0.0", "pkg:golang/x.test/c@v2.0.0"}
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	b.HasModel, b.debian = true, []Debian{{Name: "libstdc++6", Version: "12-1", Arch: "amd64"}}
	want = append(want, "pkg:github/microsoft/onnxruntime@v1.2.0", "", "pkg:deb/debian/libstdc%2B%2B6@12-1?arch=amd64")
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
