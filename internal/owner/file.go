package owner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

var errNotRegular = errors.New("the path is not a regular file; put a regular file there")

// ReadSecret returns the secret in a file of at most limit bytes, without the white space around
// it. It returns an error if other users have access to the file, or if the file's owner is neither
// the user who runs shield nor root.
func ReadSecret(path string, limit int64) (string, error) {
	b, info, err := ReadRegularFile(path, limit)
	if err != nil {
		return "", err
	}
	if err := CheckOwnerAndDeniedModeBits(info, GroupOrOtherAccessBits); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// ReadRegularFile reads a regular file of at most maxBytes bytes, following symbolic links, and
// also returns its file information, for [CheckOwnerAndDeniedModeBits]. It rejects any other file
// type before it opens the file: opening a FIFO would block, and opening a device can have side
// effects.
func ReadRegularFile(path string, maxBytes int64) ([]byte, fs.FileInfo, error) {
	before, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblocking, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > maxBytes {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("the file is larger than %d bytes; shorten it", maxBytes)}
	}
	return data, info, nil
}
