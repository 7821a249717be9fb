//go:build unix

package owner

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestDirFS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "sub/b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := fstest.TestFS(DirFSOfRegularFiles(dir), "a", "sub/b"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"../x", "/etc/passwd", "", "a/../a"} {
		if _, err := fs.ReadFile(DirFSOfRegularFiles(dir), name); err == nil {
			t.Errorf("%q was opened", name)
		}
	}
}

// What would make an open wait, or do something, is refused at once, also
// behind a link.
func TestDirFSRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	for name, target := range map[string]string{"link": fifo, "zero": "/dev/zero", "tty": "/dev/tty"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"fifo", "socket", "link", "zero", "tty"} {
		if _, err := DirFSOfRegularFiles(dir).Open(name); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
