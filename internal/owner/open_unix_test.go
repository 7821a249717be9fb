//go:build unix

package owner

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpen holds that a file is opened, that a link in its place is not
// followed, and that a pipe without a writer does not make it wait.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]bool{file: true, fifo: true, link: false, filepath.Join(dir, "none"): false} {
		f, err := OpenNoFollow(path)
		if (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			f.Close()
		}
	}
}

// TestGive holds that a file gets the owner and group of another, and that
// nothing is changed where they are the same already.
func TestGive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	like, file := filepath.Join(dir, "like"), filepath.Join(dir, "file")
	for _, path := range []string{like, file} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	info := func(path string) fs.FileInfo {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := CopyOwner(f, info(like)); err != nil {
		t.Errorf("the same owner: %v", err)
	}
	if os.Geteuid() != 0 {
		if err := CopyOwner(f, info("/")); err == nil {
			t.Error("a file was given to root")
		}
		return
	}
	if err := os.Chown(like, 12345, 54321); err != nil {
		t.Fatal(err)
	}
	if err := CopyOwner(f, info(like)); err != nil {
		t.Fatal(err)
	}
	if st := info(file).Sys().(*syscall.Stat_t); st.Uid != 12345 || st.Gid != 54321 {
		t.Errorf("the file belongs to %d and %d", st.Uid, st.Gid)
	}
}
