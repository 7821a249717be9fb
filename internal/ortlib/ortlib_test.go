package ortlib

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// small is a library of a few bytes.
func small(t *testing.T) *library {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("library "), 1000)
	sum := sha256.Sum256(data)
	return &library{name: "lib.so", size: int64(len(data)), sum: hex.EncodeToString(sum[:]), packed: z.EncodeAll(data, nil)}
}

func TestExtract(t *testing.T) {
	t.Parallel()
	l, dir := small(t), filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		wg.Go(func() {
			path, err := l.extract(dir)
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
			path, err := l.extract(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(t, path); err != nil {
				t.Fatal(err)
			}
			again, err := l.extract(dir)
			if err != nil || again != path || !l.intact(path) {
				t.Errorf("%s, %v; intact %v", again, err, l.intact(path))
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
	for dir, want := range map[string]string{open: "gives other users access", link: "the path is not a folder; remove the file"} {
		if _, err := l.extract(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
	for name, packed := range map[string][]byte{"no zstd": []byte("xx"), "other bytes": other(t), "empty": nil} {
		bad, dir := *l, t.TempDir()
		bad.packed = packed
		if _, err := bad.extract(dir); err == nil {
			t.Errorf("%s: extracted", name)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// other is a well-formed archive of something else.
func other(t *testing.T) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(bytes.Repeat([]byte("mischief"), 1000), nil)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are those of Unix")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "lib.so")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(dir, "shared.so")
	if err := os.WriteFile(shared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o666); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	replaceable, link := filepath.Join(open, "lib.so"), filepath.Join(dir, "link.so")
	if err := os.WriteFile(replaceable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(replaceable, link); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "own.so")
	if err := os.Symlink(file, own); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "", own: "", replaceable: "gives other users access", link: "gives other users access", shared: "gives other users access", dir: "not a file", "lib.so": "not an absolute path", dir + "/none": "does not exist",
	} {
		if err := Check(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestCarried(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	path, err := Extract(dir)
	if !Available() {
		if !errors.Is(err, ErrNone) {
			t.Errorf("%v, want ErrNone", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(path); err != nil {
		t.Error(err)
	}
}

func BenchmarkExtract(b *testing.B) {
	if !Available() {
		b.Skip("no library is carried")
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if _, err := Extract(filepath.Join(b.TempDir(), "cache")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("later", func(b *testing.B) {
		dir := filepath.Join(b.TempDir(), "cache")
		for b.Loop() {
			if _, err := Extract(dir); err != nil {
				b.Fatal(err)
			}
		}
	})
}
