package modelstore

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// errUnpackedModelTooBig is the error for an archive bomb, or an archive too large for a classifier.
var errUnpackedModelTooBig = fmt.Errorf("the archive unpacks to more than %d bytes; pull an archive of the model alone", maxModelBytes)

// unpackArchive copies the files of a model from an archive: zip, or tar that is uncompressed or
// compressed with gzip or zstd. It detects the format from the content. The model can be in a
// folder of the archive.
func unpackArchive(ctx context.Context, f *os.File, to string) error {
	// The folder of the model in the archive is known only when all names have been read.
	var names []string
	if err := walkArchive(ctx, f, func(name string, _ io.Reader) error {
		names = append(names, name)
		return nil
	}); err != nil {
		return err
	}
	top, err := modelFolder(names)
	if err != nil {
		return err
	}
	taken := map[string]string{}
	return walkArchive(ctx, f, func(name string, r io.Reader) error {
		inside, ok := strings.CutPrefix(name, top)
		k, isKnown := findModelFileSpec(inside)
		if !ok || !isKnown {
			return nil
		}
		return copyModelFile(ctx, taken, k, r, to)
	})
}

// modelFolder returns the model's folder in an archive, with a slash at its end, or "" for the top
// folder. It is the folder with the config.json that is least deep; two at the same depth are an
// error.
func modelFolder(names []string) (string, error) {
	best, found, several := "", false, false
	for _, name := range names {
		if path.Base(name) != "config.json" {
			continue
		}
		dir := strings.TrimSuffix(name, "config.json")
		switch depth, least := strings.Count(dir, "/"), strings.Count(best, "/"); {
		case !found || depth < least:
			best, found, several = dir, true, false
		case depth == least:
			several = true
		}
	}
	switch {
	case !found:
		return "", fmt.Errorf("the archive has no config.json; a model needs the files %q", requiredFiles)
	case several:
		return "", errors.New("the archive has more than one model; pull an archive of a single one")
	}
	return best, nil
}

// walkArchive visits the regular files of an archive. An entry that is neither a regular file nor a folder, has
// an unsafe name, or has the same name as another entry (in any case, unless both are folders) makes the whole
// archive invalid, even if the entry is not part of a model.
func walkArchive(ctx context.Context, f *os.File, visit fileVisitor) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var magic [4]byte
	n, err := io.ReadFull(f, magic[:])
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	e := &archiveEntryWalker{seenNames: map[string]bool{}, visit: visit}
	in := contextReader{ctx, f}
	switch is := func(s string) bool { return bytes.HasPrefix(magic[:n], []byte(s)) }; {
	case is("PK"):
		return e.walkZip(ctx, f)
	case is("\x1f\x8b"):
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		return e.walkTar(z)
	case is("\x28\xb5\x2f\xfd"):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return err
		}
		defer z.Close()
		return e.walkTar(z)
	default:
		return e.walkTar(in)
	}
}

// archiveEntryWalker checks the entries of one archive.
type archiveEntryWalker struct {
	seenNames  map[string]bool // names in lower case; false for folders
	totalBytes int64           // bytes of all regular files
	visit      fileVisitor
}

// checkEntry checks an entry and reports whether it is to be visited.
func (e *archiveEntryWalker) checkEntry(name string, mode fs.FileMode, size int64) (string, bool, error) {
	plain, err := cleanEntryPath(name)
	if err != nil {
		return "", false, err
	}
	switch {
	case mode.IsDir():
	case !mode.IsRegular():
		return "", false, fmt.Errorf("entry %.80q is neither a plain file nor a folder; remove it from the archive", name)
	case size < 0 || size > maxModelBytes-e.totalBytes:
		return "", false, errUnpackedModelTooBig
	default:
		e.totalBytes += size
	}
	// Two names that differ in case are one file on some systems.
	folded := strings.ToLower(plain)
	if isFile, seen := e.seenNames[folded]; seen && (isFile || !mode.IsDir()) {
		return "", false, fmt.Errorf("the archive has the entry %.80q twice; remove one", name)
	}
	e.seenNames[folded] = !mode.IsDir()
	if len(e.seenNames) > maxArchiveEntries {
		return "", false, fmt.Errorf("the archive has more than %d entries; remove what is not part of the model", maxArchiveEntries)
	}
	return plain, !mode.IsDir(), nil
}

func (e *archiveEntryWalker) walkTar(r io.Reader) error {
	// Limit the bytes that are actually unpacked: the sizes in the headers can be false.
	unpacked := &limitedReader{r: r, bytesLeft: maxModelBytes + maxArchiveEntries*(64<<10)}
	t := tar.NewReader(unpacked)
	for first := true; ; first = false {
		h, err := t.Next()
		if err == io.EOF && !first {
			// The end of the compressed text has its checksum.
			_, err = io.Copy(io.Discard, unpacked)
			return err
		}
		if err != nil {
			return replaceUnspecificArchiveError(err)
		}
		mode := h.FileInfo().Mode()
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeDir:
		case tar.TypeXGlobalHeader: // a comment that git writes
			continue
		default:
			mode |= fs.ModeIrregular // a hard link has the mode of a plain file
		}
		name, wanted, err := e.checkEntry(h.Name, mode, h.Size)
		if err != nil {
			return err
		}
		if wanted {
			if err := e.visit(name, t); err != nil {
				return replaceUnspecificArchiveError(err)
			}
		}
	}
}

func (e *archiveEntryWalker) walkZip(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// The list of entries is read into memory, so its length is bounded.
	in := &limitedReaderAt{r: f, bytesLeft: 2 << 20}
	z, err := zip.NewReader(in, info.Size())
	if err != nil {
		return replaceUnspecificArchiveError(err)
	}
	in.bytesLeft = -1
	for _, file := range z.File {
		size := int64(min(file.UncompressedSize64, maxModelBytes+1))
		name, wanted, err := e.checkEntry(file.Name, file.Mode(), size)
		if err != nil {
			return err
		}
		if file.Flags&1 != 0 {
			return fmt.Errorf("entry %.80q of the archive is encrypted; pull an archive without a password", file.Name)
		}
		if !wanted {
			continue
		}
		if err := e.visitZipFile(ctx, name, file); err != nil {
			return err
		}
	}
	return nil
}

// visitZipFile visits a file of a zip archive. The zip library returns an error if the content does not have the
// size in the file's header, and at its end verifies the file's checksum.
func (e *archiveEntryWalker) visitZipFile(ctx context.Context, name string, file *zip.File) error {
	r, err := file.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", name, replaceUnspecificArchiveError(err))
	}
	defer r.Close()
	return replaceUnspecificArchiveError(e.visit(name, contextReader{ctx, r}))
}

// replaceUnspecificArchiveError replaces the unspecific error of an archive reader by one that says that the archive
// is incomplete.
func replaceUnspecificArchiveError(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrHeader) || errors.Is(err, zip.ErrFormat) {
		return errors.New("the file is not a complete archive; pull a folder, or a tar (plain, gzip or zstd) or zip archive")
	}
	return err
}

// A limitedReader returns an error after more than bytesLeft bytes were read.
type limitedReader struct {
	r         io.Reader
	bytesLeft int64
}

func (m *limitedReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if m.bytesLeft -= int64(n); m.bytesLeft < 0 {
		return 0, errUnpackedModelTooBig
	}
	return n, err
}

// A limitedReaderAt returns an error after more than bytesLeft bytes were read; with a negative
// bytesLeft there is no limit.
type limitedReaderAt struct {
	r         io.ReaderAt
	bytesLeft int64
}

func (m *limitedReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if m.bytesLeft >= 0 {
		if m.bytesLeft -= int64(len(p)); m.bytesLeft < 0 {
			m.bytesLeft = 0
			return 0, errors.New("the archive's list of entries is too long; remove what is not part of the model")
		}
	}
	return m.r.ReadAt(p, at)
}
