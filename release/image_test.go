package main

import (
	"archive/tar"
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestLayer holds what of Debian's packages is in an image: folders once, links,
// owners and modes, no manuals, and the certificates as one text.
func TestLayer(t *testing.T) {
	t.Parallel()
	r := sample(t)
	var in, out bytes.Buffer
	w := tar.NewWriter(&in)
	for _, h := range []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "./lib64/ld.so", Typeflag: tar.TypeSymlink, Linkname: "/lib/ld-2.36.so"},
		{Name: "./usr/share/doc/a/README", Typeflag: tar.TypeReg},
		{Name: "./usr/share/doc/a/copyright", Typeflag: tar.TypeReg, Mode: 0o644, Uname: "builder"},
		{Name: "./usr/share/ca-certificates/mozilla/a.crt", Typeflag: tar.TypeReg, Size: 2},
		{Name: "./usr/share/ca-certificates/mozilla/b.crt", Typeflag: tar.TypeReg, Size: 2},
		{Name: "./tmp/", Typeflag: tar.TypeDir, Mode: 0o700},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x\n")[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l := &layer{w: tar.NewWriter(&out), release: r, seen: map[string]bool{}}
	if err := l.unpack(&in); err != nil {
		t.Fatal(err)
	}
	if err := l.w.Close(); err != nil {
		t.Fatal(err)
	}
	var names []string
	modes := map[string]int64{}
	read := tar.NewReader(&out)
	for h, err := read.Next(); err == nil; h, err = read.Next() {
		names = append(names, strings.TrimSuffix(h.Name+" "+h.Linkname, " "))
		modes[h.Name] = h.Mode
		if h.Uname != "" || !h.ModTime.Equal(r.Source.Time) {
			t.Errorf("%s: owner %q, time %v", h.Name, h.Uname, h.ModTime)
		}
	}
	if want := []string{"tmp/", "lib64/ld.so /lib/ld-2.36.so", "usr/share/doc/a/copyright"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if modes["tmp/"] != 0o1777 || l.certificates.String() != "x\nx\n" {
		t.Errorf("tmp has mode %o; certificates: %q", modes["tmp/"], l.certificates.String())
	}
}

// TestImage holds that an image is the same bytes each time.
func TestImage(t *testing.T) {
	t.Parallel()
	r := sample(t)
	b := r.target(t, "linux_arm64")
	var archives [2][]byte
	for i := range archives {
		image, err := r.imageOf(b, []byte("one layer"), []byte("another"))
		if err != nil {
			t.Fatal(err)
		}
		if archives[i], err = r.ociArchive(image, t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	if len(archives[0]) == 0 || !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives differ")
	}
}
