//go:build unix

package approve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestPageFile holds that what is in the place of the page's address is read within
// bounds and not waited for: it is read for each action.
func TestPageFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, effect.ApprovalPageAddressFile)
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if address, _ := ApprovalPageQuestionStatusReader(dir)(); address != "" {
		t.Errorf("a pipe: %q", address)
	}
	for _, text := range []string{strings.Repeat("a", 301), strings.Repeat("a", 1<<20)} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if address, _ := ApprovalPageQuestionStatusReader(dir)(); address != "" {
			t.Errorf("%d bytes: %.20q", len(text), address)
		}
	}
}
