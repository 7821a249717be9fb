package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample is a release to which nothing was added yet, from a source that was not built.
func sample(t *testing.T) *Release {
	t.Helper()
	facts, err := readFacts(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := testSigner()
	if err != nil {
		t.Fatal(err)
	}
	return &Release{Facts: facts, signer: signer, Source: Source{Dir: repository(t), Version: "v1.2.3", Commit: strings.Repeat("a", 40), Time: time.Unix(1790000000, 0)}, dir: t.TempDir()}
}

// target is the build of a target in which the program is a text.
func (r *Release) target(t *testing.T, name string) *Build {
	t.Helper()
	i := slices.IndexFunc(r.Targets, func(t Target) bool { return t.Name == name })
	if i < 0 {
		t.Fatalf("no target %s", name)
	}
	return &Build{Target: r.Targets[i], Program: []byte("a program")}
}

// TestWheel holds that a wheel has the client with the version and the program,
// and lists every file with its sum.
func TestWheel(t *testing.T) {
	t.Parallel()
	r := sample(t)
	if err := r.wheel(t.Context(), r.target(t, "windows_amd64")); err != nil {
		t.Fatal(err)
	}
	data := contents(t, r.dir)["shieldcli-1.2.3-py3-none-win_amd64.whl"]
	z, err := zip.NewReader(strings.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var files Files
	got := map[string]string{}
	for _, f := range z.File {
		open, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(open)
		if err != nil {
			t.Fatal(err)
		}
		files, got[f.Name] = append(files, File{f.Name, f.Mode(), text}), string(text)
	}
	for name, want := range map[string]string{
		"shieldcli/bin/shield.exe":                   "a program",
		"shieldcli/_version.py":                      "version = \"1.2.3\"\n",
		"shieldcli-1.2.3.dist-info/entry_points.txt": "[console_scripts]\nshield = shieldcli._binary:main\n",
		"shieldcli-1.2.3.dist-info/licenses/LICENSE": "licence\n",
	} {
		if got[name] != want {
			t.Errorf("%s has %q, want %q", name, got[name], want)
		}
	}
	for _, want := range []string{"\nName: shieldcli\n", "\nVersion: 1.2.3\n", "\nRequires-Python: >=3.9\n", "\n\n# shieldcli\n"} {
		if !strings.Contains(got["shieldcli-1.2.3.dist-info/METADATA"], want) {
			t.Errorf("METADATA has no %q", want)
		}
	}
	last := len(files) - 1
	if want := record(files[:last], "shieldcli-1.2.3.dist-info/RECORD"); files[last].Path != want.Path || !bytes.Equal(files[last].Data, want.Data) {
		t.Errorf("the last file is %s\n%s", files[last].Path, files[last].Data)
	}
	if f := files[slices.IndexFunc(files, func(f File) bool { return strings.HasSuffix(f.Path, ".exe") })]; f.Mode.Perm() != 0o755 {
		t.Errorf("%s may not be executed: %v", f.Path, f.Mode)
	}
}

// TestNPM holds that the client asks for the packages with the programs, each in
// the same version, by the names under which it looks for them.
func TestNPM(t *testing.T) {
	t.Parallel()
	r := sample(t)
	if err := r.npmClient(); err != nil {
		t.Fatal(err)
	}
	if err := r.npm(t.Context(), r.target(t, "linux_arm64")); err != nil {
		t.Fatal(err)
	}
	if err := r.npm(t.Context(), r.target(t, "linux_musl_amd64")); err != nil { // npm has no name for it
		t.Fatal(err)
	}
	made := contents(t, r.dir)
	if len(made) != 2 {
		t.Errorf("%d files were made", len(made))
	}
	client, program := made["shieldcli-shield-1.2.3.tgz"], made["shieldcli-shield-linux-arm64-1.2.3.tgz"]
	if got, want := inTar(t, program, "package/"), []string{"package.json", "shield", "THIRD-PARTY.txt", "LICENSE"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	text := entry(t, client, "package/package.json")
	var p struct {
		Version              string
		OptionalDependencies map[string]string
		Bin                  map[string]string
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"@shieldcli/shield-linux-x64": "1.2.3", "@shieldcli/shield-linux-arm64": "1.2.3", "@shieldcli/shield-darwin-arm64": "1.2.3", "@shieldcli/shield-win32-x64": "1.2.3"}
	if p.Version != "1.2.3" || !maps.Equal(p.OptionalDependencies, want) {
		t.Errorf("%s needs %v", p.Version, p.OptionalDependencies)
	}
	if !slices.Contains(inTar(t, client, "package/"), p.Bin["shield"]) {
		t.Errorf("the command %q is not in the package", p.Bin["shield"])
	}
	if types, def := bytes.Index(text, []byte(`"types"`)), bytes.Index(text, []byte(`"default"`)); types < 0 || types > def {
		t.Error("types has to stand before default")
	}
	var other packageJSON
	if err := json.Unmarshal(entry(t, program, "package/package.json"), &other); err != nil {
		t.Fatal(err)
	}
	if other.Name != "@shieldcli/shield-linux-arm64" || !slices.Equal(other.CPU, []string{"arm64"}) || !slices.Equal(other.Libc, []string{"glibc"}) {
		t.Errorf("%+v", other)
	}
}
