// Package genuine verifies the files of a shield release: that a release key signed the checksums, and
// that the files match them.
package genuine

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"aead.dev/minisign"
)

//go:embed keys
var keyFiles embed.FS

// Keys are minisign public keys. A signature of a release is valid if it matches any one of them.
type Keys []minisign.PublicKey

// OwnKeys returns the release keys embedded in this program.
func OwnKeys() (Keys, error) {
	names, err := fs.Glob(keyFiles, "keys/*.pub")
	if err != nil {
		return nil, err
	}
	var keys Keys
	for _, name := range names {
		text, err := keyFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		key, err := ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		keys = append(keys, key...)
	}
	return keys, nil
}

// ParseKey reads a public key as minisign writes it, with or without its comment.
func ParseKey(text []byte) (Keys, error) {
	var key minisign.PublicKey
	if err := key.UnmarshalText(bytes.TrimSpace(text)); err != nil {
		return nil, errors.New("the key is not a minisign public key")
	}
	return Keys{key}, nil
}

// SumsFile contains the checksums of all release files except the signatures.
const SumsFile = "SHA256SUMS"

// SignatureSuffix ends the names of signatures.
const SignatureSuffix = ".minisig"

// Bounds on what is read whole, in bytes.
const (
	maxSignatureFileBytes = 4 << 10
	maxChecksumFileBytes  = 1 << 20
	maxProgramBytes       = 1 << 30
)

// A FileVerification is the result of verifying one file of a release folder.
type FileVerification struct {
	Name string
	Err  error // nil: the file is unchanged
}

// A Release is the result of verifying a folder.
type Release struct {
	Version                 string // as signed, such as v1.2.3
	KeyID                   string // ID of the signing key, as minisign writes it
	Files                   []FileVerification
	MissingReleaseFileCount int    // number of release files that are not in the folder
	ProgramArchiveName      string // the archive that contains the program; "" if none does
}

// trustedCommentPattern matches the trusted comment of a signature, which names version and file. So a genuine
// file under another name, or in the folder of another release, is rejected.
var trustedCommentPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^shield (v\d+\.\d+\.\d+) (\S+)$`) })

// TrustedComment returns the trusted comment of the signature of a file.
func TrustedComment(version, name string) string { return "shield " + version + " " + name }

// checksumLinePattern matches a line of the checksums: names have no folder, and do not begin with a dot or a dash.
var checksumLinePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9_.+~-]*)$`) })

// VerifyRelease verifies a release in a folder: the signature of the checksums, every file, and single-file
// signatures that exist. A file that is not part of the release has an error in [Release.Files]. programPath is
// the path of the running program, which is compared with the program in the archive for goos and goarch; ""
// skips that. The error says why the checksums cannot be trusted, or why the folder, the program or an archive
// cannot be read.
func VerifyRelease(releaseFolder string, keys Keys, programPath, goos, goarch string) (*Release, error) {
	sums, err := readSmallFile(filepath.Join(releaseFolder, SumsFile), maxChecksumFileBytes)
	if err != nil {
		return nil, err
	}
	signature, err := readSmallFile(filepath.Join(releaseFolder, SumsFile+SignatureSuffix), maxSignatureFileBytes)
	if err != nil {
		return nil, err
	}
	r := &Release{}
	if r.Version, r.KeyID, err = verifySignature(bytes.NewReader(sums), SumsFile, signature, keys); err != nil {
		return nil, err
	}
	want := map[string]string{SumsFile: ""}
	var order []string
	for line := range strings.Lines(string(sums)) {
		m := checksumLinePattern().FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return nil, fmt.Errorf("%s: a line is not a checksum and a name: %.80q", SumsFile, line)
		}
		if _, twice := want[m[2]]; twice {
			return nil, fmt.Errorf("%s lists %s twice", SumsFile, m[2])
		}
		want[m[2]] = m[1]
		order = append(order, m[2])
	}
	for _, name := range order {
		err := r.checkFile(releaseFolder, name, want[name], keys)
		if errors.Is(err, fs.ErrNotExist) {
			r.MissingReleaseFileCount++
			continue
		}
		r.Files = append(r.Files, FileVerification{name, err})
	}
	entries, err := os.ReadDir(releaseFolder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, part := want[strings.TrimSuffix(e.Name(), SignatureSuffix)]; !part {
			r.Files = append(r.Files, FileVerification{e.Name(), errors.New("the release's checksums do not list this file")})
		}
	}
	if programPath != "" && r.isIntact() {
		r.ProgramArchiveName, err = r.findProgramArchive(releaseFolder, order, programPath, goos, goarch)
	}
	return r, err
}

func (r *Release) isIntact() bool {
	for _, f := range r.Files {
		if f.Err != nil {
			return false
		}
	}
	return true
}

// checkFile checks one file of the release.
func (r *Release) checkFile(dir, name, sum string, keys Keys) error {
	f, err := openRegular(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return fmt.Errorf("its SHA-256 is %s, and should be %s", got, sum)
	}
	signature, err := readSmallFile(filepath.Join(dir, name+SignatureSuffix), maxSignatureFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the checksums are signed
	}
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	version, _, err := verifySignature(f, name, signature, keys)
	if err == nil && version != r.Version {
		err = fmt.Errorf("the signature of the file is for version %s, but the signed checksums are for version %s", version, r.Version)
	}
	return err
}

// VerifyFileSignature verifies a single file with the signature next to it, and returns the version and the key
// ID.
func VerifyFileSignature(path string, keys Keys) (version, keyID string, err error) {
	signature, err := readSmallFile(path+SignatureSuffix, maxSignatureFileBytes)
	if err != nil {
		return "", "", err
	}
	f, err := openRegular(path)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	return verifySignature(f, filepath.Base(path), signature, keys)
}

// verifySignature checks the signature of a file, and that it was made for a file of this name.
func verifySignature(file io.Reader, name string, signature []byte, keys Keys) (version, keyID string, err error) {
	var s minisign.Signature
	if err := s.UnmarshalText(signature); err != nil {
		return "", "", fmt.Errorf("%s%s is not a signature of minisign", name, SignatureSuffix)
	}
	if s.Algorithm != minisign.HashEdDSA {
		return "", "", fmt.Errorf("%s%s is a legacy minisign signature, and releases never have one", name, SignatureSuffix)
	}
	message := minisign.NewReader(file)
	if _, err := io.Copy(io.Discard, message); err != nil {
		return "", "", err
	}
	id := fmt.Sprintf("%016X", s.KeyID)
	for _, key := range keys {
		if !message.Verify(key, signature) {
			continue
		}
		m := trustedCommentPattern().FindStringSubmatch(s.TrustedComment)
		if m == nil || m[2] != name {
			return "", "", fmt.Errorf("the signature of %s was made for another file: %.80q", name, s.TrustedComment)
		}
		return m[1], id, nil
	}
	return "", "", fmt.Errorf("no release key has signed this %s: the file or its signature was changed, or key %s is not shield's", name, id)
}

// findProgramArchive returns the archive whose program is the file at path.
func (r *Release) findProgramArchive(dir string, names []string, path, goos, goarch string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	own := sha256.New()
	if _, err := io.Copy(own, f); err != nil {
		return "", err
	}
	for _, name := range names {
		parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(name, ".tar.gz"), ".zip"), "_")
		if len(parts) < 4 || parts[2] != goos || parts[len(parts)-1] != goarch || !strings.HasSuffix(name, ".tar.gz") && !strings.HasSuffix(name, ".zip") {
			continue
		}
		sum, err := hashArchivedProgram(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if bytes.Equal(sum, own.Sum(nil)) {
			return name, nil
		}
	}
	return "", nil
}

// hashArchivedProgram returns the SHA-256 of the program in an archive whose checksum is right.
func hashArchivedProgram(path string) ([]byte, error) {
	h := sha256.New()
	if strings.HasSuffix(path, ".zip") {
		z, err := zip.OpenReader(path)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		for _, f := range z.File {
			if strings.HasSuffix(f.Name, "/shield.exe") {
				r, err := f.Open()
				if err != nil {
					return nil, err
				}
				defer r.Close()
				_, err = io.Copy(h, io.LimitReader(r, maxProgramBytes))
				return h.Sum(nil), err
			}
		}
		return nil, errors.New("the archive contains no shield program")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(io.LimitReader(z, maxProgramBytes)); ; {
		entry, err := r.Next()
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(entry.Name, "/shield") {
			_, err := io.Copy(h, r)
			return h.Sum(nil), err
		}
	}
}

// openRegular opens a regular file that is not a symbolic link.
func openRegular(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", filepath.Base(path))
	}
	return os.Open(path)
}

// readSmallFile returns the content of a regular file. A file of more than limit bytes is an error.
func readSmallFile(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", filepath.Base(path), limit)
	}
	return data, err
}
