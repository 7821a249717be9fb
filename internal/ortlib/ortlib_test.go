package ortlib

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are those of Unix")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "lib.so")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(dir, "shared.so")
	if err := os.WriteFile(shared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o666); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	replaceable, link := filepath.Join(open, "lib.so"), filepath.Join(dir, "link.so")
	if err := os.WriteFile(replaceable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(replaceable, link); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "own.so")
	if err := os.Symlink(file, own); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "", own: "", replaceable: "gives other users access", link: "gives other users access", shared: "gives other users access", dir: "not a file", "lib.so": "not an absolute path", dir + "/none": "does not exist",
	} {
		if err := CheckLibraryPermissions(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestCarried(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	path, err := Extract(dir)
	if !Available() {
		if !errors.Is(err, ErrNoLibrary) {
			t.Errorf("%v, want ErrNone", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckLibraryPermissions(path); err != nil {
		t.Error(err)
	}
}

func BenchmarkExtract(b *testing.B) {
	if !Available() {
		b.Skip("no library is carried")
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if _, err := Extract(filepath.Join(b.TempDir(), "cache")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("later", func(b *testing.B) {
		dir := filepath.Join(b.TempDir(), "cache")
		for b.Loop() {
			if _, err := Extract(dir); err != nil {
				b.Fatal(err)
			}
		}
	})
}
