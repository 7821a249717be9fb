package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// TestZip holds that a zip keeps what may be executed.
func TestZip(t *testing.T) {
	t.Parallel()
	files := Files{{"a", 0o755, []byte("program")}, {"b", 0o644, bytes.Repeat([]byte("b"), 5000)}}
	when := Source{}.Time
	one, err := files.zip(when)
	if err != nil {
		t.Fatal(err)
	}
	two, err := files.zip(when)
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("two zips differ, or %v", err)
	}
	r, err := zip.NewReader(bytes.NewReader(one), int64(len(one)))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range r.File {
		if f.Name != files[i].Path || f.Mode() != files[i].Mode || f.UncompressedSize64 != uint64(len(files[i].Data)) {
			t.Errorf("%s %v, %d bytes", f.Name, f.Mode(), f.UncompressedSize64)
		}
	}
}

// entry returns a file in a compressed archive.
func entry(t *testing.T, data, name string) []byte {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Name == name {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
}
