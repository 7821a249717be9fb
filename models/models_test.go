package models

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/shieldcli/shield/pkg/modelstore"
)

// TestDefault holds that the folder which is given out is the model whose digest is
// written down, whichever way its files are read, and nothing else.
func TestDefault(t *testing.T) {
	t.Parallel()
	folder := Default()
	digest, _, err := modelstore.Digest(t.Context(), folder)
	if err != nil || digest != Digest {
		t.Errorf("digest %s, %v; want %s", digest, err, Digest)
	}
	for _, name := range []string{"model.onnx", "tokenizer.json", "config.json", "shield.json"} {
		whole, err := fs.ReadFile(folder, name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := folder.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(f); err != nil || !bytes.Equal(b.Bytes(), whole) {
			t.Errorf("%s: %d bytes when it is opened, %d when it is read (%v)", name, b.Len(), len(whole), err)
		}
	}
	for _, name := range []string{"../models.go", "default/model.onnx", "/model.onnx", "model.onnx/", "gone", ""} {
		if _, err := fs.ReadFile(folder, name); err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
