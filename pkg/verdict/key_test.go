//go:build unix

package verdict

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestLoadKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "shield")
	key, err := LoadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	if key == [KeySize]byte{} {
		t.Error("a key of zeros")
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, filepath.Join(dir, KeyFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if again, err := LoadKey(dir); err != nil || again != key {
		t.Errorf("the second time: another key, or %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

func TestLoadKeyRace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	keys := make([][KeySize]byte, 32)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = LoadKey(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] {
			t.Fatal("two keys")
		}
	}
}

// Where there are no hard links, a reader waits for the writer.
func TestLoadKeyWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	want, err := LoadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, KeyFile)
	if err := os.WriteFile(path, want[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(3 * keyRetryInterval)
		_ = os.WriteFile(path, want[:], 0o600)
	}()
	if got, err := LoadKey(dir); err != nil || got != want {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		do         func(dir, path string) error
	}{
		{"readable by the group", "gives other users access", func(_, path string) error { return os.Chmod(path, 0o640) }},
		{"readable by others", "chmod 0600", func(_, path string) error { return os.Chmod(path, 0o604) }},
		{"folder writable by others", "gives other users access", func(dir, _ string) error { return os.Chmod(dir, 0o777) }},
		{"folder writable by the group", "chmod 0700", func(dir, _ string) error { return os.Chmod(dir, 0o770) }},
		{"too short", "not 32 bytes", func(_, path string) error { return os.WriteFile(path, make([]byte, 31), 0o600) }},
		{"empty", "not 32 bytes", func(_, path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"too long", "not 32 bytes", func(_, path string) error { return os.WriteFile(path, make([]byte, 33), 0o600) }},
		{"symbolic link", "symbolic link", func(_, path string) error {
			if err := os.Rename(path, path+".real"); err != nil {
				return err
			}
			return os.Symlink(path+".real", path)
		}},
		{"dangling link", "symbolic link", func(_, path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(path+".gone", path)
		}},
		{"folder in its place", "the key is not a regular file; delete it, and shield creates a new one", func(_, path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		}},
		{"pipe in its place", "the key is not a regular file; delete it, and shield creates a new one", func(_, path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return syscall.Mkfifo(path, 0o600)
		}},
		{"file in the folder's place", "", func(dir, _ string) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			return os.WriteFile(dir, nil, 0o600)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			if _, err := LoadKey(dir); err != nil {
				t.Fatal(err)
			}
			if err := tt.do(dir, filepath.Join(dir, KeyFile)); err != nil {
				t.Fatal(err)
			}
			key, err := LoadKey(dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) || key != [KeySize]byte{} {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestLoadKeyOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := LoadKey(dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, KeyFile), dir} {
		if err := os.Chown(path, 65534, -1); err != nil {
			t.Skip(err)
		}
		if _, err := LoadKey(dir); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("%s given away: %v", path, err)
		}
		if err := os.Chown(path, 0, -1); err != nil {
			t.Fatal(err)
		}
	}
}
