package packed

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// A part is a member of an archive that a test makes.
type part struct {
	name, link, text string
	kind             byte
}

func tarOf(t *testing.T, parts ...part) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, p := range parts {
		h := tar.Header{Name: p.name, Linkname: p.link, Typeflag: p.kind, Size: int64(len(p.text)), Mode: 0o644}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(p.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func members(data []byte) ([]Member, error) {
	return Members(bytes.NewReader(data), int64(len(data)), ReadOptions{WantsText: func(name string) bool { return strings.HasSuffix(name, ".envrc") }})
}

func TestMembers(t *testing.T) {
	t.Parallel()
	plain := tarOf(t, part{name: "a/.envrc", text: "x"}, part{name: "../b", text: "y"}, part{name: "/etc/c"}, part{name: "d/", kind: tar.TypeDir},
		part{name: "l", link: "/root", kind: tar.TypeSymlink}, part{name: "h", link: "l/k", kind: tar.TypeLink})
	want := []Member{{Name: "a/.envrc", Text: "x", TextComplete: true}, {Name: "../b"}, {Name: "/etc/c"}, {Name: "d/", IsDir: true}, {Name: "l", LinkTarget: "/root"}, {Name: "h", LinkTarget: "l/k", IsHardLink: true}}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"tar": plain, "tar.gz": gzipOf(t, plain), "tar.zst": z.EncodeAll(plain, nil)} {
		got, err := members(data)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"a/.envrc", `..\b`, "/etc/c", "d/", "l"} {
		h := zip.FileHeader{Name: name}
		if name == "l" {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		f, err := w.CreateHeader(&h)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			if _, err := f.Write([]byte("/root")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := members(b.Bytes())
	if diff := cmp.Diff([]Member{{Name: "a/.envrc", Text: "/root", TextComplete: true}, {Name: "../b"}, {Name: "/etc/c"}, {Name: "d/", IsDir: true}, {Name: "l", LinkTarget: "/root"}}, got); diff != "" || err != nil {
		t.Errorf("zip: %v\n%s", err, diff)
	}
}

// TestBounds holds that what is too much, damaged or of another format is an error.
func TestBounds(t *testing.T) {
	t.Parallel()
	many := make([]part, MaxMembers+1)
	for i := range many {
		many[i].name = fmt.Sprint(i)
	}
	large := tarOf(t, part{name: "a", text: strings.Repeat("\x00", MaxDecompressedBytesPerAction)}, part{name: "b"})
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"members": {tarOf(t, many...), ErrArchiveTooLarge}, "bomb": {gzipOf(t, large), ErrArchiveTooLarge}, "text": {[]byte(strings.Repeat("text ", 200)), ErrFormat},
		"one file": {gzipOf(t, []byte("text")), ErrFormat}, "nothing": {nil, nil}, "xz": {append([]byte{0xfd, '7', 'z', 'X', 'Z', 0}, make([]byte, 600)...), ErrUnsupportedFormat}, "a first header that is skipped": {append(make([]byte, 512), tarOf(t, part{name: "a"})...), ErrFormat},
		"large, but seen without reading": {large, nil},
	} {
		if _, err := members(c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	random := strings.Repeat("0123456789abcdef", 40)
	for i := range random {
		random += fmt.Sprint(i * i * 7919)
	}
	cut := gzipOf(t, tarOf(t, part{name: "a"}, part{name: "b", text: random}))
	if got, err := members(cut[:len(cut)/2]); err == nil || len(got) == 0 {
		t.Errorf("a damaged archive: %v, %v", got, err)
	}
	long := tarOf(t, part{name: "a/.envrc", text: strings.Repeat("x", MaxMemberTextBytes+1)})
	if got, err := members(long); err != nil || len(got) != 1 || got[0].TextComplete {
		t.Errorf("a long text: %v", err)
	}
}

// TestBudget holds that all archives of an action share one, and that what a plain one holds is skipped.
func TestBudget(t *testing.T) {
	t.Parallel()
	data := tarOf(t, part{name: "a", text: strings.Repeat("\x00", MaxDecompressedBytesPerAction*2/3)}, part{name: "b"})
	used := int64(0)
	ask := func(data []byte) error {
		_, err := Members(bytes.NewReader(data), int64(len(data)), ReadOptions{DecompressedByteCounter: &used})
		return err
	}
	if err := ask(data); err != nil || used > 64<<10 {
		t.Errorf("plain: %v, %d", err, used)
	}
	packed := gzipOf(t, data)
	if err := ask(packed); err != nil {
		t.Error(err)
	}
	if err := ask(packed); !errors.Is(err, ErrArchiveTooLarge) {
		t.Errorf("a second one: %v", err)
	}
}

// TestBeyond holds what is found beyond zeros, and behind what is no archive.
func TestBeyond(t *testing.T) {
	t.Parallel()
	two := append(tarOf(t, part{name: "a"}), tarOf(t, part{name: "b"})...)
	for _, data := range [][]byte{two, gzipOf(t, two)} {
		for zeros, want := range map[bool]int{false: 1, true: 2} {
			if got, err := Members(bytes.NewReader(data), int64(len(data)), ReadOptions{ProgramIgnoresZeroBlocks: zeros}); err != nil || len(got) != want {
				t.Errorf("zeros %t: %v, %v", zeros, got, err)
			}
		}
	}
	var b bytes.Buffer
	b.WriteString("#!/bin/sh\n")
	w := zip.NewWriter(&b)
	if _, err := w.Create("a"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := members(b.Bytes()); err != nil || len(got) != 1 {
		t.Errorf("behind a program: %v, %v", got, err)
	}
	both := append(tarOf(t, part{name: "c"}), b.Bytes()...)
	if got, err := Members(bytes.NewReader(both), int64(len(both)), ReadOptions{ProgramReadsOnlyZip: true}); err != nil || len(got) != 1 || got[0].Name != "a" {
		t.Errorf("behind a tar archive: %v, %v", got, err)
	}
}

// TestTarInZip holds that a tar member is found wherever it is in a zip archive, and that a file too large to be
// searched is not read to its end. A program for zip reads no such member.
func TestTarInZip(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	hidden := tarOf(t, part{name: ".git/hooks/pre-commit", text: "id"})
	for name, c := range map[string]struct {
		start   string
		padding int
		hidden  []byte
		want    error
	}{
		"small":                  {"", 4096, hidden, ErrFormat},
		"after much":             {"", 5 * mib, hidden, ErrFormat},
		"after a program":        {"#!/bin/sh\n", 4096, hidden, ErrFormat},
		"after too much":         {"", MaxDecompressedBytesPerAction + mib, hidden, ErrArchiveTooLarge},
		"too large":              {"#!/bin/sh\n", MaxDecompressedBytesPerAction + mib, nil, ErrArchiveTooLarge},
		"honest":                 {"", 4096, nil, nil},
		"honest and large":       {"", MaxDecompressedBytesPerAction - mib, nil, nil},
		"honest after a program": {"#!/bin/sh\n", 4096, nil, nil},
	} {
		var b bytes.Buffer
		b.WriteString(c.start)
		w := zip.NewWriter(&b)
		w.SetOffset(int64(b.Len()))
		for _, text := range [][]byte{bytes.Repeat([]byte("x"), c.padding), c.hidden} {
			f, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(len(text)), Method: zip.Store})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			text = append(bytes.Repeat([]byte("x"), 512-b.Len()%512), text...)
			if _, err := f.Write(text); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := members(b.Bytes()); !errors.Is(err, c.want) || len(got) != 2 {
			t.Errorf("%s: %v, %d members", name, err, len(got))
		}
		if got, err := Members(bytes.NewReader(b.Bytes()), int64(b.Len()), ReadOptions{ProgramReadsOnlyZip: true}); err != nil || len(got) != 2 {
			t.Errorf("%s, read as zip: %v, %d members", name, err, len(got))
		}
	}
}
