package state

import (
	"bytes"
	"errors"
	"hash/crc32"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// setVersion gives the limits in a state file another version, with the checksum
// that fits.
func setVersion(t *testing.T, path, from, to string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(limitsBucket.namespaceName))
		body := bytes.Replace(b.Get(limitRecordKey)[4:], []byte(`{"v":`+from+`,`), []byte(`{"v":`+to+`,`), 1)
		return b.Put(limitRecordKey, append(byteOrder.AppendUint32(nil, crc32.ChecksumIEEE(body)), body...))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestVersions holds that a state file of a later shield is refused with what to do, and
// left as it is.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	dir := t.TempDir()
	s := openStore(t, dir, w.options(true))
	if _, err := s.ChargeEvaluation(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	for version, kind := range map[string]error{"9": ErrNewerStateFile, "0": ErrCorrupt} {
		setVersion(t, filepath.Join(dir, stateFileName), "1", version)
		_, err := s.ChargeEvaluation(t.Context(), 5)
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), RepairCommand) {
			t.Errorf("version %s: %v", version, err)
		}
		setVersion(t, filepath.Join(dir, stateFileName), version, "1")
	}
	if used, err := s.ChargeEvaluation(t.Context(), 5); used != 2 || err != nil {
		t.Errorf("%d used, %v", used, err)
	}
	setVersion(t, filepath.Join(dir, stateFileName), "1", "9")
	if done, err := RepairIfDamaged(t.Context(), dir, w.options(true), 12, "head"); !done || err != nil {
		t.Fatal(done, err)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, stateFileName+".damaged-*")); err != nil || len(kept) != 1 {
		t.Errorf("kept %v, %v", kept, err)
	}
}
