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
	MaxMembers                    = 100_000
	MaxDecompressedBytesPerAction = 24 << 20 // bytes decompressed or searched to find the members, for all archives of an action
	MaxMemberTextBytes            = 64 << 10 // bytes of a member whose text is returned
	maxTotalTextBytes             = 4 << 20  // bytes of all returned texts
	maxMemberNameBytes            = 4096
	maxZipDirectoryBytes          = 12 << 20 // bytes of the directory of a zip archive
	budgetBytesPerBzip2Byte       = 6        // how many bytes of MaxDecompressedBytesPerAction a decompressed byte of bzip2 uses up, since bzip2 is slow
)

// Errors of [Members].
var (
	ErrFormat            = errors.New("shield cannot read the format of the archive; use zip or tar")
	ErrUnsupportedFormat = errors.New("of a format that is not read")
	ErrArchiveTooLarge   = errors.New("the archive is too large for shield to read; use a smaller archive")
)

// A Member is a file, folder or link of an archive.
type Member struct {
	Name         string // as in the archive; can be absolute or contain ..
	LinkTarget   string // the target of a link; "" for other members
	IsHardLink   bool   // a hard link: LinkTarget is another member, or a path relative to the target folder
	IsDir        bool
	Text         string // content of the file, if requested
	TextComplete bool   // Text is the whole file; false if Text was not requested, or the file is too large
}

// A ReadOptions selects what is read from an archive.
type ReadOptions struct {
	WantsText                func(name string) bool // reports for which members the text is returned; nil for none
	DecompressedByteCounter  *int64                 // counts the decompressed bytes of all archives of an action; nil counts those of this archive
	ProgramReadsOnlyZip      bool                   // the reading program supports only zip, and accepts an archive anywhere in the file
	ProgramIgnoresZeroBlocks bool                   // the reading program ignores the end mark of zero blocks
}

// Members returns the members of an archive of size bytes. The error is [ErrFormat] (also if damaged
// before the first member), [ErrUnsupportedFormat], [ErrArchiveTooLarge], or that of later damage; members found before are
// returned too.
func Members(r io.ReaderAt, size int64, q ReadOptions) ([]Member, error) {
	if q.DecompressedByteCounter == nil {
		q.DecompressedByteCounter = new(int64)
	}
	l := &memberList{ReadOptions: q}
	if size == 0 {
		return nil, nil
	}
	err := l.readArchive(r, size)
	if err != nil && len(l.members) == 0 && !errors.Is(err, ErrArchiveTooLarge) && !errors.Is(err, ErrUnsupportedFormat) {
		err = ErrFormat
	}
	return l.members, err
}

// unsupportedMagics are the first bytes of files in unsupported formats.
var unsupportedMagics = [...]string{"\xfd7zXZ\x00", "7z\xbc\xaf\x27\x1c", "LZIP", "\x1f\x9d", "\x89LZO\x00", "]\x00\x00", "Rar!\x1a\x07", "070701", "070702", "070707", "\xc7\x71", "\x71\xc7"}

func (l *memberList) readArchive(r io.ReaderAt, size int64) error {
	head := make([]byte, 512)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	if l.ProgramReadsOnlyZip || bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		return l.readZip(r, size)
	}
	for _, mark := range unsupportedMagics {
		if strings.HasPrefix(string(head), mark) {
			return ErrUnsupportedFormat
		}
	}
	file := io.NewSectionReader(r, 0, size)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bufio.NewReader(file))
		if err != nil {
			return err
		}
		return l.readTar(&byteLimitedReader{z, l, 1})
	case bytes.HasPrefix(head, []byte("BZh")):
		return l.readTar(&byteLimitedReader{bzip2.NewReader(bufio.NewReader(file)), l, budgetBytesPerBzip2Byte})
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(32<<20), zstd.WithDecoderMaxWindow(32<<20))
		if err != nil {
			return err
		}
		defer z.Close()
		return l.readTar(&byteLimitedReader{z, l, 1})
	case len(head) == 512 && (string(head[257:262]) == "ustar" || isOldTarHeader(head)):
		return l.readTar(&byteLimitedSeeker{byteLimitedReader{file, l, 1}, file}) // what members hold is skipped
	}
	if err := l.readZip(r, size); err == nil || errors.Is(err, ErrArchiveTooLarge) {
		return err // a self-extracting zip archive, which begins with a program
	}
	return ErrFormat
}

// checkNoEmbeddedTar returns [ErrFormat] if a tar member starts after the beginning of a zip archive: GNU tar
// skips such a beginning. It returns [ErrArchiveTooLarge] if the file is too large to search.
func (l *memberList) checkNoEmbeddedTar(r io.ReaderAt, size int64) error {
	blocks := bufio.NewReaderSize(&byteLimitedReader{io.NewSectionReader(r, 0, size), l, 1}, 64<<10)
	block := make([]byte, 512)
	for {
		switch _, err := io.ReadFull(blocks, block); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		case isOldTarHeader(block):
			return ErrFormat
		}
	}
}

// isOldTarHeader reports whether a block is a tar header of the old format without a magic number.
func isOldTarHeader(head []byte) bool {
	if head[0] == 0 {
		return false
	}
	_, err := tar.NewReader(bytes.NewReader(head)).Next()
	return err == nil
}

// A memberList collects the members of an archive while the archive is read.
type memberList struct {
	ReadOptions
	members           []Member
	returnedTextBytes int64 // number of bytes of the member texts returned so far
}

// byteLimitedReader is a reader that returns [ErrArchiveTooLarge] above the limit.
type byteLimitedReader struct {
	r                       io.Reader
	members                 *memberList
	bytesChargedPerReadByte int64 // how much each byte read counts against the limit
}

func (b *byteLimitedReader) Read(p []byte) (int, error) {
	left := (MaxDecompressedBytesPerAction - *b.members.DecompressedByteCounter) / b.bytesChargedPerReadByte
	if left <= 0 {
		return 0, ErrArchiveTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), left)])
	*b.members.DecompressedByteCounter += int64(n) * b.bytesChargedPerReadByte
	return n, err
}

// byteLimitedSeeker is a reader that can seek, and that returns [ErrArchiveTooLarge] when more bytes are read
// than the limit allows.
type byteLimitedSeeker struct {
	byteLimitedReader
	io.Seeker
}

// byteLimitedReaderAt is an [io.ReaderAt] that returns [ErrArchiveTooLarge] when more bytes are read than the
// limit allows.
type byteLimitedReaderAt struct {
	r         io.ReaderAt
	bytesLeft int64
}

func (b *byteLimitedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if b.bytesLeft <= 0 {
		return 0, ErrArchiveTooLarge
	}
	n, err := b.r.ReadAt(p, off)
	b.bytesLeft -= int64(n)
	return n, err
}

func (l *memberList) addMember(m Member) error {
	if len(l.members) >= MaxMembers || len(m.Name) > maxMemberNameBytes || len(m.LinkTarget) > maxMemberNameBytes {
		return ErrArchiveTooLarge
	}
	l.members = append(l.members, m)
	return nil
}

// readText reads a member that is wanted.
func (l *memberList) readText(m *Member, size int64, r io.Reader) error {
	if l.WantsText == nil || !l.WantsText(m.Name) {
		return nil
	}
	if size > MaxMemberTextBytes || l.returnedTextBytes+size > maxTotalTextBytes {
		return nil // too large: the text of this member is not returned
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxMemberTextBytes+1))
	if err != nil || len(text) > MaxMemberTextBytes {
		return err
	}
	l.returnedTextBytes += int64(len(text))
	m.Text, m.TextComplete = string(text), true
	return nil
}

func (l *memberList) readTar(from io.Reader) error {
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			if !l.ProgramIgnoresZeroBlocks {
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
		m := Member{Name: h.Name, IsDir: h.Typeflag == tar.TypeDir}
		switch h.Typeflag {
		case tar.TypeSymlink, tar.TypeLink:
			m.LinkTarget, m.IsHardLink = h.Linkname, h.Typeflag == tar.TypeLink
		case tar.TypeReg:
			if err := l.readText(&m, h.Size, r); err != nil {
				return err
			}
		case tar.TypeXGlobalHeader:
			continue
		}
		if err := l.addMember(m); err != nil {
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

func (l *memberList) readZip(from io.ReaderAt, size int64) error {
	at := &byteLimitedReaderAt{from, maxZipDirectoryBytes}
	r, err := zip.NewReader(at, size)
	if at.bytesLeft <= 0 {
		return ErrArchiveTooLarge
	}
	at.bytesLeft = MaxDecompressedBytesPerAction // limit for reading the compressed members, now that the directory is read
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	for _, f := range r.File {
		m := Member{Name: strings.ReplaceAll(f.Name, `\`, "/"), IsDir: strings.HasSuffix(f.Name, "/")}
		link := f.Mode()&fs.ModeSymlink != 0
		if link || !m.IsDir && l.WantsText != nil && l.WantsText(m.Name) {
			if err := l.readZipMember(&m, f, link); err != nil {
				return err
			}
		}
		if err := l.addMember(m); err != nil {
			return err
		}
	}
	if l.ProgramReadsOnlyZip {
		return nil
	}
	return l.checkNoEmbeddedTar(from, size)
}

// readZipMember reads the content of a member of a zip archive: the text of a file, or the target
// of a symbolic link.
func (l *memberList) readZipMember(m *Member, f *zip.File, link bool) error {
	if f.UncompressedSize64 > MaxMemberTextBytes {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	from := &byteLimitedReader{r, l, 1}
	if !link {
		return l.readText(m, int64(f.UncompressedSize64), from)
	}
	text, err := io.ReadAll(io.LimitReader(from, maxMemberNameBytes+1))
	if m.LinkTarget = string(text); m.LinkTarget == "" {
		m.LinkTarget = "."
	}
	return err
}
