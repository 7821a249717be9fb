// Package gentest contains helpers for the tests of code generators. A generator is in the folder gen
// of its package and runs in the package's folder.
package gentest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CheckUpToDate runs a generator in a copy of its sources, and fails the test if the output differs from the
// package's files, that is, if go generate would change something. sources (files or folders) and
// outputs are relative to the package. It changes the working folder, so the test must not be
// parallel.
func CheckUpToDate(t testing.TB, generate func(), sources, outputs []string) {
	t.Helper()
	dir := WriteFolder(t, nil)
	for _, name := range sources {
		copyFiles(t, filepath.Join("..", name), filepath.Join(dir, name))
	}
	held := map[string][]byte{}
	for _, name := range outputs {
		held[name] = readFile(t, filepath.Join("..", name))
	}
	t.Chdir(dir)
	generate()
	for name, old := range held {
		if !bytes.Equal(readFile(t, name), old) {
			t.Errorf("%s is not what its sources say; run go generate", name)
		}
	}
}

// WriteFolder writes files, given as texts by name, into a new folder and returns it.
func WriteFolder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), []byte(text))
	}
	return dir
}

// CheckErrorMentions fails the test unless err contains all substrings, or is nil if the only
// substring is "".
func CheckErrorMentions(t testing.TB, source string, err error, substrings ...string) {
	t.Helper()
	if len(substrings) == 1 && substrings[0] == "" {
		if err != nil {
			t.Errorf("%s: %v", source, err)
		}
		return
	}
	for _, name := range substrings {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, which is to name %q", source, err, name)
		}
	}
}

func copyFiles(t testing.TB, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if !info.IsDir() {
		writeFile(t, to, readFile(t, from))
	} else if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
