//go:build unix

package classify

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shieldcli/shield/internal/owner"
)

// A FIFO in place of any file of a model is refused at once: no one waits for
// its other side.
func TestModelOfPipes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"config.json", "tokenizer.json", "shield.json", "model.onnx"} {
		dir := t.TempDir()
		for file, data := range testFiles(t) {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, name)
		_ = os.Remove(path) // not every model has one
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		_, err := OpenModel(owner.DirFSOfRegularFiles(dir), "", library)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
