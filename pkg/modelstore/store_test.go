package modelstore

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// plain are the files of a small model.
func plain() map[string]string {
	return map[string]string{
		"model.onnx": "weights", "tokenizer.json": `{"model":{}}`, "config.json": "{}\n",
		"shield.json": `{"licence":"MIT","threshold":0.9,"other":1}`, "README.md": "# A model",
	}
}

// with returns the small model with files replaced, or taken away by "-".
func with(changes map[string]string) map[string]string {
	files := plain()
	maps.Copy(files, changes)
	maps.DeleteFunc(files, func(_, v string) bool { return v == "-" })
	return files
}

// folder writes files into a new folder and returns its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var clock = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }

func newStore(t *testing.T) *Store {
	t.Helper()
	return Open(filepath.Join(t.TempDir(), "models"), nil, clock)
}

// seen returns everything in a store's folder, its own files aside.
func seen(t *testing.T, s *Store) []string {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != lockFile {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestInstallFolder(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	files := with(map[string]string{"pytorch_model.bin": "left out", "onnx/config.json": "left out"})
	m, err := s.Install(t.Context(), folder(t, files), InstallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "tiny" || !m.Installed.Equal(clock().Truncate(time.Second)) || !strings.HasSuffix(m.Source, "tiny") {
		t.Errorf("manifest %+v", m)
	}
	dir, err := s.Find("tiny")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
		names = append(names, e.Name())
	}
	if want := []string{"README.md", "config.json", "manifest.json", "model.onnx", "shield.json", "tokenizer.json"}; !slices.Equal(names, want) {
		t.Errorf("installed %q, want %q", names, want)
	}
	if got, problems, err := s.DigestAndManifestDifferences(t.Context(), "tiny"); got != m.Digest || problems != nil || err != nil {
		t.Errorf("verify: %s %q, error %v; want %s", got, problems, err, m.Digest)
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("list %+v, error %v", list, err)
	}
	if i := list[0]; i.Licence != "MIT" || i.MinBlockConfidence == nil || *i.MinBlockConfidence != 0.9 || i.Size != 7+12+3+43+9 || i.ModelFilesDigest != m.Digest {
		t.Errorf("list %+v", i)
	}
	if err := s.Remove("tiny"); err != nil {
		t.Error(err)
	}
	if left := seen(t, s); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
}

// TestWeightsHaveUsualPlaces holds that the weights are installed under one
// name, wherever the source has them.
func TestWeightsHaveUsualPlaces(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"onnx/model.onnx", "onnx/model_quantized.onnx"} {
		s := newStore(t)
		if _, err := s.Install(t.Context(), folder(t, with(map[string]string{"model.onnx": "-", place: "w"})), InstallOptions{}); err != nil {
			t.Error(err)
		}
		if data, err := os.ReadFile(filepath.Join(s.dir, "tiny", "model.onnx")); string(data) != "w" {
			t.Errorf("%s: %q, error %v", place, data, err)
		}
	}
}

func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	link := func(name, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			_ = os.RemoveAll(filepath.Join(dir, name))
			if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
				t.Skip(err)
			}
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		files map[string]string
		spoil func(*testing.T, string)
		opts  InstallOptions
		want  string
	}{
		"no weights":             {files: with(map[string]string{"model.onnx": "-"}), want: "the folder has no model.onnx"},
		"no tokenizer":           {files: with(map[string]string{"tokenizer.json": "-"}), want: "the folder has no tokenizer.json"},
		"no config":              {files: with(map[string]string{"config.json": "-"}), want: "the folder has no config.json"},
		"two weights":            {files: with(map[string]string{"onnx/model.onnx": "x"}), want: "the folder has both"},
		"config is a list":       {files: with(map[string]string{"config.json": "[]"}), want: "config.json is not a single JSON object"},
		"config is empty":        {files: with(map[string]string{"config.json": ""}), want: "config.json"},
		"tokenizer is cut":       {files: with(map[string]string{"tokenizer.json": `{"model":`}), want: "tokenizer.json"},
		"tokenizer is two":       {files: with(map[string]string{"tokenizer.json": `{}{}`}), want: "tokenizer.json"},
		"config says it twice":   {files: with(map[string]string{"config.json": `{"a":1,"a":2}`}), want: "config.json"},
		"shield.json is no JSON": {files: with(map[string]string{"shield.json": "x"}), want: "shield.json"},
		"config too large":       {files: with(map[string]string{"config.json": `{"a":"` + strings.Repeat("x", maxTextFileBytes) + `"}`}), want: "larger than"},
		"link to a secret":       {spoil: link("config.json", secret), want: "is not a regular file"},
		"link inside":            {spoil: link("config.json", "shield.json"), want: "is not a regular file"},
		"link that hangs":        {spoil: link("LICENSE", "nowhere"), want: "is not a regular file"},
		"folder is a link":       {files: with(map[string]string{"model.onnx": "-"}), spoil: link("onnx", os.TempDir()), want: "is not a folder; name a folder without symbolic links"},
		"a folder as file": {files: with(map[string]string{"config.json": "-"}), spoil: func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "config.json"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, want: "is not a regular file"},
		"the check says no":  {opts: InstallOptions{CheckModelFolder: func(string) error { return errors.New("no such label") }}, want: "no such label"},
		"digest of a folder": {opts: InstallOptions{ArchiveSHA256Hex: strings.Repeat("0", 64)}, want: "folder"},
		"bad digest":         {opts: InstallOptions{ArchiveSHA256Hex: "abc"}, want: "64 hexadecimal digits"},
		"name up":            {opts: InstallOptions{Name: "../up"}, want: "model name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.files == nil {
				tt.files = plain()
			}
			dir := folder(t, tt.files)
			if tt.spoil != nil {
				tt.spoil(t, dir)
			}
			s := newStore(t)
			m, err := s.Install(t.Context(), dir, tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, error %v; want %q", m, err, tt.want)
			}
			if left := seen(t, s); len(left) != 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "7b": true, "deberta-v3_small.int8": true, "console": true, "comb": true, strings.Repeat("a", 64): true,
		"": false, "A": false, ".a": false, "-a": false, "a/b": false, `a\b`: false, "..": false, "a.": false, "a b": false, "a\x00": false, "ä": false, "a\n": false,
		"none": false, "default": false, "auto": false, "con": false, "nul.onnx": false, "com1": false, strings.Repeat("a", 65): false,
	} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
	for source, want := range map[string]string{
		"/a/b": "b", "/a/b/": "b", "b.tar.gz": "b", "b.tgz": "b", "b.tar.zst": "b", "b.zip": "b", "b.tar": "b", "https://x.example/m/b.tgz?token=1": "b",
	} {
		if got := nameFromSource(source); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

func TestForce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	install := func(weights string, force bool) error {
		_, err := s.Install(t.Context(), folder(t, with(map[string]string{"model.onnx": weights})), InstallOptions{ReplacesInstalledModel: force})
		return err
	}
	if err := install("one", true); err != nil {
		t.Fatal(err)
	}
	if err := install("two", false); !errors.Is(err, ErrExists) {
		t.Errorf("%v, want ErrExists", err)
	}
	if got := weights(t, s); got != "one" {
		t.Errorf("weights %q, want those of before", got)
	}
	if err := install("two", true); err != nil {
		t.Error(err)
	}
	if got := weights(t, s); got != "two" {
		t.Errorf("weights %q, want the new ones", got)
	}
	if _, problems, err := s.DigestAndManifestDifferences(t.Context(), "tiny"); problems != nil || err != nil {
		t.Errorf("%q, error %v", problems, err)
	}
	if left := seen(t, s); !slices.Equal(left, []string{"tiny"}) {
		t.Errorf("the store has %q", left)
	}
}

func weights(t *testing.T, s *Store) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "tiny", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	for name, tt := range map[string]struct {
		tamper func(dir string) error
		want   string
	}{
		"weights":        {write("model.onnx", "Weights"), "model.onnx was changed"},
		"longer":         {write("model.onnx", "weights and more"), "model.onnx was changed"},
		"added":          {write("model.onnx.data", ""), `"model.onnx.data" was added`},
		"removed":        {func(dir string) error { return os.Remove(filepath.Join(dir, "shield.json")) }, "shield.json is missing"},
		"manifest":       {write("manifest.json", "{}"), "manifest.json was changed"},
		"no manifest":    {func(dir string) error { return os.Remove(filepath.Join(dir, "manifest.json")) }, "manifest.json"},
		"no JSON":        {write("manifest.json", "x"), "manifest.json cannot be read"},
		"large manifest": {write("manifest.json", strings.Repeat(" ", maxTextFileBytes+1)), "manifest.json"},
		"link": {func(dir string) error {
			if err := os.Rename(filepath.Join(dir, "config.json"), filepath.Join(dir, "c")); err != nil {
				return err
			}
			return os.Symlink("c", filepath.Join(dir, "config.json"))
		}, "config.json is not a regular file"},
		"another's manifest": {func(dir string) error {
			data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
			if err != nil {
				return err
			}
			return write("manifest.json", strings.Replace(string(data), `"tiny"`, `"other"`, 1))(dir)
		}, "manifest.json was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			if _, err := s.Install(t.Context(), folder(t, plain()), InstallOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := tt.tamper(filepath.Join(s.dir, "tiny")); err != nil {
				t.Fatal(err)
			}
			_, problems, err := s.DigestAndManifestDifferences(t.Context(), "tiny")
			if err != nil || len(problems) == 0 || !strings.Contains(strings.Join(problems, "\n"), tt.want) {
				t.Errorf("%q, error %v; want %q", problems, err, tt.want)
			}
			if _, err := s.List(t.Context()); err != nil {
				t.Errorf("list: %v", err)
			}
		})
	}
}

// TestOpenStores holds that models in a folder where others may write are not
// used.
func TestOpenStores(t *testing.T) {
	t.Parallel()
	if os.PathSeparator != '/' {
		t.Skip("modes say nothing here")
	}
	s := newStore(t)
	if _, err := s.Install(t.Context(), folder(t, plain()), InstallOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(s.dir, "tiny"), s.dir} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Find("tiny"); err == nil {
			t.Errorf("%s is open to others, and used", dir)
		}
		if list, err := s.List(t.Context()); err != nil || len(list) != 1 || list[0].Error == "" {
			t.Errorf("list %+v, error %v", list, err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Install(t.Context(), folder(t, plain()), InstallOptions{Name: "other"}); err == nil {
		t.Error("installed where others may write")
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{}
	for name, content := range plain() {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	var changed error
	s := Open(filepath.Join(t.TempDir(), "models"), &EmbeddedModel{files, "sha256:1", 74, func() error { return changed }}, clock)
	if list, err := s.List(t.Context()); err != nil || len(list) != 1 || list[0].EmbeddedOrInstalled != "embedded" || list[0].Licence != "MIT" || list[0].Size != 74 {
		t.Errorf("list %+v, error %v", list, err)
	}
	if got, problems, err := s.DigestAndManifestDifferences(t.Context(), EmbeddedModelName); got != "sha256:1" || problems != nil || err != nil {
		t.Errorf("%s %q, error %v", got, problems, err)
	}
	changed = errors.New("the program was changed")
	if _, problems, err := s.DigestAndManifestDifferences(t.Context(), EmbeddedModelName); len(problems) == 0 || err != nil {
		t.Errorf("a changed program: %q, error %v", problems, err)
	}
	if err := s.Remove(EmbeddedModelName); err == nil {
		t.Error("the embedded model was removed")
	}
	if _, _, err := newStore(t).DigestAndManifestDifferences(t.Context(), EmbeddedModelName); !errors.Is(err, ErrNotFound) {
		t.Errorf("no embedded model: %v, want ErrNotFound", err)
	}
}
