//go:build unix

package owner

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadFileThatWouldBlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "s")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	for _, path := range []string{fifo, socket, "/dev/tty", "/dev/zero"} {
		if _, _, err := ReadRegularFile(path, 10); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
