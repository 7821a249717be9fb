package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/flock"
)

// advance moves the head of a store by one entry.
func advance(t *testing.T, s *Store) error {
	t.Helper()
	return s.AdvanceAuditHead(t.Context(), func(seq uint64, hash string) (uint64, string, error) { return seq + 1, hash + "h", nil })
}

func TestHead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, other := openStore(t, dir, newWorld().options(true)), openStore(t, dir, newWorld().options(true))
	if seq, hash, err := one.AuditHead(t.Context()); seq != 0 || hash != "" || err != nil {
		t.Error(seq, hash, err)
	}
	for _, s := range []*Store{one, other, one} {
		if err := advance(t, s); err != nil {
			t.Fatal(err)
		}
	}
	stop := errors.New("stop")
	err := one.AdvanceAuditHead(t.Context(), func(uint64, string) (uint64, string, error) { return 9, "no", stop })
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	if seq, hash, err := other.AuditHead(t.Context()); seq != 3 || hash != "hhh" || err != nil {
		t.Error(seq, hash, err)
	}
}

// Without a state file or a head that can be relied on no entry is written, by a process
// that has both open as well, until a person repairs it.
func TestHeadDamage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		kind   error
	}{
		{"head removed", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, auditHeadFileName)) }, ErrStateFileMissing},
		{"head emptied", func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, auditHeadFileName), 0) }, ErrCorrupt},
		{"head of less", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, auditHeadFileName), bytes.Replace(encodeHead(2, "hh", nil), []byte("hh"), []byte("h\x00"), 1))
		}, ErrCorrupt},
		{"head forged with a checksum", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, auditHeadFileName), encodeHead(2, "hh", nil))
		}, ErrCorrupt},
		{"head forged with another key", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, auditHeadFileName), encodeHead(9, "hh", make([]byte, 32)))
		}, ErrCorrupt},
		{"head changed to another entry of the same number", func(t *testing.T, dir string) {
			s := openStore(t, dir, newWorld().options(true))
			if err := s.localStateFileQueue.runPossiblyWriting(t.Context(), s.auditHeadFile.ensureExists); err != nil {
				t.Fatal(err)
			}
			if err := s.localStateFileQueue.runWriting(t.Context(), func(*tx) error { return nil }); err != nil { // notes the head
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, auditHeadFileName), encodeHead(2, "xx", s.auditHeadFile.macKey))
		}, ErrCorrupt},
		{"folder for the head", func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, auditHeadFileName))
			mkdir(t, filepath.Join(dir, auditHeadFileName))
		}, ErrCorrupt},
		{"link for the head", func(t *testing.T, dir string) {
			path := filepath.Join(dir, auditHeadFileName)
			if err := os.Rename(path, path+".real"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path+".real", path); err != nil {
				t.Skip(err)
			}
		}, ErrCorrupt},
		{"state damaged", func(t *testing.T, dir string) { write(t, filepath.Join(dir, stateFileName), []byte("oh")) }, ErrCorrupt},
		{"state removed", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, stateFileName)) }, ErrStateFileMissing},
		{"state readable by all", func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, stateFileName), 0o644); err != nil {
				t.Fatal(err)
			}
		}, ErrStateAccessibleToOtherUsers},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o := newWorld().options(true)
			before := openStore(t, dir, o)
			for range 2 {
				if err := advance(t, before); err != nil {
					t.Fatal(err)
				}
			}
			tt.damage(t, dir)
			o.EvidenceOfEarlierStateFile = func() (string, error) { return "the audit log has entries", nil }
			for _, s := range []*Store{before, openStore(t, dir, o), before} {
				if err := advance(t, s); !errors.Is(err, tt.kind) {
					t.Errorf("error %v, want %v", err, tt.kind)
				}
			}
			if errors.Is(tt.kind, ErrStateAccessibleToOtherUsers) || tt.name == "folder for the head" {
				return // a person has to look
			}
			if done, err := RepairIfDamaged(t.Context(), dir, o, 2, "hh"); !done || err != nil {
				t.Fatal(done, err)
			}
			for _, s := range []*Store{before, openStore(t, dir, o)} {
				if err := advance(t, s); err != nil {
					t.Error(err)
				}
			}
			if seq, hash, err := before.AuditHead(t.Context()); seq != 4 || hash != "hhhh" || err != nil {
				t.Error(seq, hash, err)
			}
		})
	}
}

// Where the head lay in the state file it is taken from there, once.
func TestHeadMoves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, newWorld().options(true))
	err := s.localStateFileQueue.runWriting(t.Context(), func(t *tx) error {
		return t.put(limitsBucket, legacyHeadKey, append(byteOrder.AppendUint64(nil, 7), "abc"...))
	})
	if err != nil {
		t.Fatal(err)
	}
	if seq, hash, err := s.AuditHead(t.Context()); seq != 7 || hash != "abc" || err != nil {
		t.Error(seq, hash, err)
	}
	if err := advance(t, s); err != nil {
		t.Fatal(err)
	}
	if seq, hash, err := s.AuditHead(t.Context()); seq != 8 || hash != "abch" || err != nil {
		t.Error(seq, hash, err)
	}
	remove(t, filepath.Join(dir, auditHeadFileName))
	if seq, hash, err := s.AuditHead(t.Context()); !errors.Is(err, ErrStateFileMissing) {
		t.Error(seq, hash, err)
	}
}

// A head file that is set back does not count: the state file has noted a later head, in the
// last transaction that wrote it, and at least each entriesBetweenAuditHeadRecords entries.
func TestHeadSetBack(t *testing.T) {
	t.Parallel()
	for name, note := range map[string]func(t *testing.T, s *Store){
		"by another transaction": func(t *testing.T, s *Store) {
			if err := s.localStateFileQueue.runWriting(t.Context(), func(*tx) error { return nil }); err != nil {
				t.Fatal(err)
			}
		},
		"by its own": func(t *testing.T, s *Store) {
			for range entriesBetweenAuditHeadRecords {
				if err := s.AdvanceAuditHead(t.Context(), func(seq uint64, hash string) (uint64, string, error) { return seq + 1, hash, nil }); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openStore(t, dir, newWorld().options(true))
			for range 2 {
				if err := advance(t, s); err != nil {
					t.Fatal(err)
				}
			}
			old, err := os.ReadFile(filepath.Join(dir, auditHeadFileName))
			if err != nil {
				t.Fatal(err)
			}
			if err := advance(t, s); err != nil {
				t.Fatal(err)
			}
			note(t, s)
			want, _, err := s.AuditHead(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, auditHeadFileName), old)
			for _, s := range []*Store{s, openStore(t, dir, newWorld().options(true))} {
				if seq, _, err := s.AuditHead(t.Context()); seq <= 2 || seq+entriesBetweenAuditHeadRecords < want || err != nil {
					t.Errorf("set back to %d of %d, %v", seq, want, err)
				}
			}
			if err := advance(t, s); err != nil {
				t.Error(err)
			}
			if seq, _, err := s.AuditHead(t.Context()); seq <= 3 || seq+entriesBetweenAuditHeadRecords < want || err != nil {
				t.Errorf("goes on from %d of %d, %v", seq, want, err)
			}
		})
	}
}

// A head file of an older version, which has a checksum alone, is taken once.
func TestHeadOfOlderVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, newWorld().options(true))
	if err := s.localStateFileQueue.runWriting(t.Context(), func(t *tx) error { return t.put(limitsBucket, auditHeadFileStatusKey, []byte{1}) }); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, auditHeadFileName), encodeHead(7, "abc", nil))
	if seq, hash, err := s.AuditHead(t.Context()); seq != 7 || hash != "abc" || err != nil {
		t.Error(seq, hash, err)
	}
	if err := advance(t, s); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, auditHeadFileName), encodeHead(9, "abc", nil))
	for _, s := range []*Store{s, openStore(t, dir, newWorld().options(true))} {
		if seq, hash, err := s.AuditHead(t.Context()); !errors.Is(err, ErrCorrupt) {
			t.Error(seq, hash, err)
		}
		if err := advance(t, s); !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
	}
}

// An entry of the log writes nothing to the state file once there is a head.
func TestHeadLeavesState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, newWorld().options(true))
	if err := advance(t, s); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(filepath.Join(dir, stateFileName))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{s, openStore(t, dir, newWorld().options(true))} {
		if err := advance(t, s); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := os.ReadFile(filepath.Join(dir, stateFileName)); err != nil || !bytes.Equal(was, now) {
		t.Errorf("the state file has changed, %v", err)
	}
}

// A head that another process holds is waited for, but not without end.
func TestHeadHeld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := newWorld().options(true)
	o.MaxFileLockWait = time.Millisecond
	s := openStore(t, dir, o)
	other, err := flock.New(filepath.Join(dir, auditHeadLockFileName))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Lock(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := advance(t, s); !errors.Is(err, ErrStateFileLocked) {
		t.Errorf("error %v", err)
	}
	if err := other.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := advance(t, openStore(t, dir, newWorld().options(true))); err != nil {
		t.Error(err)
	}
}
