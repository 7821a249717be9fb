package modelstore

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// tarOf returns a tar archive with entries in order; a header without a type is
// a plain file.
func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.Header
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 && h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode = 0o644
		}
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(e.content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, e.content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type entry struct {
	tar.Header
	content string
}

func file(name, content string) entry { return entry{tar.Header{Name: name}, content} }

// inOrder returns entries of files below a folder, in the order of their names.
func inOrder(below string, files map[string]string) []entry {
	var out []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, file(below+name, files[name]))
	}
	return out
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data) // a buffer does not fail
	_ = w.Close()
	return b.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.Name, Method: zip.Deflate}
		if e.content == "" {
			h.Method = zip.Store
		}
		if e.Mode != 0 {
			h.SetMode(os.FileMode(e.Mode))
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pull installs an archive as "tiny" in a new store.
func pull(t testing.TB, archive []byte) (*Store, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "tiny.archive")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(filepath.Join(dir, "models"), nil, clock)
	_, err := s.Install(t.Context(), path, InstallOptions{Name: "tiny"})
	return s, err
}

func TestArchives(t *testing.T) {
	t.Parallel()
	flat, below := inOrder("", plain()), append([]entry{{tar.Header{Name: "./m/", Typeflag: tar.TypeDir, Mode: 0o755}, ""}}, inOrder("./m/", plain())...)
	git := append([]entry{{tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}, ""}}, flat...)
	export := append(inOrder("m/onnx/", plain()), inOrder("m/", with(map[string]string{"model.onnx": "-"}))...)
	for name, archive := range map[string][]byte{
		"tar": tarOf(t, flat...), "tar below": tarOf(t, below...), "tar of git": tarOf(t, git...),
		"gzip": gzipped(tarOf(t, below...)), "zstd": zstded(t, tarOf(t, flat...)), "zip": zipOf(t, flat...), "zip below": zipOf(t, inOrder("a/b/", plain())...),
		"model in a folder of an export": tarOf(t, export...),
		"other files":                    tarOf(t, append(flat, file("model.safetensors", "left out"), file("a/b/c", "left out"))...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := pull(t, archive)
			if err != nil {
				t.Fatal(err)
			}
			if got := weights(t, s); got != "weights" {
				t.Errorf("weights %q", got)
			}
			entries, err := os.ReadDir(filepath.Join(s.dir, "tiny"))
			if err != nil || len(entries) != len(plain())+1 {
				t.Errorf("%v, error %v; want the model's files and the manifest", entries, err)
			}
			if _, problems, err := s.DigestAndManifestDifferences(t.Context(), "tiny"); problems != nil || err != nil {
				t.Errorf("%q, error %v", problems, err)
			}
		})
	}
}

// TestHostileArchives holds that each attack is refused for what it is, and
// that nothing of it stays, nor comes to be outside the store.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	good := inOrder("", plain())
	and := func(more ...entry) []byte { return tarOf(t, append(slices.Clone(good), more...)...) }
	special := func(kind byte, name, to string) []byte {
		return and(entry{tar.Header{Name: name, Typeflag: kind, Linkname: to}, ""})
	}
	many := slices.Clone(good)
	for i := range maxArchiveEntries {
		many = append(many, file(fmt.Sprintf("f%d", i), ""))
	}
	encrypted := zipOf(t, good...)
	for at := 0; ; { // the flags are in each entry of the list at the end
		i := bytes.Index(encrypted[at:], []byte("PK\x01\x02"))
		if i < 0 {
			break
		}
		at += i + 8
		encrypted[at] |= 1
	}
	liar := zipOf(t, good...)
	i := bytes.Index(liar, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(liar[i+24:], 3) // the first file is longer than that
	cut := gzipped(tarOf(t, good...))
	broken := slices.Clone(cut)
	broken[len(broken)-5] ^= 1 // in the checksum
	for name, tt := range map[string]struct {
		archive []byte
		want    string
	}{
		"empty":                             {nil, "not a complete archive"},
		"text":                              {[]byte("hello"), "not a complete archive"},
		"empty tar":                         {tarOf(t), "not a complete archive"},
		"cut":                               {cut[:len(cut)/2], "not a complete archive"},
		"wrong checksum":                    {broken, "checksum"},
		"parent":                            {and(file("../x", "x")), "outside"},
		"parent in the middle":              {and(file("a/../../x", "x")), "outside"},
		"parent of config":                  {and(file("m/../../config.json", "{}")), "outside"},
		"absolute":                          {and(file("/tmp/x", "x")), "outside"},
		"drive":                             {and(file("c:/x", "x")), "outside"},
		"stream of a file":                  {and(file("model.onnx:x", "x")), "outside"},
		"backslash":                         {and(file(`..\x`, "x")), "outside"},
		"control character":                 {and(file("a\nb", "x")), "control"},
		"long name":                         {and(file(strings.Repeat("x/", 20)+"x", "x")), "too long"},
		"symbolic link":                     {special(tar.TypeSymlink, "LICENSE", "/etc/passwd"), "neither"},
		"link left out":                     {special(tar.TypeSymlink, "other", "/etc/passwd"), "neither"},
		"hard link":                         {special(tar.TypeLink, "LICENSE", "/etc/passwd"), "neither"},
		"device":                            {special(tar.TypeChar, "LICENSE", ""), "neither"},
		"block device":                      {special(tar.TypeBlock, "LICENSE", ""), "neither"},
		"pipe":                              {special(tar.TypeFifo, "LICENSE", ""), "neither"},
		"folder then file in its place":     {tarOf(t, append([]entry{{tar.Header{Name: "config.json/", Typeflag: tar.TypeDir}, ""}}, good...)...), "twice"},
		"twice":                             {and(file("config.json", "{}")), "twice"},
		"twice as dots":                     {and(file("./config.json", "{}")), "twice"},
		"twice on some systems":             {and(file("CONFIG.json", "{}")), "twice"},
		"two models":                        {tarOf(t, append(inOrder("a/", plain()), inOrder("b/", plain())...)...), "more than one model"},
		"two weights":                       {and(file("onnx/model.onnx", "x")), "the folder has both"},
		"many entries":                      {tarOf(t, many...), "more than 1000 entries"},
		"many in zip":                       {zipOf(t, many...), "more than 1000 entries"},
		"no model":                          {tarOf(t, file("a", "b")), "the archive has no config.json; a model needs the files"},
		"config too large":                  {tarOf(t, inOrder("", with(map[string]string{"config.json": `{"a":"` + strings.Repeat("x", maxTextFileBytes) + `"}`}))...), "larger than"},
		"tar states too much":               {stating(t, 1<<40), "unpacks to more"},
		"sparse bomb":                       {sparse(t, 1<<32), "neither"},
		"zip parent":                        {zipOf(t, append(slices.Clone(good), file("../x", "x"))...), "outside"},
		"zip link":                          {zipOf(t, append(slices.Clone(good), entry{tar.Header{Name: "LICENSE", Mode: int64(os.ModeSymlink | 0o777)}, "/etc/passwd"})...), "neither"},
		"zip device":                        {zipOf(t, append(slices.Clone(good), entry{tar.Header{Name: "LICENSE", Mode: int64(os.ModeDevice | 0o777)}, ""})...), "neither"},
		"zip twice":                         {zipOf(t, append(slices.Clone(good), file("config.json", "{}"))...), "twice"},
		"zip encrypted":                     {encrypted, "encrypted"},
		"zip with wrong sizes":              {liar, "not a complete archive"},
		"zip cut":                           {zipOf(t, good...)[:200], "not a complete archive"},
		"a frame of zstd that wants memory": {append([]byte("\x28\xb5\x2f\xfd\x00\xf8"), 1, 0, 0), "window size"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := pull(t, tt.archive)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if left := seen(t, s); len(left) != 0 {
				t.Errorf("%q is left in the store", left)
			}
			if around, err := os.ReadDir(filepath.Dir(s.dir)); err != nil || len(around) != 2 {
				t.Errorf("%v beside archive and store, error %v", around, err)
			}
		})
	}
}

// stating returns a tar archive whose one header states a size.
func stating(t *testing.T, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "model.onnx", Typeflag: tar.TypeReg, Mode: 0o644, Size: size}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sparse returns a tar archive of a file that is all hole, in GNU's old form.
func sparse(t *testing.T, size int64) []byte {
	t.Helper()
	h := tarOf(t, file("model.onnx", ""))[:512]
	h[156] = tar.TypeGNUSparse
	copy(h[257:], "ustar  \x00")
	copy(h[386:], fmt.Sprintf("%011o\x00%011o\x00", size, 0)) // one piece of data: none, at the end
	copy(h[483:], fmt.Sprintf("%011o\x00", size))
	copy(h[148:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return append(h, make([]byte, 1024)...)
}

// TestMeters holds that what is read is counted, whatever headers state.
func TestMeters(t *testing.T) {
	t.Parallel()
	m := &limitedReader{r: zeros{}, bytesLeft: 1 << 20}
	if n, err := io.Copy(io.Discard, m); !errors.Is(err, errUnpackedModelTooBig) || n > 1<<20 {
		t.Errorf("read %d bytes, error %v", n, err)
	}
	at := &limitedReaderAt{r: bytes.NewReader(make([]byte, 1<<20)), bytesLeft: 1 << 10}
	if n, err := io.Copy(io.Discard, io.NewSectionReader(at, 0, 1<<20)); err == nil || n > 1<<10 {
		t.Errorf("read %d bytes, error %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestLongZipList holds that a list of entries that is too long is not read
// into memory.
func TestLongZipList(t *testing.T) {
	t.Parallel()
	var entries []entry
	for i := range 40000 {
		entries = append(entries, file(fmt.Sprintf("%060d", i), ""))
	}
	if _, err := pull(t, zipOf(t, entries...)); err == nil || !strings.Contains(err.Error(), "list of entries is too long") {
		t.Errorf("error %v", err)
	}
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.tar")
	if err := os.WriteFile(path, tarOf(t, inOrder("", plain())...), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Install(ctx, path, InstallOptions{Name: "tiny"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	_, err := s.Install(ctx, path, InstallOptions{Name: "tiny", CheckModelFolder: func(string) error { cancel(); return nil }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before it was in its place: %v", err)
	}
	if left := seen(t, s); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
}

// FuzzArchive holds that what an archive gives stays below the model's folder,
// comes once, and is not more than there may be.
func FuzzArchive(f *testing.F) {
	good := inOrder("m/", plain())
	f.Add(tarOf(f, good...))
	f.Add(gzipped(tarOf(f, good...)))
	f.Add(zstded(f, tarOf(f, good...)))
	f.Add(zipOf(f, good...))
	path := filepath.Join(f.TempDir(), "archive")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		archive, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		seen, total := map[string]bool{}, int64(0)
		_ = walkArchive(t.Context(), archive, func(name string, r io.Reader) error { // refused or not
			if seen[strings.ToLower(name)] || !filepath.IsLocal(filepath.FromSlash(name)) {
				t.Errorf("%q is there twice, or elsewhere", name)
			}
			seen[strings.ToLower(name)] = true
			n, err := io.Copy(io.Discard, r)
			total += n
			return err
		})
		if total > maxModelBytes || len(seen) > maxArchiveEntries {
			t.Errorf("%d bytes in %d files", total, len(seen))
		}
	})
}

// FuzzCheckPath holds that a name that is accepted stays below its folder.
func FuzzCheckPath(f *testing.F) {
	for _, name := range []string{"a", "./a/b", "../a", "a/../../b", "/a", "", ".", "./", ".//", `a\b`, "a/./b"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		plain, err := cleanEntryPath(name)
		if err == nil && (!filepath.IsLocal(filepath.FromSlash(plain)) || strings.Contains(plain, "..") && slices.Contains(strings.Split(plain, "/"), "..")) {
			t.Errorf("%q is accepted as %q", name, plain)
		}
	})
}
