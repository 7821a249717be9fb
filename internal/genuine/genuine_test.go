package genuine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

func pair(t *testing.T) (Keys, minisign.PrivateKey) {
	t.Helper()
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return Keys{public}, private
}

func sign(key minisign.PrivateKey, data []byte, comment string) []byte {
	r := minisign.NewReader(bytes.NewReader(data))
	_, _ = io.Copy(io.Discard, r)
	return r.SignWithComments(key, comment, "shield")
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

const archive = "shield_1.2.3_linux_amd64.tar.gz"

// released makes a release of one archive and one package, and returns the program.
func released(t *testing.T, dir string, key minisign.PrivateKey) (program string) {
	t.Helper()
	var z bytes.Buffer
	g := gzip.NewWriter(&z)
	w := tar.NewWriter(g)
	_ = w.WriteHeader(&tar.Header{Name: "shield_1.2.3_linux_amd64/shield", Mode: 0o755, Size: 7})
	_, _ = w.Write([]byte("program"))
	_, _ = w.Close(), g.Close()
	write(t, filepath.Join(dir, archive), z.Bytes())
	write(t, filepath.Join(dir, archive+SignatureSuffix), sign(key, z.Bytes(), TrustedComment("v1.2.3", archive)))
	write(t, filepath.Join(dir, "shield_1.2.3-1_amd64.deb"), []byte("deb"))
	sums := fmt.Appendf(nil, "%x  %s\n%x  %s\n", sha256.Sum256(z.Bytes()), archive, sha256.Sum256([]byte("deb")), "shield_1.2.3-1_amd64.deb")
	signSums(t, dir, key, sums)
	program = filepath.Join(t.TempDir(), "shield")
	write(t, program, []byte("program"))
	return program
}

func signSums(t *testing.T, dir string, key minisign.PrivateKey, sums []byte) {
	t.Helper()
	write(t, filepath.Join(dir, SumsFile), sums)
	write(t, filepath.Join(dir, SumsFile+SignatureSuffix), sign(key, sums, TrustedComment("v1.2.3", SumsFile)))
}

// TestCheck tampers with each part of a release.
func TestCheck(t *testing.T) {
	keys, key := pair(t)
	_, other := pair(t)
	for name, tt := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string // in the error, or in that of a file; "" for none
	}{
		"as released": {func(*testing.T, string) {}, ""},
		"a file is not downloaded": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "shield_1.2.3-1_amd64.deb")); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"archive changed": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, archive), []byte("x")) }, "its SHA-256 is"},
		"package changed": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "shield_1.2.3-1_amd64.deb"), []byte("debt"))
		}, "its SHA-256 is"},
		"file added": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "shield_1.2.4.deb"), []byte("x")) }, "the release's checksums do not list this file"},
		"checksum changed": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, SumsFile), fmt.Appendf(nil, "%x  %s\n", sha256.Sum256([]byte("x")), archive))
		}, "no release key has signed"},
		"checksums signed by another": {func(t *testing.T, dir string) {
			signSums(t, dir, other, fmt.Appendf(nil, "%x  %s\n", sha256.Sum256([]byte("x")), archive))
		}, "no release key has signed"},
		"checksums twice": {func(t *testing.T, dir string) {
			line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte("x")), archive)
			signSums(t, dir, key, []byte(line+line))
		}, "twice"},
		"a path as a name": {func(t *testing.T, dir string) {
			signSums(t, dir, key, fmt.Appendf(nil, "%x  ../%s\n", sha256.Sum256([]byte("x")), archive))
		}, "not a checksum and a name"},
		"signature of another file": {func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, archive))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, archive+SignatureSuffix), sign(key, b, TrustedComment("v1.2.3", "other.tar.gz")))
		}, "was made for another file"},
		"signature of another version": {func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, archive))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, archive+SignatureSuffix), sign(key, b, TrustedComment("v1.2.2", archive)))
		}, "is for version v1.2.2"},
		"signature by another": {func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, archive))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, archive+SignatureSuffix), sign(other, b, TrustedComment("v1.2.3", archive)))
		}, "no release key has signed"},
		"signature in the old form": {func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, archive))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, archive+SignatureSuffix), minisign.SignWithComments(key, b, TrustedComment("v1.2.3", archive), ""))
		}, "legacy minisign"},
		"no signature's text": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, SumsFile+SignatureSuffix), []byte("untrusted comment: x\n"))
		}, "is not a signature"},
		"an endless signature": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, SumsFile+SignatureSuffix), bytes.Repeat([]byte("x"), maxSignatureFileBytes+1))
		}, "is larger than"},
		"the archive is a link": {func(t *testing.T, dir string) {
			away := filepath.Join(t.TempDir(), "away")
			if err := os.Rename(filepath.Join(dir, archive), away); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(away, filepath.Join(dir, archive)); err != nil {
				t.Skip(err)
			}
		}, "is not a regular file"},
		"no checksums": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, SumsFile)); err != nil {
				t.Fatal(err)
			}
		}, SumsFile},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program := released(t, dir, key)
			tt.change(t, dir)
			r, err := VerifyRelease(dir, keys, program, "linux", "amd64")
			got := fmt.Sprint(err)
			if err == nil {
				got = ""
				for _, f := range r.Files {
					if f.Err != nil {
						got = f.Err.Error()
					}
				}
				if got == "" && (r.Version != "v1.2.3" || r.ProgramArchiveName != archive || len(r.Files)+r.MissingReleaseFileCount != 2) {
					t.Errorf("%+v", r)
				}
			}
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestCheckFile(t *testing.T) {
	keys, key := pair(t)
	dir := t.TempDir()
	program := released(t, dir, key)
	path := filepath.Join(dir, archive)
	if version, _, err := VerifyFileSignature(path, keys); err != nil || version != "v1.2.3" {
		t.Errorf("%s, %v", version, err)
	}
	if _, _, err := VerifyFileSignature(program, keys); err == nil {
		t.Error("a file without a signature passed")
	}
	renamed := filepath.Join(dir, "shield_1.2.4_linux_amd64.tar.gz")
	for _, suffix := range []string{"", SignatureSuffix} {
		if err := os.Rename(path+suffix, renamed+suffix); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := VerifyFileSignature(renamed, keys); err == nil {
		t.Error("a renamed file passed")
	}
	if r, err := VerifyRelease(dir, nil, "", "", ""); err == nil {
		t.Errorf("without keys: %+v", r)
	}
}

// TestOwnKeys holds that what lies in keys can be read.
func TestOwnKeys(t *testing.T) {
	if _, err := OwnKeys(); err != nil {
		t.Error(err)
	}
	if _, err := ParseKey([]byte("RWx")); err == nil {
		t.Error("parsed no key")
	}
}
