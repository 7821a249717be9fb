package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// A File is a file of a package.
type File struct {
	Path string // with slashes
	Mode fs.FileMode
	Data []byte
}

// Files are the files of a package, in order. They have the commit's time and no owner, so the same
// content gives the same bytes.
type Files []File

// glob adds the files of the source that match pattern, in the folder to.
func (s Source) glob(files Files, pattern, to string) (Files, error) {
	names, err := filepath.Glob(filepath.Join(s.Dir, pattern))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, File{path.Join(to, filepath.Base(name)), 0o644, data})
	}
	return files, nil
}

// tar returns the files as a tar archive.
func (files Files) tar(when time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: f.Path, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Data)), ModTime: when, Format: tar.FormatPAX}
		if f.Mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, f.Path+"/"
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// tgz returns the files as a compressed tar archive.
func (files Files) tgz(when time.Time) ([]byte, error) {
	data, err := files.tar(when)
	if err != nil {
		return nil, err
	}
	return zipped(data)
}

// zipped returns gzip-compressed data.
func zipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// zip returns the files as a zip archive.
func (files Files) zip(when time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.Path, Method: zip.Deflate, Modified: when}
		h.SetMode(f.Mode)
		entry, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.Data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// lay writes the files to dir.
func (files Files) lay(dir string) error {
	for _, f := range files {
		path := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, f.Mode); err != nil {
			return err
		}
	}
	return nil
}
