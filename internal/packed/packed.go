// Package packed says what is in an archive without unpacking it: tar, also compressed by
// gzip, bzip2, zstd or zlib, and zip. Nothing is written, and all is bounded.
package packed

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Bounds of an archive. One beyond them is not read.
const (
	MaxMembers = 100_000
	MaxBytes   = 128 << 20 // that are unpacked to find the members
	MaxText    = 64 << 10  // of a member whose text is returned
	maxTexts   = 4 << 20   // of all of them
	maxName    = 4096
	maxList    = 12 << 20 // bytes of the directory of a zip archive
)

// Errors of [Members].
var (
	ErrFormat = errors.New("not an archive of a known format")
	ErrLimit  = errors.New("more than is read of an archive")
)

// A Member is a file, folder or link of an archive.
type Member struct {
	Name string // as the archive says; it may be absolute, or climb with ..
	Link string // what a link names; "" for what is none
	Hard bool   // the link names another member, or a path from where is unpacked
	Dir  bool
	Text string // what a file holds that was asked for
	Read bool   // Text is all of it
}

// Members returns what is in an archive of a size in bytes. want says of which members the text
// is returned; nil asks for none. The error is [ErrFormat], [ErrLimit], or that of a damaged archive;
// what was found before comes with it.
func Members(r io.ReaderAt, size int64, want func(name string) bool) ([]Member, error) {
	l := &list{want: want, bytes: MaxBytes}
	head := make([]byte, 512)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		err := l.zip(r, size)
		return l.members, err
	}
	from := io.Reader(io.NewSectionReader(r, 0, size))
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bufio.NewReader(from))
		if err != nil {
			return nil, err
		}
		from = l.bounded(z)
	case bytes.HasPrefix(head, []byte("BZh")):
		from = l.bounded(bzip2.NewReader(bufio.NewReader(from)))
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(32<<20), zstd.WithDecoderMaxWindow(32<<20))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		from = l.bounded(z)
	case len(head) < 512 || string(head[257:262]) != "ustar" && !oldTar(head):
		return nil, ErrFormat
	}
	err = l.tar(from)
	return l.members, err
}

// oldTar reports whether a block is the header of an archive from before the format had a mark.
func oldTar(head []byte) bool {
	_, err := tar.NewReader(bytes.NewReader(head)).Next()
	return err == nil && head[0] != 0
}

// A list collects members.
type list struct {
	want    func(string) bool
	members []Member
	bytes   int64 // that may still be unpacked
	texts   int64 // that were returned
}

// bounded returns a reader that ends with [ErrLimit].
func (l *list) bounded(r io.Reader) io.Reader { return &bounded{r, l} }

type bounded struct {
	r io.Reader
	l *list
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.l.bytes <= 0 {
		return 0, ErrLimit
	}
	n, err := b.r.Read(p)
	b.l.bytes -= int64(n)
	return n, err
}

// boundedAt is the same of an [io.ReaderAt].
type boundedAt struct {
	r    io.ReaderAt
	left int64
}

func (b *boundedAt) ReadAt(p []byte, off int64) (int, error) {
	if b.left <= 0 {
		return 0, ErrLimit
	}
	n, err := b.r.ReadAt(p, off)
	b.left -= int64(n)
	return n, err
}

func (l *list) add(m Member) error {
	if len(l.members) >= MaxMembers || len(m.Name) > maxName || len(m.Link) > maxName {
		return ErrLimit
	}
	l.members = append(l.members, m)
	return nil
}

// text reads a member that is wanted.
func (l *list) text(m *Member, size int64, r io.Reader) error {
	if l.want == nil || !l.want(m.Name) {
		return nil
	}
	if size > MaxText || l.texts+size > maxTexts {
		return nil // it is not Read
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxText+1))
	if err != nil || len(text) > MaxText {
		return err
	}
	l.texts += int64(len(text))
	m.Text, m.Read = string(text), true
	return nil
}

func (l *list) tar(from io.Reader) error {
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			if len(l.members) == 0 && !errors.Is(err, ErrLimit) {
				return ErrFormat // one file that is compressed
			}
			return err
		}
		m := Member{Name: h.Name, Dir: h.Typeflag == tar.TypeDir}
		switch h.Typeflag {
		case tar.TypeSymlink, tar.TypeLink:
			m.Link, m.Hard = h.Linkname, h.Typeflag == tar.TypeLink
		case tar.TypeReg:
			if err := l.text(&m, h.Size, r); err != nil {
				return err
			}
		case tar.TypeXGlobalHeader:
			continue
		}
		if err := l.add(m); err != nil {
			return err
		}
	}
}

func (l *list) zip(from io.ReaderAt, size int64) error {
	at := &boundedAt{from, maxList}
	r, err := zip.NewReader(at, size)
	if at.left <= 0 {
		return ErrLimit
	}
	at.left = MaxBytes
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	for _, f := range r.File {
		m := Member{Name: strings.ReplaceAll(f.Name, `\`, "/"), Dir: strings.HasSuffix(f.Name, "/")}
		link := f.Mode()&fs.ModeSymlink != 0
		if link || !m.Dir && l.want != nil && l.want(m.Name) {
			if err := l.zipped(&m, f, link); err != nil {
				return err
			}
		}
		if err := l.add(m); err != nil {
			return err
		}
	}
	return nil
}

// zipped reads a member of a zip archive: its text is also what a link names.
func (l *list) zipped(m *Member, f *zip.File, link bool) error {
	if f.UncompressedSize64 > MaxText {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	from := l.bounded(r)
	if !link {
		return l.text(m, int64(f.UncompressedSize64), from)
	}
	text, err := io.ReadAll(io.LimitReader(from, maxName+1))
	if m.Link = string(text); m.Link == "" {
		m.Link = "."
	}
	return err
}
