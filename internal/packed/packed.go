// Package packed lists the content of an archive without unpacking it to disk: zip, and tar,
// optionally compressed by gzip, bzip2, zstd or zlib. All reads are limited.
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

// Limits of an archive.
const (
	MaxMembers = 100_000
	MaxBytes   = 24 << 20 // bytes decompressed to find the members, for all archives of an action
	MaxText    = 64 << 10 // bytes of a member whose text is returned
	maxTexts   = 4 << 20  // bytes of all returned texts
	maxName    = 4096
	maxList    = 12 << 20 // bytes of the directory of a zip archive
	bzip2Cost  = 6        // how many bytes one byte of bzip2 counts, since it is slow
)

// Errors of [Members].
var (
	ErrFormat = errors.New("the file is not an archive of a format that shield reads")
	ErrUnread = errors.New("of a format that is not read")
	ErrLimit  = errors.New("the archive is larger than shield reads")
)

// A Member is a file, folder or link of an archive.
type Member struct {
	Name string // as in the archive; can be absolute or contain ..
	Link string // the target of a link; "" for other members
	Hard bool   // a hard link: Link names another member, or a path relative to the target folder
	Dir  bool
	Text string // content of the file, if requested
	Read bool   // Text is complete
}

// A Query selects what is read of an archive.
type Query struct {
	Want  func(name string) bool // reports for which members the text is returned; nil for none
	Used  *int64                 // counts the decompressed bytes of all archives of an action; nil counts those of this archive
	Zip   bool                   // the reading program supports only zip, and accepts an archive anywhere in the file
	Zeros bool                   // the reading program ignores the end mark of zero blocks
}

// Members returns the members of an archive of size bytes. The error is [ErrFormat] (also if damaged
// before the first member), [ErrUnread], [ErrLimit], or that of later damage; members found before are
// returned too.
func Members(r io.ReaderAt, size int64, q Query) ([]Member, error) {
	if q.Used == nil {
		q.Used = new(int64)
	}
	l := &list{Query: q}
	if size == 0 {
		return nil, nil
	}
	err := l.read(r, size)
	if err != nil && len(l.members) == 0 && !errors.Is(err, ErrLimit) && !errors.Is(err, ErrUnread) {
		err = ErrFormat
	}
	return l.members, err
}

// unsupportedMagics are the first bytes of files in unsupported formats.
var unsupportedMagics = [...]string{"\xfd7zXZ\x00", "7z\xbc\xaf\x27\x1c", "LZIP", "\x1f\x9d", "\x89LZO\x00", "]\x00\x00", "Rar!\x1a\x07", "070701", "070702", "070707", "\xc7\x71", "\x71\xc7"}

func (l *list) read(r io.ReaderAt, size int64) error {
	head := make([]byte, 512)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	if !l.Zip && (bytes.HasPrefix(head, []byte("PK")) || bytes.HasPrefix(head, []byte("7z"))) && skipped(r, size) {
		return ErrFormat
	}
	if l.Zip || bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		return l.zip(r, size)
	}
	for _, mark := range unsupportedMagics {
		if strings.HasPrefix(string(head), mark) {
			return ErrUnread
		}
	}
	file := io.NewSectionReader(r, 0, size)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bufio.NewReader(file))
		if err != nil {
			return err
		}
		return l.tar(&bounded{z, l, 1})
	case bytes.HasPrefix(head, []byte("BZh")):
		return l.tar(&bounded{bzip2.NewReader(bufio.NewReader(file)), l, bzip2Cost})
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(32<<20), zstd.WithDecoderMaxWindow(32<<20))
		if err != nil {
			return err
		}
		defer z.Close()
		return l.tar(&bounded{z, l, 1})
	case len(head) == 512 && (string(head[257:262]) == "ustar" || oldTar(head)):
		return l.tar(&boundedReaderAt{bounded{file, l, 1}, file}) // what members hold is skipped
	}
	if l.zip(r, size) == nil {
		return nil // behind a program that unpacks it
	}
	return ErrFormat
}

// skipped reports whether a tar member starts after the beginning of a file that is no tar archive:
// GNU tar skips such a beginning.
func skipped(r io.ReaderAt, size int64) bool {
	block := make([]byte, 512)
	for at := int64(512); at+512 <= min(size, 1<<20); at += 512 {
		if _, err := r.ReadAt(block, at); err != nil {
			return true
		}
		if oldTar(block) {
			return true
		}
	}
	return false
}

// oldTar reports whether a block is a tar header of the old format without a magic number.
func oldTar(head []byte) bool {
	_, err := tar.NewReader(bytes.NewReader(head)).Next()
	return err == nil && head[0] != 0
}

// A list collects members.
type list struct {
	Query
	members []Member
	texts   int64 // that were returned
}

// bounded is a reader that returns [ErrLimit] above the limit.
type bounded struct {
	r    io.Reader
	l    *list
	cost int64 // of a byte
}

func (b *bounded) Read(p []byte) (int, error) {
	left := (MaxBytes - *b.l.Used) / b.cost
	if left <= 0 {
		return 0, ErrLimit
	}
	n, err := b.r.Read(p[:min(int64(len(p)), left)])
	*b.l.Used += int64(n) * b.cost
	return n, err
}

// boundedReaderAt is the same of a file.
type boundedReaderAt struct {
	bounded
	io.Seeker
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
	if l.Want == nil || !l.Want(m.Name) {
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
			if !l.Zeros {
				return nil
			}
			if from, err = afterZeroBlocks(from); from == nil {
				return err
			}
			r = tar.NewReader(from)
			continue
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
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

// afterZeroBlocks returns what comes after blocks of zeros; nil if nothing does.
func afterZeroBlocks(from io.Reader) (io.Reader, error) {
	block := make([]byte, 512)
	for {
		switch _, err := io.ReadFull(from, block); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, nil
		case err != nil:
			return nil, err
		case len(bytes.Trim(block, "\x00")) > 0:
			return io.MultiReader(bytes.NewReader(bytes.Clone(block)), from), nil
		}
	}
}

func (l *list) zip(from io.ReaderAt, size int64) error {
	at := &boundedAt{from, maxList}
	r, err := zip.NewReader(at, size)
	if at.left <= 0 {
		return ErrLimit
	}
	at.left = MaxBytes // of what is packed
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	for _, f := range r.File {
		m := Member{Name: strings.ReplaceAll(f.Name, `\`, "/"), Dir: strings.HasSuffix(f.Name, "/")}
		link := f.Mode()&fs.ModeSymlink != 0
		if link || !m.Dir && l.Want != nil && l.Want(m.Name) {
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
	from := &bounded{r, l, 1}
	if !link {
		return l.text(m, int64(f.UncompressedSize64), from)
	}
	text, err := io.ReadAll(io.LimitReader(from, maxName+1))
	if m.Link = string(text); m.Link == "" {
		m.Link = "."
	}
	return err
}
