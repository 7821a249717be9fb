package main

import (
	"os"
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing: that digest and tokenizer
// are those of the files which ship.
func TestFresh(t *testing.T) {
	gentest.Fresh(t, main, []string{"default"}, []string{"digest_gen.go", "tokenizer_gen.bin"})
}

// TestRefuses holds that no digest is written where there is no model.
func TestRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	gentest.Refused(t, "no model", run(), "no such file")
	if _, err := os.Stat("digest_gen.go"); err == nil {
		t.Error("a digest was written")
	}
}
