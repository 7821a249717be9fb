package modelstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const manifestFile = "manifest.json"

// A Manifest records what was installed, when and from where.
type Manifest struct {
	Name      string    `json:"name"`
	Source    string    `json:"source"` // path or URL, without a query
	Installed time.Time `json:"installed"`
	Digest    string    `json:"digest"` // digest of all files, as [Digest] returns it
	Files     []File    `json:"files"`
}

// A File is one file of a model.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // size in bytes
	SHA256 string `json:"sha256"` // SHA-256, in hex
}

// Digest returns the digest of a model and the list of its files: all files in the folder except
// the manifest. The digest is "sha256:" and hex, over the names and digests of the files. An entry
// that is not a regular file is an error.
func Digest(ctx context.Context, model fs.FS) (string, []File, error) {
	entries, err := fs.ReadDir(model, ".")
	if err != nil {
		return "", nil, err
	}
	var files []File
	for _, e := range entries {
		if e.Name() == manifestFile {
			continue
		}
		if !e.Type().IsRegular() {
			return "", nil, fmt.Errorf("%.80q is not a regular file; remove folders and links from the model", e.Name())
		}
		file, err := hashFile(ctx, model, e.Name())
		if err != nil {
			return "", nil, err
		}
		files = append(files, file)
	}
	return digestFiles(files), files, nil
}

// digestFiles hashes lines as sha256sum prints them.
func digestFiles(files []File) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s  %s\n", f.SHA256, f.Name)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func hashFile(ctx context.Context, model fs.FS, name string) (File, error) {
	f, err := model.Open(name)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, contextReader{ctx, f})
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	return File{name, n, hex.EncodeToString(h.Sum(nil))}, nil
}

// writeManifest adds the manifest to a model's folder.
func writeManifest(dir string, m *Manifest) error {
	data, err := json.Marshal(m, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, manifestFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// readManifest reads the manifest of a model's folder.
func readManifest(dir string) (*Manifest, error) {
	data, err := readRegularTextFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing", manifestFile)
	}
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(bytes.TrimSpace(data), &m, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s cannot be read; install the model again with 'shield model pull --force'", manifestFile)
	}
	sorted := slices.IsSortedFunc(m.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if m.Digest != digestFiles(m.Files) || !sorted || m.Name != filepath.Base(dir) {
		return nil, fmt.Errorf("%s was changed: its digest does not match its list of files; install the model again with 'shield model pull --force'", manifestFile)
	}
	return &m, nil
}

// readRegularTextFile reads a plain file of at most maxTextFileBytes bytes.
func readRegularTextFile(name string) ([]byte, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxTextFileBytes {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes; install the model again with 'shield model pull --force'", name, maxTextFileBytes)
	}
	return os.ReadFile(name)
}

// DigestAndManifestDifferences compares an installed model with its manifest, or checks that the embedded model is
// unchanged. It returns the model's digest and one line for each difference. Anyone who can write
// to the folder can also rewrite the manifest: to detect that, compare the digest with a copy
// stored in another place.
func (s *Store) DigestAndManifestDifferences(ctx context.Context, name string) (string, []string, error) {
	if name == EmbeddedModelName {
		return s.verifyEmbeddedModel()
	}
	dir, err := s.Find(name)
	if err != nil {
		return "", nil, err
	}
	m, err := readManifest(dir)
	if err != nil {
		return "", []string{err.Error()}, nil
	}
	problems, err := compareWithManifest(ctx, dir, m)
	return m.Digest, problems, err
}

func (s *Store) verifyEmbeddedModel() (string, []string, error) {
	if s.embedded == nil {
		return "", nil, fmt.Errorf("model %q %w: this build of shield contains no model; run 'shield model pull --name NAME SOURCE'", EmbeddedModelName, ErrNotFound)
	}
	if err := s.embedded.CheckIntact(); err != nil {
		return s.embedded.Digest, []string{err.Error()}, nil
	}
	return s.embedded.Digest, nil, nil
}

// compareWithManifest returns how a folder differs from its manifest.
func compareWithManifest(ctx context.Context, dir string, m *Manifest) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var problems []string
	for _, want := range m.Files {
		f, err := openWithoutSymlinks(root, want.Name)
		if errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, want.Name+" is missing")
			continue
		}
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		h := sha256.New()
		n, err := io.Copy(h, io.LimitReader(contextReader{ctx, f}, want.Size+1))
		f.Close()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s: %v", want.Name, err))
		case n != want.Size || hex.EncodeToString(h.Sum(nil)) != want.SHA256:
			problems = append(problems, want.Name+" was changed")
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		known := slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == e.Name() })
		if !known && e.Name() != manifestFile {
			problems = append(problems, fmt.Sprintf("%.80q was added", e.Name()))
		}
	}
	return problems, nil
}
