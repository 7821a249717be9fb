package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that the libraries which ship have the sums that are written
// down, and that the files which embed them are what they say.
func TestFresh(t *testing.T) {
	var outputs []string
	for _, target := range targets {
		outputs = append(outputs, "embed_"+target.os+"_"+target.arch+".go")
	}
	gentest.CheckUpToDate(t, func() {
		if err := buildLibraries(targets[:], true, ""); err != nil {
			t.Error(err)
		}
	}, []string{"lib"}, outputs)
}

// packed returns data as a library is kept.
func packed(t *testing.T, data string) string {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(z.EncodeAll([]byte(data), nil))
}

func sumOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

// TestCheckRefuses holds that a library which is not the one whose sum is written
// down is refused, and that no Go file embeds it.
func TestCheckRefuses(t *testing.T) {
	for name, c := range map[string]struct{ kept, says string }{
		"missing":       {"", "beos_mips.zst"},
		"another":       {packed(t, "other"), "SHA-256 is"},
		"one byte more": {packed(t, "library!"), "SHA-256 is"},
		"not packed":    {"library", "magic number"},
		"cut off":       {packed(t, strings.Repeat("library", 9))[:20], "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			if c.kept != "" {
				files["lib/beos_mips.zst"] = c.kept
			}
			t.Chdir(gentest.WriteFolder(t, files))
			err := buildLibraries([]target{{os: "beos", arch: "mips", libraryFileName: "lib.so", librarySHA256Hex: sumOf("library")}}, true, "")
			gentest.CheckErrorMentions(t, name, err, "beos/mips", c.says)
			if _, err := os.Stat("embed_beos_mips.go"); err == nil {
				t.Error("a Go file embeds it")
			}
		})
	}
}

// tgz returns a package as npm packs it.
func tgz(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEntry(t *testing.T) {
	t.Parallel()
	whole := tgz(t, "package/README.md", "read", "package/lib", "library", "package/lib", "second")
	if got, err := readArchiveFile([]byte(whole), "package/lib"); err != nil || string(got) != "library" {
		t.Errorf("got %q, %v", got, err)
	}
	for name, c := range map[string]struct{ data, says string }{
		"no gzip":       {"library, and not packed at all", "gzip"},
		"empty":         {"", "EOF"},
		"cut off":       {whole[:len(whole)/2], "EOF"},
		"missing":       {tgz(t, "package/lib.old", "x"), "package/lib is missing"},
		"a folder's":    {tgz(t, "package/lib/x", "x"), "package/lib is missing"},
		"nothing in it": {tgz(t), "is missing"},
	} {
		_, err := readArchiveFile([]byte(c.data), "package/lib")
		gentest.CheckErrorMentions(t, name, err, c.says)
	}
}

// programs puts scripts of a shell on PATH, alone, by their names.
func programs(t *testing.T, scripts map[string]string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are scripts of a shell")
	}
	dir := gentest.WriteFolder(t, nil)
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if zstd, err := exec.LookPath("zstd"); err != nil {
		t.Fatal(err)
	} else if err := os.Symlink(zstd, filepath.Join(dir, "zstd")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// TestFromModule holds that a library of the Go module is packed and embedded, and
// one of another sum is not even kept.
func TestFromModule(t *testing.T) {
	module := gentest.WriteFolder(t, map[string]string{"test_data/l.so": "library"})
	programs(t, map[string]string{"go": "[ \"$*\" = 'list -m -f {{.Dir}} " + onnxRuntimeGoModulePath + "' ] && echo '" + module + "'"})
	t.Chdir(t.TempDir())
	good := target{os: "beos", arch: "mips", libraryFileName: "lib.so", goModuleLibraryFileName: "l.so", librarySHA256Hex: sumOf("library")}
	for says, change := range map[string]func(*target){
		"SHA-256 is": func(t *target) { t.librarySHA256Hex = sumOf("other") },
		"m.so":       func(t *target) { t.goModuleLibraryFileName = "m.so" },
	} {
		bad := good
		change(&bad)
		gentest.CheckErrorMentions(t, says, buildLibraries([]target{bad}, false, ""), "beos/mips", says)
	}
	if _, err := os.Stat("lib"); err == nil {
		t.Error("a library was kept that is not the one")
	}
	if err := buildLibraries([]target{good}, false, ""); err != nil {
		t.Fatal(err)
	}
	if err := buildLibraries([]target{good}, true, ""); err != nil {
		t.Errorf("what was packed does not check: %v", err)
	}
	source, err := os.ReadFile("embed_beos_mips.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"//go:build beos && mips && cgo", "//go:embed lib/beos_mips.zst", `size: 7, sha256: "` + good.librarySHA256Hex} {
		if !strings.Contains(string(source), want) {
			t.Errorf("%q is not in\n%s", want, source)
		}
	}
	programs(t, map[string]string{"go": "exit 1"})
	gentest.CheckErrorMentions(t, "go fails", buildLibraries([]target{good}, false, ""), "go list")
}

// TestFromPackage holds that a package of npm is not opened unless it has the sum
// that is written down, whether it was fetched or named.
func TestFromPackage(t *testing.T) {
	forged := tgz(t, npmTarballLibraryPath, "library")
	wanted := []target{{os: "beos", arch: "mips", libraryFileName: "lib.so", librarySHA256Hex: sumOf("library")}}
	dir := gentest.WriteFolder(t, map[string]string{"forged.tgz": forged})
	t.Chdir(dir)
	gentest.CheckErrorMentions(t, "named", buildLibraries(wanted, false, "forged.tgz"), "SHA-256 is", npmSum)
	gentest.CheckErrorMentions(t, "named, and not there", buildLibraries(wanted, false, "gone.tgz"), "gone.tgz")
	programs(t, map[string]string{"npm": `[ "$5" = ` + npmPackage + ` ] && { printf forged >"$4/p.tgz"; echo p.tgz; }`})
	gentest.CheckErrorMentions(t, "fetched", buildLibraries(wanted, false, ""), "SHA-256 is", npmSum)
	programs(t, map[string]string{"npm": "exit 1"})
	gentest.CheckErrorMentions(t, "npm fails", buildLibraries(wanted, false, ""), "npm pack")
	if _, err := os.Stat("lib"); err == nil {
		t.Error("a library was kept")
	}
}
