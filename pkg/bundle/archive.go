package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
)

var (
	errNotBundle    = errors.New("the file is not a policy bundle (a tar.gz archive); make one with 'shield policy bundle build'")
	errTruncated    = errors.New("the file is truncated or damaged; download it again")
	errTooBig       = fmt.Errorf("the bundle unpacks to more than %d MiB; ask its publisher for a smaller one", maxUnpackedBytes>>20)
	errTrailingData = errors.New("the file has data after the end of the archive; download it again")
)

// unpackFiles returns the files of an archive. It returns an error for folders, links, paths with a folder,
// duplicate names, or data after the end of the tar archive.
func unpackFiles(archive []byte) (map[string][]byte, error) {
	if len(archive) > MaxArchiveBytes {
		return nil, fmt.Errorf("the file is larger than %d MiB; ask its publisher for a smaller one", MaxArchiveBytes>>20)
	}
	packed := bytes.NewReader(archive)
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, errNotBundle
	}
	z.Multistream(false)
	unpacked := &io.LimitedReader{R: z, N: maxUnpackedBytes}
	files, err := readEntries(tar.NewReader(unpacked))
	if err == nil {
		err = checkArchiveEnd(unpacked)
	}
	switch {
	case unpacked.N <= 0:
		return nil, errTooBig
	case err != nil:
		return nil, err
	case packed.Len() > 0:
		return nil, errTrailingData
	}
	return files, nil
}

// readEntries reads the files of a tar archive.
func readEntries(t *tar.Reader) (map[string][]byte, error) {
	files := map[string][]byte{}
	folded := map[string]bool{}
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF && len(files) > 0:
			return files, nil
		case err == io.EOF, errors.Is(err, tar.ErrHeader) && len(files) == 0:
			return nil, errNotBundle
		case err != nil:
			return nil, errTruncated
		case h.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%.80q is not a plain file; ask the publisher for a bundle without folders and links", h.Name)
		}
		if err := checkPortableFileName(h.Name); err != nil {
			return nil, err
		}
		// Two names that differ in case are one file on some systems.
		lower := strings.ToLower(h.Name)
		if folded[lower] {
			return nil, fmt.Errorf("the bundle contains the file %.80q twice, ignoring case; ask the publisher of the bundle to remove one", h.Name)
		}
		folded[lower] = true
		if len(files) == maxFiles+2 {
			return nil, fmt.Errorf("the bundle has more than %d files; ask its publisher for fewer", maxFiles)
		}
		limit := int64(maxUnpackedBytes)
		if h.Name == manifestFile || h.Name == signatureFile {
			limit = maxManifestBytes
		}
		if h.Size > limit {
			return nil, fmt.Errorf("the file %.80q is larger than %d KiB; ask its publisher for a smaller one", h.Name, limit>>10)
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return nil, errTruncated
		}
		files[h.Name] = data
	}
}

// checkArchiveEnd reads the rest after the last entry: zeros, and the gzip checksum.
func checkArchiveEnd(unpacked io.Reader) error {
	rest, err := io.ReadAll(unpacked)
	switch {
	case err != nil:
		return errTruncated
	case len(bytes.Trim(rest, "\x00")) > 0:
		return errTrailingData
	}
	return nil
}

// packFiles returns an archive: the manifest, its signature, then the other files sorted by name. It
// contains no time or user, so the same files give the same bytes.
func packFiles(files map[string][]byte) ([]byte, error) {
	names := sorted.Keys(files)
	first := func(name string) int {
		return slices.Index([]string{signatureFile, manifestFile}, name)
	}
	sorted.SortStableBy(names, func(a, b string) int { return first(b) - first(a) })
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, name := range names {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(files[name])), Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	// Check that the result can be unpacked.
	if _, err := unpackFiles(out.Bytes()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
