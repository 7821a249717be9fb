package unpacked

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// small is a file of a few bytes.
func small(t *testing.T) *File {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("library "), 1000)
	sum := sha256.Sum256(data)
	packed := string(z.EncodeAll(data, nil))
	return &File{Name: "lib.so", UnpackedBytes: int64(len(data)), UnpackedSHA256: hex.EncodeToString(sum[:]), Unpack: func() ([]byte, error) { return Decompress(packed, int64(len(data))) }}
}

func TestExtract(t *testing.T) {
	t.Parallel()
	l, dir := small(t), filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		wg.Go(func() {
			path, err := l.Extract(dir)
			if err != nil {
				t.Error(err)
			}
			paths[i] = path
		})
	}
	wg.Wait()
	for _, p := range paths {
		if p != paths[0] {
			t.Errorf("%s and %s", p, paths[0])
		}
	}
	if info, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v %v", info, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left, want 1", len(left))
	}
}

func TestExtractMends(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, path string) error{
		"truncated": func(_ *testing.T, path string) error {
			if err := os.Chmod(path, 0o700); err != nil {
				return err
			}
			return os.Truncate(path, 10)
		},
		"link": func(t *testing.T, path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink("/etc/passwd", path)
		},
		"open to others": func(_ *testing.T, path string) error { return os.Chmod(path, 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" {
				t.Skip("modes and links are those of Unix")
			}
			l, dir := small(t), t.TempDir()
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path, err := l.Extract(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(t, path); err != nil {
				t.Fatal(err)
			}
			again, err := l.Extract(dir)
			if err != nil || again != path || !l.isIntactAt(path) {
				t.Errorf("%s, %v; intact %v", again, err, l.isIntactAt(path))
			}
		})
	}
}

func TestExtractRefuses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes and links are those of Unix")
	}
	l := small(t)
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{open: "gives other users access", link: "a file has the path of this folder; remove the file"} {
		if _, err := l.Extract(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
	for name, packed := range map[string]string{"no zstd": "xx", "other bytes": other(t), "empty": ""} {
		bad, dir := *l, t.TempDir()
		bad.Unpack = func() ([]byte, error) { return Decompress(packed, bad.UnpackedBytes) }
		if _, err := bad.Extract(dir); err == nil {
			t.Errorf("%s: extracted", name)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
		if _, err := bad.Read(dir); err == nil {
			t.Errorf("%s: read", name)
		}
	}
}

// other is a well-formed archive of something else.
func other(t *testing.T) string {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(z.EncodeAll(bytes.Repeat([]byte("mischief"), 1000), nil))
}

// TestRead: content is read from the cache, and is the right one where the cache is hostile or cannot be used.
func TestRead(t *testing.T) {
	t.Parallel()
	l := small(t)
	want, err := l.unpackAndVerify()
	if err != nil {
		t.Fatal(err)
	}
	evil := bytes.Repeat([]byte("x"), int(l.UnpackedBytes))
	name := l.UnpackedSHA256[:16] + "-" + l.Name
	write := func(t *testing.T, path string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, evil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for test, spoil := range map[string]func(t *testing.T, dir string){
		"nothing": func(*testing.T, string) {},
		"other size": func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), evil[1:], 0o500); err != nil {
				t.Fatal(err)
			}
		},
		"other content":  func(t *testing.T, dir string) { write(t, filepath.Join(dir, name), 0o500) },
		"open to others": func(t *testing.T, dir string) { write(t, filepath.Join(dir, name), 0o666) },
		"link": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "evil"), 0o500)
			if err := os.Symlink("evil", filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		},
		"folder in its place": func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, name, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"folder open to others": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, name), 0o500)
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		},
		"folder without rights": func(t *testing.T, dir string) {
			if err := os.Chmod(dir, 0o500); err != nil {
				t.Fatal(err)
			}
		},
		"file for folder": func(t *testing.T, dir string) {
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			write(t, dir, 0o600)
		},
	} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" {
				t.Skip("modes and links are those of Unix")
			}
			dir := filepath.Join(t.TempDir(), "cache")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			spoil(t, dir)
			for range 2 {
				if got, err := l.Read(dir); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			}
		})
	}
	if got, err := l.Read(""); err != nil || !bytes.Equal(got, want) {
		t.Errorf("no folder: %d bytes, %v", len(got), err)
	}
}

// TestLoad: what took the place of a file that was checked is not mapped.
func TestLoad(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes and links are those of Unix")
	}
	l, dir := small(t), t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := l.Extract(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.mapUnpackedFile(path); err != nil {
		t.Error(err)
	}
	link, open, short := filepath.Join(dir, "link"), filepath.Join(dir, "open"), filepath.Join(dir, "short")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{open: l.UnpackedBytes, short: l.UnpackedBytes - 1} {
		if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(open, 0o622); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, open, short, dir} {
		if _, err := l.mapUnpackedFile(name); err == nil {
			t.Errorf("%s is mapped", filepath.Base(name))
		}
	}
}
