package owner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckFolder(t *testing.T) {
	t.Parallel()
	if !SupportsFileOwners {
		t.Skip("owners are not visible here")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{file: false, filepath.Join(dir, "none"): false, string(filepath.Separator): true} {
		if err := CheckFolderOwnerAndMode(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	for mode, want := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o775: false, 0o702: false, 0o777 | os.ModeSticky: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := CheckFolderOwnerAndMode(dir); (err == nil) != want {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if !SupportsFileOwners {
		t.Skip("owners are not visible here")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(mode os.FileMode, denied os.FileMode) error {
		t.Helper()
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		return CheckOwnerAndDeniedModeBits(info, denied)
	}
	for _, tt := range []struct {
		mode, denied os.FileMode
		want         bool
	}{{0o600, GroupOrOtherAccessBits, true}, {0o640, GroupOrOtherAccessBits, false}, {0o644, GroupOrOtherWriteBits, true}, {0o604, GroupOrOtherAccessBits, false}, {0o622, GroupOrOtherWriteBits, false}} {
		if err := check(tt.mode, tt.denied); (err == nil) != tt.want {
			t.Errorf("mode %v, denied %v: %v", tt.mode, tt.denied, err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root can give a file away
	}
	if err := os.Chown(file, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if err := check(0o600, GroupOrOtherAccessBits); err == nil {
		t.Error("the file of another user is accepted")
	}
}

// What is not a regular file is refused without waiting.
func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{file, link} {
		data, info, err := ReadRegularFile(path, 5)
		if err != nil || string(data) != "12345" || !info.Mode().IsRegular() {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	for path, want := range map[string]string{dir: "not a regular file", file: "larger than 4 bytes", filepath.Join(dir, "none"): "no such file", os.DevNull: "not a regular file"} {
		if data, _, err := ReadRegularFile(path, 4); err == nil || data != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %s", path, data, err, want)
		}
	}
}
