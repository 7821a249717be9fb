package modelstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A fileVisitor receives a file of a source: its name there, with slashes, and its
// content. A nil error means that it was read to the end, or is not wanted.
type fileVisitor func(name string, r io.Reader) error

// unpackFolder copies the files of a model from a folder. Nothing else in the
// folder is read.
func unpackFolder(ctx context.Context, dir, to string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	taken := map[string]string{}
	for _, k := range modelFileSpecs {
		f, err := openWithoutSymlinks(root, k.sourcePath)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = copyModelFile(ctx, taken, k, f, to)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// openWithoutSymlinks opens a file that is not a link, below folders that are not links:
// what a link points to was not meant to be copied.
func openWithoutSymlinks(root *os.Root, name string) (*os.File, error) {
	for i := range name {
		if name[i] == '/' {
			if info, err := root.Lstat(name[:i]); err != nil {
				return nil, err
			} else if !info.IsDir() {
				return nil, fmt.Errorf("%s is not a folder; name a folder without symbolic links", name[:i])
			}
		}
	}
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; copy the folder with 'cp -rL', which follows links", name)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|openNonblocking, 0)
	if err != nil {
		return nil, err
	}
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		f.Close()
		return nil, fmt.Errorf("%s was replaced while it was read; try again", name)
	}
	return f, nil
}

// copyModelFile writes the file that spec describes into the folder targetDir. sourcePathByInstalledName maps
// the installed names of the files written before to their paths in the source; a second file with the same
// installed name is an error.
func copyModelFile(ctx context.Context, sourcePathByInstalledName map[string]string, spec modelFileSpec, fileReader io.Reader, targetDir string) error {
	if other, ok := sourcePathByInstalledName[spec.installedName]; ok {
		return fmt.Errorf("the folder has both %s and %s; remove one", other, spec.sourcePath)
	}
	sourcePathByInstalledName[spec.installedName] = spec.sourcePath
	f, err := os.OpenFile(filepath.Join(targetDir, spec.installedName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(contextReader{ctx, fileReader}, spec.maxBytes+1))
	if err == nil && n > spec.maxBytes {
		err = fmt.Errorf("the file is larger than %d bytes, the limit for a model; use a smaller model", spec.maxBytes)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", spec.sourcePath, err)
	}
	return nil
}

// A contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// cleanEntryPath returns the name of an archive's entry in its plain form, "." for
// the top folder, or an error if the entry would go elsewhere or means
// different files on different systems.
func cleanEntryPath(name string) (string, error) {
	plain := strings.TrimSuffix(name, "/")
	for strings.HasPrefix(plain, "./") {
		plain = strings.TrimLeft(plain[2:], "/")
	}
	switch {
	case len(name) > 512 || strings.Count(plain, "/") > 16:
		return "", fmt.Errorf("the archive entry %.80q has a name that is too long; rename it", name)
	case strings.HasPrefix(name, "/") || !fs.ValidPath(plain) || strings.ContainsAny(plain, `\:`):
		return "", fmt.Errorf("path traversal: the archive entry %.80q would be written outside the model's folder; do not use this archive", name)
	case strings.IndexFunc(plain, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0:
		return "", fmt.Errorf("the archive entry %.80q has control characters in its name; do not use this archive", name)
	}
	return plain, nil
}
