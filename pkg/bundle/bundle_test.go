package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/allocated"
)

var expires = time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC)

// pair returns a new pair of keys.
func pair(t testing.TB) (*PrivateKey, TrustedPublicKeys) {
	t.Helper()
	private, public, err := GenerateKey("")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParsePrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseKeys([]string{string(public)})
	if err != nil {
		t.Fatal(err)
	}
	return key, keys
}

// plain returns the files of a bundle.
func plain() map[string][]byte {
	return map[string][]byte{PolicyFile: []byte("extends: offline\n"), "README.md": []byte("ours\n")}
}

func unsigned(t testing.TB) []byte {
	t.Helper()
	archive, err := Build(Manifest{Name: "acme", Version: 12, Expires: expires}, plain())
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func signed(t testing.TB, key *PrivateKey) []byte {
	t.Helper()
	archive, _, err := Sign(unsigned(t), key)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func TestOpen(t *testing.T) {
	t.Parallel()
	key, keys := pair(t)
	_, others := pair(t)
	b, err := Open(signed(t, key), slices.Concat(others, keys))
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != "acme version 12" || !b.Expires.Equal(expires) || string(b.Policy()) != "extends: offline\n" || b.SigningKeyID != key.ID() || len(b.DigestByFileName) != 2 {
		t.Errorf("%+v", b)
	}
	if !bytes.Equal(signed(t, key), signed(t, key)) {
		t.Error("the same files and key make two archives")
	}
}

// edit returns an archive after a change of its files, packed as any tool would.
func edit(t testing.TB, archive []byte, change func(files map[string][]byte)) []byte {
	t.Helper()
	files, err := unpackFiles(archive)
	if err != nil {
		t.Fatal(err)
	}
	change(files)
	var list []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, entry{tar.Header{Name: name}, files[name]})
	}
	return gzipped(t, tarOf(t, list...))
}

type entry struct {
	tar.Header
	content []byte
}

func tarOf(t testing.TB, list ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range list {
		h := e.Header
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(e.content))
		}
		h.Mode = 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// with returns a signed archive with further entries.
func with(t testing.TB, archive []byte, more ...entry) []byte {
	t.Helper()
	files, err := unpackFiles(archive)
	if err != nil {
		t.Fatal(err)
	}
	var list []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, entry{tar.Header{Name: name}, files[name]})
	}
	return gzipped(t, tarOf(t, append(list, more...)...))
}

// TestHostileBundles holds that each attack is refused for what it is.
func TestHostileBundles(t *testing.T) {
	t.Parallel()
	key, keys := pair(t)
	other, _ := pair(t)
	good := signed(t, key)
	special := func(kind byte, name, to string) []byte {
		return with(t, good, entry{tar.Header{Name: name, Typeflag: kind, Linkname: to}, nil})
	}
	named := func(name string) []byte { return with(t, good, entry{tar.Header{Name: name}, []byte("x")}) }
	set := func(name, content string) []byte {
		return edit(t, good, func(files map[string][]byte) { files[name] = []byte(content) })
	}
	// resigned changes the manifest and signs it again, as anyone who has the key could.
	resigned := func(old, new string) []byte {
		return edit(t, good, func(files map[string][]byte) {
			m := []byte(strings.Replace(string(files[manifestFile]), old, new, 1))
			files[manifestFile], files[signatureFile] = m, key.sign(m, "x")
		})
	}
	many := make([]entry, maxFiles+3)
	for i := range many {
		many[i] = entry{tar.Header{Name: strings.Repeat("f", i+1)}, nil}
	}
	broken := bytes.Clone(good)
	broken[len(broken)-6] ^= 1 // in the checksum
	for name, tt := range map[string]struct {
		archive []byte
		want    string
	}{
		"empty":                 {nil, "not a policy bundle"},
		"garbage":               {[]byte("hello, hello, hello"), "not a policy bundle"},
		"compressed garbage":    {gzipped(t, bytes.Repeat([]byte("garbage "), 512)), "not a policy bundle"},
		"empty tar":             {gzipped(t, tarOf(t)), "not a policy bundle"},
		"cut":                   {good[:len(good)/2], "the file is truncated or damaged; download it again"},
		"without its last byte": {good[:len(good)-1], "the file is truncated or damaged; download it again"},
		"wrong checksum":        {broken, "the file is truncated or damaged; download it again"},
		"huge":                  {make([]byte, MaxArchiveBytes+1), "larger than 4 MiB"},
		"bomb":                  {gzipped(t, tarOf(t, entry{tar.Header{Name: "a"}, make([]byte, 64<<20)})), "larger than"},
		"bomb of many":          {gzipped(t, tarOf(t, entry{tar.Header{Name: "a"}, make([]byte, 9<<20)}, entry{tar.Header{Name: "b"}, make([]byte, 9<<20)})), "unpacks to more than 16 MiB"},
		"bomb after the end":    {gzipped(t, append(tarOf(t, entry{tar.Header{Name: "a"}, nil}), make([]byte, 64<<20)...)), "unpacks to more than 16 MiB"},
		"many files":            {gzipped(t, tarOf(t, many...)), "more than 64 files"},
		"appended to the tar":   {gzipped(t, append(tarOf(t, entry{tar.Header{Name: "a"}, nil}), "hidden"...)), "the file has data after the end of the archive; download it again"},
		"appended to the gzip":  {append(bytes.Clone(good), "hidden"...), "the file has data after the end of the archive; download it again"},
		"second gzip":           {append(bytes.Clone(good), good...), "the file has data after the end of the archive; download it again"},
		"parent":                {named("../policy.yaml"), "letters, digits, '_', '-' and '.', and no folder"},
		"absolute":              {named("/etc/passwd"), "letters, digits, '_', '-' and '.', and no folder"},
		"folder":                {named("a/policy.yaml"), "letters, digits, '_', '-' and '.', and no folder"},
		"dot":                   {named("./policy.yaml"), "letters, digits, '_', '-' and '.', and no folder"},
		"drive":                 {named(`c:\x`), "letters, digits, '_', '-' and '.', and no folder"},
		"hidden file":           {named(".policy"), "letters, digits, '_', '-' and '.', and no folder"},
		"control character":     {named("a\nb"), "letters, digits, '_', '-' and '.', and no folder"},
		"symbolic link":         {special(tar.TypeSymlink, "link", "/etc/passwd"), "is not a plain file"},
		"hard link":             {special(tar.TypeLink, "link", "policy.yaml"), "is not a plain file"},
		"device":                {special(tar.TypeChar, "null", ""), "is not a plain file"},
		"pipe":                  {special(tar.TypeFifo, "pipe", ""), "is not a plain file"},
		"a folder entry":        {special(tar.TypeDir, "d/", ""), "is not a plain file"},
		"twice":                 {named(PolicyFile), "twice"},
		"twice on some systems": {named("POLICY.yaml"), "twice"},
		"second manifest":       {named(manifestFile), "twice"},
		"not in the manifest":   {named("more.yaml"), "more.yaml, which is not in the manifest"},
		"changed":               {set(PolicyFile, "extends: permissive\n"), "not the file that was signed"},
		"no manifest":           {edit(t, good, func(f map[string][]byte) { delete(f, manifestFile) }), "manifest.json is missing"},
		"no signature":          {unsigned(t), "no signature"},
		"no policy":             {edit(t, good, func(f map[string][]byte) { delete(f, PolicyFile) }), ", which is not in the bundle; download it again"},
		"signature is garbage":  {set(signatureFile, "hello"), "not a minisign signature"},
		"a different key with that ID signed it; download the bundle again": {signed(t, other), ", which is not in policy.keys or --key; add the public key if you trust its owner"},
		"manifest changed": {edit(t, good, func(f map[string][]byte) {
			f[manifestFile] = bytes.Replace(f[manifestFile], []byte("12"), []byte("13"), 1)
		}), "is invalid"},
		"comment changed": {edit(t, good, func(f map[string][]byte) {
			f[signatureFile] = bytes.Replace(f[signatureFile], []byte("version 12"), []byte("version 13"), 1)
		}), "is invalid"},
		"manifest too large":   {set(manifestFile, strings.Repeat(" ", maxManifestBytes+1)), "larger than 64 KiB"},
		"signed: other format": {resigned(`"shield_policy_bundle": 1`, `"shield_policy_bundle": 2`), "reads format 1"},
		"signed: unknown key":  {resigned(`"name"`, `"roots": ["/"], "name"`), "roots"},
		"signed: key twice":    {resigned(`"version": 12`, `"version": 12, "version": 13`), "version"},
		"signed: no version":   {resigned(`"version": 12`, `"version": 0`), "; use 1 or more"},
		"signed: fraction":     {resigned(`"version": 12`, `"version": 12.5`), "version"},
		"signed: no expiry":    {resigned(`"2030-01-31T00:00:00Z"`, `"0001-01-01T00:00:00Z"`), "the expiry date is missing; build the bundle with --expires DATE"},
		"signed: name":         {resigned(`"acme"`, `"../acme"`), "letters, digits, '_', '-' and '.', and no folder"},
		"signed: not a bundle": {edit(t, good, func(f map[string][]byte) {
			f[manifestFile] = []byte("[]")
			f[signatureFile] = key.sign([]byte("[]"), "x")
		}), manifestFile},
		"signed: without policy": {resigned(`"policy.yaml"`, `"policy.yml"`), "policy.yaml is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := Open(tt.archive, keys)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, error %v, want %q", b, err, tt.want)
			}
		})
	}
	if _, err := Open(good, nil); err == nil {
		t.Error("a bundle is opened without any key")
	}
}

// TestUnpackedIsBounded holds that a bomb is not unpacked to its end.
func TestUnpackedIsBounded(t *testing.T) {
	bomb := gzipped(t, tarOf(t, entry{tar.Header{Name: "a"}, make([]byte, 15<<20)}, entry{tar.Header{Name: "b"}, make([]byte, 200<<20)}))
	if len(bomb) > MaxArchiveBytes {
		t.Fatal("the bomb is refused by its size")
	}
	if n := allocated.Bytes(func() {
		if _, err := unpackFiles(bomb); err == nil {
			t.Error("unpacked")
		}
	}); n > 100<<20 {
		t.Errorf("%d bytes are allocated", n)
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	private, _, err := GenerateKey("")
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := os.ReadFile("testdata/encrypted.key")
	if err != nil {
		t.Fatal(err)
	}
	good := Manifest{Name: "acme", Version: 1, Expires: expires}
	for name, tt := range map[string]struct {
		m     Manifest
		file  string
		want  string
		files map[string][]byte
	}{
		"name":       {m: Manifest{Name: "a/b", Version: 1, Expires: expires}, want: "letters, digits, '_', '-' and '.', and no folder"},
		"version":    {m: Manifest{Name: "a", Version: -1, Expires: expires}, want: "; use 1 or more"},
		"expiry":     {m: Manifest{Name: "a", Version: 1}, want: "expires"},
		"no policy":  {m: good, files: map[string][]byte{"a": nil}, want: "policy.yaml is missing"},
		"a manifest": {m: good, files: map[string][]byte{PolicyFile: nil, "Manifest.json": nil}, want: "written by shield"},
		"a path":     {m: good, files: map[string][]byte{PolicyFile: nil, "a/b": nil}, want: "letters, digits, '_', '-' and '.', and no folder"},
		"a key":      {m: good, files: map[string][]byte{PolicyFile: nil, "acme.key": private}, want: "acme.key is a private key"},
		"encrypted":  {m: good, files: map[string][]byte{PolicyFile: nil, "README": encrypted}, want: "README is a private key"},
		"large":      {m: good, files: map[string][]byte{PolicyFile: make([]byte, maxUnpackedBytes)}, want: "unpacks to more"},
	} {
		files := tt.files
		if files == nil {
			files = plain()
		}
		if _, err := Build(tt.m, files); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func TestUsable(t *testing.T) {
	t.Parallel()
	b := &Bundle{Manifest: Manifest{Name: "acme", Version: 3, Expires: expires}}
	for _, tt := range []struct {
		at      time.Time
		expired bool
		bad     bool
	}{
		{expires.Add(-time.Second), false, false},
		{expires, true, false},
		{expires.Add(time.Hour - 1), true, false},
		{expires.Add(time.Hour), true, true},
	} {
		expired, err := b.CheckExpiry(tt.at, time.Hour)
		if expired != tt.expired || (err != nil) != tt.bad {
			t.Errorf("at %v: expired %v, error %v", tt.at, expired, err)
		}
	}
	if _, err := b.CheckExpiry(expires, 0); err == nil {
		t.Error("without grace an expired bundle is used")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "RW", "untrusted comment: x", strings.Repeat("A", 56), "RWQ" + strings.Repeat("/", 200)} {
		if _, err := ParseKeys([]string{bad}); err == nil || !strings.Contains(err.Error(), "public key") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
	key, _ := pair(t)
	private, _, err := GenerateKey("")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(strings.SplitN(string(private), "\n", 2)[1])
	for _, text := range []string{string(private), line} {
		if _, err := ParseKeys([]string{text}); err == nil || !strings.Contains(err.Error(), "the value is a private key, which only the signer should have; use the public key: the line of NAME.pub that begins with RW") || strings.Contains(err.Error(), line[:8]) {
			t.Errorf("a private key as a public one: %v", err)
		}
	}
	if _, err := ParsePrivateKey(private[:40], ""); err == nil || strings.Contains(err.Error(), line[:20]) {
		t.Errorf("error %v", err)
	}
	if text := strings.Join([]string{key.String(), key.GoString()}, ""); strings.Count(text, key.ID()) != 2 || len(text) > 80 {
		t.Errorf("shown as %s", text)
	}
}

// TestEncryptedKey holds that keys and signatures are those of minisign: encrypted.key
// signs with minisign 0.11, and m.txt.minisig is what that wrote. The key's password is
// "open sesame"; its cost is less than that of a new one, which takes a gigabyte.
func TestEncryptedKey(t *testing.T) {
	t.Parallel()
	file := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	text := file("encrypted.key")
	if !IsPrivateKeyEncrypted(text) {
		t.Fatal("the key is not encrypted")
	}
	for _, bad := range []string{"", "open"} {
		if _, err := ParsePrivateKey(text, bad); err == nil || !strings.Contains(err.Error(), "password") {
			t.Errorf("password %q: error %v", bad, err)
		}
	}
	key, err := ParsePrivateKey(text, "open sesame")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseKeys([]string{string(file("encrypted.pub"))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(signed(t, key), keys); err != nil {
		t.Error(err)
	}
	if id, err := keys.verifiedSignerKeyID([]byte("hello\n"), file("m.txt.minisig")); err != nil || id != key.ID() {
		t.Errorf("minisign's signature: key %s, error %v", id, err)
	}
	if _, err := keys.verifiedSignerKeyID([]byte("hullo\n"), file("m.txt.minisig")); err == nil {
		t.Error("minisign's signature fits another text")
	}
}

// TestFetchExpired holds that a bundle which has expired is not used because a server
// hands it out, before its time is over and after it.
func TestFetchExpired(t *testing.T) {
	t.Parallel()
	key, keys := pair(t)
	good := signed(t, key)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(good) }))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	k := &StoredBundle{Dir: filepath.Join(t.TempDir(), "bundles"), SourcePathOrURL: server.URL + "/acme.tar.gz?token=hush", Keys: keys, ExpiryGracePeriod: time.Hour}
	archive, err := FetchArchive(t.Context(), k.SourcePathOrURL, roots)
	if err := errors.Join(err, k.Write(archive)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		at   time.Time
		good bool
	}{{expires.Add(-time.Second), true}, {expires.Add(k.ExpiryGracePeriod - time.Second), true}, {expires.Add(k.ExpiryGracePeriod), false}} {
		b, err := k.Load(tt.at)
		var late *ExpiredError
		if tt.good && (err != nil || b.Version != 12) || !tt.good && (!errors.As(err, &late) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("at %v: %v, error %v", tt.at, b, err)
		}
	}
}

// TestKept holds that what is kept is looked at again each time.
func TestKept(t *testing.T) {
	t.Parallel()
	key, keys := pair(t)
	_, others := pair(t)
	good := signed(t, key)
	now := expires.Add(-time.Hour)
	k := &StoredBundle{Dir: filepath.Join(t.TempDir(), "bundles"), SourcePathOrURL: "https://a.test/acme.tar.gz?token=hush", Keys: keys}
	refuses := func(why, want string, k *StoredBundle, now time.Time) {
		t.Helper()
		_, err := k.Load(now)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: error %v, want %q", why, err, want)
		}
	}
	refuses("nothing", "shield policy bundle update", k, now)
	if err := k.Write(good); err != nil {
		t.Fatal(err)
	}
	if b, err := k.Load(now); err != nil || b.Version != 12 {
		t.Errorf("%v, error %v", b, err)
	}
	revoked := *k
	revoked.Keys = others
	refuses("the key is no longer trusted", ", which is not in policy.keys or --key; add the public key if you trust its owner", &revoked, now)
	refuses("expired", "expired on 2030-01-31", k, expires)
	moved := *k
	moved.SourcePathOrURL = "https://b.test/acme.tar.gz"
	refuses("another source", "no bundle is installed yet; download it with 'shield policy bundle update'", &moved, now)
	if err := os.WriteFile(k.Path(), good[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	refuses("damaged", "cannot be used", k, now)
	if err := os.Remove(k.Path()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", k.Path()); err != nil {
		t.Skip(err)
	}
	refuses("a device", "regular", k, now)
}

// FuzzOpen holds that nothing but a signed bundle is opened, and that what is opened is
// what its manifest says.
func FuzzOpen(f *testing.F) {
	key, keys := pair(f)
	good := signed(f, key)
	f.Add(good)
	f.Add(unsigned(f))
	f.Add(good[:len(good)/2])
	f.Fuzz(func(t *testing.T, archive []byte) {
		b, err := Open(archive, keys)
		if err == nil && (b.Version != 12 || string(b.Policy()) != "extends: offline\n" || len(b.files) != 2) {
			t.Errorf("%+v is opened", b)
		}
	})
}
