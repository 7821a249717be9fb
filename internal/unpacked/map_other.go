//go:build !unix

package unpacked

import (
	"io"
	"os"
)

// mapOrReadFile reads a file.
func mapOrReadFile(f *os.File, size int64) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, err
}
