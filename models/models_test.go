package models

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/shieldcli/shield/pkg/modelstore"
)

// TestDefault holds that the digest is that of the model's folder, and that the
// program carries of that folder what is given out.
func TestDefault(t *testing.T) {
	t.Parallel()
	source, folder := os.DirFS("default"), Default()
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
