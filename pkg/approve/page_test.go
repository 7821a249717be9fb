package approve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/pkg/effect"
)

// TestPage holds that the address of the page is that of its file, and that a question waits
// from its request to its answer, and not for ever.
func TestPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := ApprovalPageQuestionStatusReader(dir)
	check := func(address string, waits bool) {
		t.Helper()
		if a, w := page(); a != address || w != waits {
			t.Errorf("%q, %v", a, w)
		}
	}
	put := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	check("", false)
	put(effect.ApprovalPageAddressFile, "127.0.0.1:5\n")
	check("127.0.0.1:5", false)
	old := put(pageInboxFolder+"/a.request", "x")
	asker, err := flock.New(filepath.Join(dir, pageInboxFolder, "a.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	if taken, err := asker.TryLock(); err != nil || !taken {
		t.Fatal(taken, err)
	}
	check("127.0.0.1:5", true)
	put(pageInboxFolder+"/a.answer", "x")
	check("127.0.0.1:5", false)
	if err := os.Remove(filepath.Join(dir, pageInboxFolder, "a.answer")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-24*time.Hour)); err != nil { // approval.timeout may be as long
		t.Fatal(err)
	}
	check("127.0.0.1:5", true)
	asker.Close() // as when the asking process is killed
	check("127.0.0.1:5", false)
	if ApprovalPageQuestionStatusReader("") != nil {
		t.Error("a page without a state folder")
	}
}
