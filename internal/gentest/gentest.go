// Package gentest is what the tests of generators share. A generator runs in the
// folder of its package, whose folder gen holds it and its tests.
package gentest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Fresh runs a generator in a copy of its sources, and demands that it writes what
// its package holds: that go generate would change nothing. Sources, files or
// folders, and outputs are named from the folder of the package. The working folder
// changes, so a test that calls it is not parallel.
func Fresh(t testing.TB, generate func(), sources, outputs []string) {
	t.Helper()
	dir := Folder(t, nil)
	for _, name := range sources {
		copied(t, filepath.Join("..", name), filepath.Join(dir, name))
	}
	held := map[string][]byte{}
	for _, name := range outputs {
		held[name] = contents(t, filepath.Join("..", name))
	}
	t.Chdir(dir)
	generate()
	for name, old := range held {
		if !bytes.Equal(contents(t, name), old) {
			t.Errorf("%s is not what its sources say; run go generate", name)
		}
	}
}

// Folder puts files, texts by their names, into a new folder and returns it.
func Folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		save(t, filepath.Join(dir, name), []byte(text))
	}
	return dir
}

// Refused demands an error that holds all of names, or no error if the only name is
// "".
func Refused(t testing.TB, source string, err error, names ...string) {
	t.Helper()
	if len(names) == 1 && names[0] == "" {
		if err != nil {
			t.Errorf("%s: %v", source, err)
		}
		return
	}
	for _, name := range names {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, which is to name %q", source, err, name)
		}
	}
}

func copied(t testing.TB, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if !info.IsDir() {
		save(t, to, contents(t, from))
	} else if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func contents(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func save(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
