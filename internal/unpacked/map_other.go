//go:build !unix

package unpacked

import (
	"io"
	"os"
)

// mapped reads a file.
func mapped(f *os.File, size int64) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, err
}
