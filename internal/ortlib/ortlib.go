// Package ortlib embeds ONNX Runtime, the library that runs classifier models, and unpacks it into a
// file that can be loaded.
package ortlib

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/shieldcli/shield/internal/ortlib/x86"
	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/unpacked"
)

//go:generate go run ./gen -check

// Version is the version of ONNX Runtime that this program embeds.
const Version = "1.24.1"

// ErrNoLibrary is the error of a build without the library: built without cgo, or for an unsupported
// system.
var ErrNoLibrary = errors.New("this build contains no ONNX Runtime; name the library with --onnxruntime FILE")

// A library is one system's ONNX Runtime, compressed by zstd.
type library struct {
	name                   string // file name of the library
	size                   int64  // unpacked, in bytes
	sha256                 string // SHA-256 of the unpacked file, in hex
	hasAbsoluteX86Operands bool   // x86.ToAbsoluteOperands rewrote the library before it was compressed; unpacking undoes this
	compressedData         string
}

// Available reports whether this build carries a library.
func Available() bool { return embeddedLibrary != nil }

// Extract returns the path of the library in dir, shield's cache folder, and unpacks it if it is
// missing, as [unpacked.File.Extract] does.
func Extract(dir string) (string, error) {
	if embeddedLibrary == nil {
		return "", ErrNoLibrary
	}
	path, err := embeddedLibrary.file().Extract(dir)
	if err != nil {
		return "", fmt.Errorf("onnxruntime: %w", err)
	}
	return path, nil
}

func (l *library) file() *unpacked.File {
	return &unpacked.File{Name: l.name, UnpackedBytes: l.size, UnpackedSHA256: l.sha256, Unpack: func() ([]byte, error) {
		data, err := unpacked.Decompress(l.compressedData, l.size)
		if l.hasAbsoluteX86Operands {
			x86.ToRelativeOperands(data)
		}
		return data, err
	}}
}

// CheckLibraryPermissions returns an error for a library file that another user could change or replace, since it is
// executed in this process.
func CheckLibraryPermissions(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("onnxruntime: %s is not an absolute path; write it in full", path)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("onnxruntime: %s does not exist; correct the path", path)
	case err != nil:
		return fmt.Errorf("onnxruntime: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("onnxruntime: %s is not a file; name the library itself", path)
	}
	if err := owner.CheckOwnerAndDeniedModeBits(info, 0o022); err != nil {
		return fmt.Errorf("onnxruntime: %s: %w", path, err)
	}
	// In a folder that other users can write to, the file could be replaced.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("onnxruntime: %w", err)
	}
	for _, name := range []string{path, target} {
		if err := owner.CheckFolderOwnerAndMode(filepath.Dir(name)); err != nil {
			return fmt.Errorf("onnxruntime: %s: %w", path, err)
		}
	}
	return nil
}
