// Package ortlib embeds ONNX Runtime, the library that runs classifier models, and unpacks it into a
// file that can be loaded.
package ortlib

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/shieldcli/shield/internal/owner"
)

//go:generate go run ./gen -check

// Version is the release of ONNX Runtime that is carried.
const Version = "1.24.1"

// ErrNone is the error of a build without the library: built without cgo, or for an unsupported
// system.
var ErrNone = errors.New("this build contains no ONNX Runtime; name the library with --onnxruntime FILE")

// A library is one system's ONNX Runtime, compressed by zstd.
type library struct {
	name   string // of the file
	size   int64  // unpacked, in bytes
	sum    string // SHA-256 of the unpacked file, in hex
	packed []byte
}

// Available reports whether this build carries a library.
func Available() bool { return carried != nil }

// Extract returns the path of the library in dir, shield's cache folder, and unpacks it if it is
// missing. Processes can call it at the same time.
//
// An unpacked file is hashed while it is written. Later it is recognised by
// name, size and owner, and by a folder that no other user can write to:
// hashing 35 MB at each start would take longer than loading the model, and
// anyone who can write to the folder as its owner can change shield itself.
func Extract(dir string) (string, error) {
	if carried == nil {
		return "", ErrNone
	}
	return carried.extract(dir)
}

func (l *library) extract(dir string) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("onnxruntime: unpack to %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	if info, err := os.Lstat(dir); err != nil {
		return fail(err)
	} else if !info.IsDir() {
		return fail(errors.New("the path is not a folder; remove the file"))
	}
	if err := owner.CheckFolder(dir); err != nil {
		return fail(err)
	}
	path := filepath.Join(dir, l.sum[:16]+"-"+l.name)
	if l.intact(path) {
		return path, nil
	}
	if err := l.unpack(dir, path); err != nil {
		return fail(err)
	}
	if !l.intact(path) {
		return fail(errors.New("the unpacked library was changed; delete the folder, and shield unpacks it again"))
	}
	return path, nil
}

// intact reports whether path is a regular file of the library's size that other users cannot change.
// It does not read the content.
func (l *library) intact(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == l.size && owner.Check(info, 0o022) == nil
}

func (l *library) unpack(dir, path string) error {
	tmp, err := os.CreateTemp(dir, "unpacking-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = l.write(tmp)
	if closing := tmp.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(tmp.Name(), 0o500); err != nil {
		return err
	}
	// Another process may have been first: both files are the same.
	if err := os.Rename(tmp.Name(), path); err != nil && !l.intact(path) {
		return err
	}
	return nil
}

const maxWindow = 1 << 27 // memory limit for decompressing, in bytes; the same as in gen

// write decompresses the library, and refuses it if its size or hash is wrong.
func (l *library) write(w io.Writer) error {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	data, err := z.DecodeAll(l.packed, make([]byte, 0, l.size))
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != l.sum {
		return errors.New("the ONNX Runtime in this program is damaged; install shield again")
	}
	for part := range slices.Chunk(data, 64<<10) {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Check returns an error for a library file that another user could change or replace, since it is
// executed in this process.
func Check(path string) error {
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
	if err := owner.Check(info, 0o022); err != nil {
		return fmt.Errorf("onnxruntime: %s: %w", path, err)
	}
	// In a folder that other users can write to, the file could be replaced.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("onnxruntime: %w", err)
	}
	for _, name := range []string{path, target} {
		if err := owner.CheckFolder(filepath.Dir(name)); err != nil {
			return fmt.Errorf("onnxruntime: %s: %w", path, err)
		}
	}
	return nil
}
