package state

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A stamp is seen to change, by anyone who changed the shelf, and also where its file
// was removed or replaced since it was first read.
func TestStampChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, other := openStore(t, dir, newWorld().options(true)), openStore(t, dir, newWorld().options(true))
	empty, ok := one.NamespaceRevisionID("things")
	if again, still := other.NamespaceRevisionID("things"); !ok || !still || again != empty {
		t.Errorf("stamps %x, %v and %x, %v of a shelf that holds nothing", empty, ok, again, still)
	}
	file := filepath.Join(dir, "things.stamp")
	seen := map[NamespaceRevisionID]bool{empty: true}
	for i, before := range []func() error{
		func() error { return nil },
		func() error { return nil },
		func() error { return os.Remove(file) },
		func() error { return os.Rename(file, file+".old") },
	} {
		if err := before(); runtime.GOOS == "windows" && err != nil {
			t.Skip("what is open is neither removed nor renamed there")
		} else if err != nil {
			t.Fatal(err)
		}
		err := other.UpdateNamespace(t.Context(), "things", func(sh *NamespaceTx) error { return sh.Put([]byte("g"), []byte("k"), []byte{byte(i)}) })
		if err != nil {
			t.Fatal(err)
		}
		stamp, ok := one.NamespaceRevisionID("things")
		if !ok || seen[stamp] {
			t.Errorf("after change %d: stamp %x, %v; one of those before", i, stamp, ok)
		}
		if again, ok := one.NamespaceRevisionID("things"); !ok || again != stamp {
			t.Errorf("after change %d: stamps %x and %x of the same shelf", i, stamp, again)
		}
		seen[stamp] = true
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file+".old", file); err != nil {
		t.Skip(err)
	}
	if stamp, ok := one.NamespaceRevisionID("things"); ok {
		t.Errorf("stamp %x through a link", stamp)
	}
}
