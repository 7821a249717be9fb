package effect

import "testing"

// TestShared holds which folders all users share for what goes away, and that names which only begin alike are none.
func TestShared(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]bool{
		"/tmp/a": {true, true}, "/var/tmp/a/b": {true, true}, "/private/tmp/a": {true, true}, "/dev/shm/a": {false, true},
		"/tmp": {}, "/tmpfiles/a": {}, "/srv/tmp/a": {}, "/var/cache/a": {}, "/dev/shmx/a": {}, "": {},
	} {
		folder, _ := CutTemporaryFolder(path)
		if got := [2]bool{folder != "", IsInSharedTemporaryFolder(path)}; got != want {
			t.Errorf("%q: temporary, shared %v, want %v", path, got, want)
		}
	}
}
