//go:build !unix

package unpacked

import (
	"io"
	"os"
)

// mapOrReadFile returns the first size bytes of a file. On this system it reads them instead of mapping the file
// into memory.
func mapOrReadFile(f *os.File, size int64) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, err
}
