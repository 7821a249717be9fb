package owner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

var errNotRegular = errors.New("not a regular file")

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
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
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
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d bytes", limit)}
	}
	return data, info, nil
}
