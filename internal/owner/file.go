package owner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

var errNotRegular = errors.New("the path is not a regular file; replace it with the file itself")

// ReadSecret reads a file of at most limit bytes that holds a secret and nothing
// else, without the white space around it. Only its owner may have access, and the
// owner must be who runs shield, or root.
func ReadSecret(path string, limit int64) (string, error) {
	b, info, err := ReadFile(path, limit)
	if err != nil {
		return "", err
	}
	if err := Check(info, OtherAccess); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// ReadFile reads a regular file, at the end of links too, of at most limit
// bytes, and says what was read, for [Check]. It refuses anything else at once:
// opening a FIFO would wait for its other side, and opening a device may do
// something.
func ReadFile(path string, limit int64) ([]byte, fs.FileInfo, error) {
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
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > limit {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("the file is larger than %d bytes; shorten it", limit)}
	}
	return data, info, nil
}
