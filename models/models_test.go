package models

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/shieldcli/shield/pkg/modelstore"
)

// TestDefault holds that the digest is that of the model's folder, and that the
// program carries of that folder what is given out.
func TestDefault(t *testing.T) {
	t.Parallel()
	source, folder := os.DirFS("default"), DefaultModelFolder("")
	digest, _, err := modelstore.Digest(t.Context(), source)
	if err != nil || digest != Digest {
		t.Errorf("digest %s, %v; want %s", digest, err, Digest)
	}
	for _, name := range []string{"tokenizer.json", "config.json", "shield.json"} {
		want, err := fs.ReadFile(source, name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(folder, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
	}
	for _, name := range []string{"../models.go", "default/shield.json", "/shield.json", "model.onnx", "gone", ""} {
		if _, err := fs.ReadFile(folder, name); err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestIntact: a byte that changes anywhere in what the program carries is seen.
func TestIntact(t *testing.T) {
	t.Parallel()
	if err := CheckEmbeddedModelIntact(); err != nil {
		t.Error(err)
	}
	data, err := UnpackedGraph()
	if err != nil {
		t.Fatal(err)
	}
	graph := string(data)
	for name, changed := range map[string][2]string{
		"graph":     {graph[:len(graph)-1] + "x", packedTokenizer},
		"tokenizer": {graph, "x" + packedTokenizer[1:]},
		"moved":     {graph + packedTokenizer[:1], packedTokenizer[1:]},
	} {
		if got, err := Sum(DefaultModelFolder(""), changed[0], changed[1]); err != nil || got == sum {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	other := fstest.MapFS{}
	for _, name := range uncompressedModelFiles {
		other[name] = &fstest.MapFile{Data: []byte(name)}
	}
	if got, err := Sum(other, graph, packedTokenizer); err != nil || got == sum {
		t.Errorf("other files: %s, %v", got, err)
	}
	if TotalUnpackedModelBytes() < 9e6 {
		t.Errorf("size %d", TotalUnpackedModelBytes())
	}
}
