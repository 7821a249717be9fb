// Package unpacked decompresses files that are embedded in the program into a cache folder, so that
// later starts need not decompress them again.
package unpacked

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/shieldcli/shield/internal/owner"
)

// errUnpackedFileChanged is the error for an unpacked file with another content.
var errUnpackedFileChanged = errors.New("the unpacked file was changed; delete the folder with the unpacked file, and shield unpacks the file again")

// A File is a file that is embedded in shield's program file and can be unpacked into a cache folder.
type File struct {
	Name           string                 // file name in the cache folder, after the first digits of UnpackedSHA256 and a hyphen
	UnpackedBytes  int64                  // in bytes
	UnpackedSHA256 string                 // SHA-256 of the content, in hex
	Unpack         func() ([]byte, error) // returns the content; it need not check size and sum
}

// Extract returns the path of the file in dir, a cache folder, and unpacks it if it is missing. Processes can
// call it at the same time.
//
// An unpacked file is hashed when it is written. Later, Extract only checks the file's name, size and owner, and
// that no other user can write to the file or the folder: hashing 35 MB at each start would take longer than
// loading the model. Every policy forbids agents to change the folder or to replace its parents by links or
// other folders. Any other process of the user could change shield itself.
func (f *File) Extract(dir string) (string, error) {
	fail := func(err error) (string, error) { return "", fmt.Errorf("unpack to %s: %w", dir, err) }
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	if info, err := os.Lstat(dir); err != nil {
		return fail(err)
	} else if !info.IsDir() {
		return fail(errors.New("a file has the path of this folder; remove the file"))
	}
	if err := owner.CheckFolderOwnerAndMode(dir); err != nil {
		return fail(err)
	}
	path := filepath.Join(dir, f.UnpackedSHA256[:16]+"-"+f.Name)
	if f.isIntactAt(path) {
		return path, nil
	}
	if err := f.write(dir, path); err != nil {
		return fail(err)
	}
	if !f.isIntactAt(path) {
		return fail(errUnpackedFileChanged)
	}
	return path, nil
}

// Read returns the file's content. On Unix, it maps the unpacked file in dir, the cache folder of
// [File.Extract], into memory outside the Go heap until the process ends; other systems read the file. If dir is
// "" or cannot be used, or the unpacked file has other content, Read decompresses the content into memory.
func (f *File) Read(dir string) ([]byte, error) {
	if dir != "" {
		if path, err := f.Extract(dir); err == nil {
			if data, err := f.mapUnpackedFile(path); err == nil {
				return data, nil
			}
		}
	}
	return f.unpackAndVerify()
}

// mapUnpackedFile maps an unpacked file, which is checked again and hashed: between the check of a path and its use another file
// can take its place, and programs of the same user can change it.
func (f *File) mapUnpackedFile(path string) ([]byte, error) {
	file, err := owner.OpenNoFollow(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !f.matchesSizeAndOwner(info) {
		return nil, errUnpackedFileChanged
	}
	data, err := mapOrReadFile(file, f.UnpackedBytes)
	if err == nil && !f.matchesSizeAndSHA256(data) {
		return nil, errUnpackedFileChanged
	}
	return data, err
}

// matchesSizeAndSHA256 reports whether data is the content of the file.
func (f *File) matchesSizeAndSHA256(data []byte) bool {
	sum := sha256.Sum256(data)
	return int64(len(data)) == f.UnpackedBytes && hex.EncodeToString(sum[:]) == f.UnpackedSHA256
}

// isIntactAt reports whether path is the unpacked file, without following a link.
func (f *File) isIntactAt(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && f.matchesSizeAndOwner(info)
}

// matchesSizeAndOwner reports whether info is of a regular file of the right size that other users cannot change. The content is
// not read.
func (f *File) matchesSizeAndOwner(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Size() == f.UnpackedBytes && owner.CheckOwnerAndDeniedModeBits(info, 0o022) == nil
}

func (f *File) write(dir, path string) error {
	data, err := f.unpackAndVerify()
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "unpacking-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	// The writes are small: Linux 6.18 maps a file later in blocks of the size of each write, and
	// counts a whole block as resident memory even if only a part of it is used.
	for part := range slices.Chunk(data, 64<<10) {
		if _, err = tmp.Write(part); err != nil {
			break
		}
	}
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
	if err := os.Rename(tmp.Name(), path); err != nil && !f.isIntactAt(path) {
		return err
	}
	debug.FreeOSMemory() // return the memory used for unpacking, which a long-running process would keep
	return nil
}

// unpackAndVerify unpacks the file, and refuses it if its size or sum is wrong.
func (f *File) unpackAndVerify() ([]byte, error) {
	data, err := f.Unpack()
	if err != nil {
		return nil, err
	}
	if !f.matchesSizeAndSHA256(data) {
		return nil, fmt.Errorf("the %s in this program is damaged; install shield again", f.Name)
	}
	return data, nil
}

const maxZstdWindowBytes = 1 << 27 // memory limit for decompressing, in bytes; zstd --long=27 compresses with it

// Decompress returns the content of a zstd archive, which is of about size bytes.
func Decompress(packed string, size int64) ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxZstdWindowBytes), zstd.WithDecoderMaxWindow(maxZstdWindowBytes))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	data, err := z.DecodeAll([]byte(packed), make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return data, nil
}
