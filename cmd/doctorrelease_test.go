package cmd

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/shieldcli/shield/internal/genuine"
)

func TestDoctorRelease(t *testing.T) {
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := public.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	dir, key := t.TempDir(), filepath.Join(t.TempDir(), "key.pub")
	put := func(path string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sign := func(name string, data []byte) {
		message := minisign.NewReader(bytes.NewReader(data))
		_, _ = io.Copy(io.Discard, message)
		put(filepath.Join(dir, name), data)
		put(filepath.Join(dir, name+genuine.SignatureSuffix), message.SignWithComments(private, genuine.TrustedComment("v1.2.3", name), ""))
	}
	put(key, text)
	sign("install.sh", []byte("script"))
	put(filepath.Join(dir, "a.deb"), []byte("deb"))
	sign(genuine.SumsFile, fmt.Appendf(nil, "%x  install.sh\n%x  a.deb\n%x  b.rpm\n", sha256.Sum256([]byte("script")), sha256.Sum256([]byte("deb")), sha256.Sum256([]byte("rpm"))))
	doctor := func(args ...string) (int, string) {
		w := newWorld(t)
		w.ShieldExecutablePath = key
		status, out, errs := run(t, w, "", append([]string{"doctor"}, args...)...)
		return status, out + errs
	}
	expect := func(status int, want string, args ...string) {
		t.Helper()
		if got, out := doctor(args...); got != status || !strings.Contains(out, want) {
			t.Errorf("%q: %d, %q; want %d, %q", args, got, out, status, want)
		}
	}
	expect(0, "2 files match the checksums of shield v1.2.3", "--release", dir, "--key", key)
	expect(0, "1 others are not in this folder", "--release", dir, "--key", key)
	expect(0, "install.sh: a file of shield v1.2.3", "--release", filepath.Join(dir, "install.sh"), "--key", key)
	expect(1, "do not install it", "--release", filepath.Join(dir, "a.deb"), "--key", key)
	if keys, err := genuine.OwnKeys(); err == nil && len(keys) == 0 {
		expect(1, "this program was built without a release key", "--release", dir)
	}
	expect(1, "--key is used only with --release", "--key", key)
	expect(1, "not a minisign public key", "--release", dir, "--key", filepath.Join(dir, "a.deb"))
	expect(1, "no such file", "--release", dir+"x", "--key", key)
	put(filepath.Join(dir, "a.deb"), []byte("bad"))
	expect(1, "bad   a.deb: its SHA-256 is", "--release", dir, "--key", key)
	put(filepath.Join(dir, genuine.SumsFile), []byte("x"))
	expect(1, "do not install from this folder", "--release", dir, "--key", key)
}

// TestDowngrade holds that a release is called older only if it is, and by its numbers.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		release, installed string
		warns              bool
	}{
		{"v1.2.3", "v1.2.4", true},
		{"v1.9.0", "v1.10.0", true},
		{"v0.9.9", "v1.0.0", true},
		{"v1.2.3", "v1.2.4-0.20261129220000-0123456789ab", true}, // a build from source after v1.2.3
		{"v1.2.3-rc1", "v1.2.3", true},
		{"v1.2.3-rc1", "v1.2.3-rc2", true},
		{"v1.2.3-0.20261129220000-0123456789ab", "v1.2.3-0.20261130220000-0123456789ab", true},
		{"v1.2.3", "v1.2.3-rc1", false},
		{"v1.2.3", "v1.2.3+dirty", false},
		{"v1.2.3", "v1.2.3", false},
		{"v1.10.0", "v1.9.0", false},
		{"v1.0.0", "v0.9.9", false},
		{"v1.2.3", "(devel)", false},
		{"", "v1.2.3", false},
	} {
		if got := downgradeWarning(c.release, c.installed); (got != "") != c.warns || c.warns && !strings.Contains(got, c.release+" is older than this program, "+c.installed) {
			t.Errorf("%s over %s: %q", c.release, c.installed, got)
		}
	}
}
