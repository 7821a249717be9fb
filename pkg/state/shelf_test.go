package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestShelfKeepsGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, newWorld().options(true))
	g, h := []byte("g"), []byte("h")
	err := s.UpdateNamespace(t.Context(), "things", func(sh *NamespaceTx) error {
		if sh.Get(g, []byte("a")) != nil || sh.DropGroup(g) != nil {
			t.Error("an empty shelf holds something")
		}
		return errors.Join(sh.Put(g, []byte("a"), []byte("1")), sh.Put(g, []byte("b"), []byte("2")), sh.Put(h, []byte("a"), []byte("3")), sh.Put(g, []byte("b"), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	again := openStore(t, dir, newWorld().options(true))
	var groups, keys []string
	err = again.ViewNamespace(t.Context(), "things", func(sh *NamespaceTx) error {
		if got := sh.Get(g, []byte("a")); !bytes.Equal(got, []byte("1")) {
			t.Errorf("a is %q", got)
		}
		return errors.Join(
			sh.EachGroupWithValueOfKey(nil, func(name, _ []byte) error { groups = append(groups, string(name)); return nil }),
			sh.Each(g, func(k, v []byte) error { keys = append(keys, string(k)+string(v)); return nil }))
	})
	if err != nil || len(groups) != 2 || len(keys) != 1 || keys[0] != "a1" {
		t.Errorf("groups %q, keys %q, %v", groups, keys, err)
	}
	err = again.UpdateNamespace(t.Context(), "things", func(sh *NamespaceTx) error { return sh.DropGroup(g) })
	if err != nil {
		t.Fatal(err)
	}
	err = s.ViewNamespace(t.Context(), "things", func(sh *NamespaceTx) error {
		if sh.Get(g, []byte("a")) != nil || sh.Get(h, []byte("a")) == nil {
			t.Error("the wrong group was dropped")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A transaction that changes nothing must not write the file.
func TestShelfWritesOnlyChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, newWorld().options(true))
	put := func(sh *NamespaceTx) error { return sh.Put([]byte("g"), []byte("a"), []byte("1")) }
	if err := s.UpdateNamespace(t.Context(), "things", put); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, stateFileName)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("no")
	if err := s.UpdateNamespace(t.Context(), "things", func(*NamespaceTx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.UpdateNamespace(t.Context(), "things", func(*NamespaceTx) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
	after, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed, %v", err)
	}
}
