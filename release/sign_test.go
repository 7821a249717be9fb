package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// keyFile writes a secret key, encrypted if a password is given.
func keyFile(t *testing.T, key minisign.PrivateKey, password string) string {
	t.Helper()
	text, err := key.MarshalText()
	if password != "" {
		text, err = minisign.EncryptKey(password, key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file(t, "key", string(text))
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSigner holds which keys are taken, and that no release is signed with a key that programs do not carry.
func TestSigner(t *testing.T) {
	t.Parallel()
	public, key, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ key, password, want string }{
		"none":           {"", "", "-key: a release is signed"},
		"missing":        {"/missing", "", "no such file"},
		"plain":          {keyFile(t, key, ""), "", ""},
		"encrypted":      {keyFile(t, key, "secret"), file(t, "password", "secret\nnote\n"), ""},
		"no password":    {keyFile(t, key, "secret"), "", "needs a password"},
		"wrong password": {keyFile(t, key, "secret"), file(t, "password", "Secret"), "does not open it"},
		"a public key":   {file(t, "pub", public.String()), "", "not a secret key"},
	} {
		s, err := newSigner(tt.key, tt.password)
		if err == nil != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if err == nil && s.public != public.String() {
			t.Errorf("%s: %s", name, s.public)
		}
	}
	s := signerOf(key)
	source := Source{Dir: t.TempDir()}
	if err := s.committed(source); err == nil || !strings.Contains(err.Error(), "the owner adds it") {
		t.Errorf("no key in the repository: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(source.Dir, keysFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	add := func(name string, key minisign.PublicKey) {
		text, err := key.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(source.Dir, keysFolder, name), append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	other, _, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	add("a.pub", other)
	if s.committed(source) == nil {
		t.Error("another key in the repository is enough")
	}
	add("b.pub", public)
	if err := s.committed(source); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join("..", keysFolder)); err != nil {
		t.Errorf("%s is not where programs take keys from: %v", keysFolder, err)
	}
}

// TestExamples holds that a release has an owner, and that SECURITY.md names the address that release.yaml has.
func TestExamples(t *testing.T) {
	t.Parallel()
	full := Facts{Maintainer: "A <a@x.test>", Homepage: "https://x.test", Downloads: "https://x.test/d", Security: "s@x.test"}
	if err := full.examples(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Facts){
		func(f *Facts) { f.Maintainer = "A <a@x.example>" }, func(f *Facts) { f.Homepage = "https://EXAMPLE.com" },
		func(f *Facts) { f.Downloads = "" }, func(f *Facts) { f.Security = "security@x.example" },
	} {
		f := full
		change(&f)
		if f.examples() == nil {
			t.Errorf("taken: %+v", f)
		}
	}
	facts, err := readFacts(nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile("../SECURITY.md"); err != nil || !strings.Contains(string(text), facts.Security) {
		t.Errorf("SECURITY.md does not name %s, %v", facts.Security, err)
	}
}

// withMinisign builds minisign and returns PATH with it in front.
func withMinisign(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir+"/", "aead.dev/minisign/cmd/minisign")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

// TestInstallerVerifies holds that the installer takes no archive without the release's signature where minisign is.
func TestInstallerVerifies(t *testing.T) {
	t.Parallel()
	r := sample(t)
	r.complete = false
	run, home := installer(t, r)
	if _, err := exec.LookPath("minisign"); err != nil {
		if out, err := run("--from", r.dir, "--signed"); err == nil || !strings.Contains(out, "minisign is not installed") {
			t.Errorf("--signed without minisign: %v\n%s", err, out)
		}
	}
	path := withMinisign(t)
	install := func() (string, error) {
		cmd := exec.Command("sh", filepath.Join(r.dir, "install.sh"), "--from", r.dir, "--signed")
		cmd.Env = append(os.Environ(), "HOME="+home, path)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	signatures, err := filepath.Glob(filepath.Join(r.dir, "*.tar.gz.minisig"))
	if err != nil || len(signatures) != 2 {
		t.Fatal(signatures, err)
	}
	good := map[string][]byte{}
	for _, name := range signatures {
		if good[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	_, other, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string]func(name string) []byte{
		"missing": func(string) []byte { return nil },
		"changed": func(name string) []byte {
			text := string(good[name])
			return []byte(strings.Replace(text, "trusted comment: shield", "trusted comment: Shield", 1))
		},
		"by another": func(name string) []byte {
			data, err := os.ReadFile(strings.TrimSuffix(name, ".minisig"))
			if err != nil {
				t.Fatal(err)
			}
			return minisign.Sign(other, data)
		},
	} {
		for name := range good {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			if text := bad(name); text != nil {
				if err := os.WriteFile(name, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		if out, err := install(); err == nil || !strings.Contains(out, "nothing was installed") {
			t.Errorf("signature %s: %v\n%s", what, err, out)
		}
		for name, text := range good {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := installed(t, home); len(got) > 0 {
		t.Errorf("installed: %q", got)
	}
	if out, err := install(); err != nil || !strings.Contains(out, "checksum and signature verified") {
		t.Errorf("%v\n%s", err, out)
	}
}
