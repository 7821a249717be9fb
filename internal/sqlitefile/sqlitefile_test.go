package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func file(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func open(db, wal []byte) (*DB, error) {
	if wal == nil {
		return Open(bytes.NewReader(db), int64(len(db)), nil, 0)
	}
	return Open(bytes.NewReader(db), int64(len(db)), bytes.NewReader(wal), int64(len(wal)))
}

// all returns the rows of the table part, as many as there are.
func all(db, wal []byte) (rows []string, err error) {
	d, err := open(db, wal)
	if err != nil {
		return nil, err
	}
	t, err := d.Table("part")
	if err != nil {
		return nil, err
	}
	err = t.Rows(1<<20, func(rowid int64, r *Row) error {
		again, err := t.Row(rowid, 1<<20)
		if err != nil || again == nil || again.Text("data") != r.Text("data") {
			return fmt.Errorf("row %d by itself: %v, %v", rowid, again, err)
		}
		rows = append(rows, fmt.Sprintf("%s %d %s", r.Text("id"), r.Int("n"), r.Text("data")))
		return nil
	})
	return rows, err
}

// TestRows reads what testdata/make.py wrote.
func TestRows(t *testing.T) {
	var want []string
	for i := range 300 {
		size := i * 37 % 400
		if i%50 == 0 {
			size = 2000
		}
		if n := i*300 - 1000; n%900 != 200 {
			want = append(want, fmt.Sprintf("p%04d %d %s", i, n, strings.Repeat(string(rune('a'+i%26)), size)))
		}
	}
	got, err := all(file(t, "small.db"), nil)
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v, %d rows, want %d", err, len(got), len(want))
	}
	d, err := open(file(t, "small.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	part, err := d.Table("part")
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []int64{-1, 5, 1 << 40} { // 5 was deleted
		if r, err := part.Row(gone, 10); r != nil || err != nil {
			t.Errorf("row %d: %v, %v", gone, r, err)
		}
	}
	// the first fields of a row of 2000 bytes are read without the rest
	if r, err := part.Row(201, 100); err != nil || !r.Truncated || r.Text("id") != "p0200" || r.Int("n") != 59000 || r.Text("data") != "" {
		t.Errorf("the beginning of a row: %+v, %v", r, err)
	}
	if _, err := d.Table("missing"); err == nil {
		t.Error("found a table that is not there")
	}
}

// TestLog reads what the log has committed, and nothing of it where its checksums do not fit.
func TestLog(t *testing.T) {
	db, wal := file(t, "wal.db"), file(t, "wal.db-wal")
	got, err := all(db, wal)
	if err != nil || len(got) != 21 || got[0] != "old 1 after" || !strings.HasPrefix(got[20], "new19 19 xxx") {
		t.Errorf("%v, %d rows", err, len(got))
	}
	if got, err := all(db, nil); err != nil || len(got) != 1 || got[0] != "old 1 before" {
		t.Errorf("without the log: %v, %q", err, got)
	}
	broken := bytes.Clone(wal)
	broken[32+24+5]++ // in the first frame
	if got, err := all(db, broken); err != nil || len(got) != 1 || got[0] != "old 1 before" {
		t.Errorf("a log with a wrong checksum: %v, %q", err, got)
	}
	if got, err := all(db, wal[:len(wal)-1]); err != nil || len(got) != 20 {
		t.Errorf("a log that is cut off: %v, %d rows", err, len(got))
	}
}

// TestHostile reads files that lie about their form.
func TestHostile(t *testing.T) {
	good := file(t, "small.db")
	d, err := open(good, nil)
	if err != nil {
		t.Fatal(err)
	}
	part, err := d.Table("part")
	if err != nil {
		t.Fatal(err)
	}
	root := int(part.rootPage-1) * 512
	for name, change := range map[string]func(b []byte) []byte{
		"empty":              func([]byte) []byte { return nil },
		"no database":        func([]byte) []byte { return bytes.Repeat([]byte("x"), 4096) },
		"header alone":       func(b []byte) []byte { return b[:100] },
		"cut off":            func(b []byte) []byte { return b[:len(b)/2] },
		"page size":          func(b []byte) []byte { b[16], b[17] = 3, 0; return b },
		"all reserved":       func(b []byte) []byte { b[20] = 255; return b },
		"UTF-16":             func(b []byte) []byte { b[59] = 2; return b },
		"a root in a circle": func(b []byte) []byte { binary.BigEndian.PutUint32(b[root+8:], part.rootPage); return b },
		"many cells":         func(b []byte) []byte { b[root+3], b[root+4] = 255, 255; return b },
		"a cell at the end":  func(b []byte) []byte { b[root+12], b[root+13] = 1, 255; return b },
		"a child far away":   func(b []byte) []byte { binary.BigEndian.PutUint32(b[root+8:], 1<<31); return b },
		"another kind":       func(b []byte) []byte { b[root] = 2; return b },
	} {
		if rows, err := all(change(bytes.Clone(good)), nil); err == nil {
			t.Errorf("%s: %d rows and no error", name, len(rows))
		}
	}
	if _, err := all(nil, nil); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// FuzzRows holds that no file makes the reader panic, or give more than the file has.
func FuzzRows(f *testing.F) {
	f.Add(file(f, "small.db")[:8192], []byte(nil))
	f.Add(file(f, "wal.db"), file(f, "wal.db-wal"))
	f.Fuzz(func(t *testing.T, db, wal []byte) {
		n := 0
		rows, _ := all(db, wal) // an error is an answer
		for _, row := range rows {
			n += len(row)
		}
		if n > 2*(len(db)+len(wal))+100*len(rows) {
			t.Errorf("%d bytes of a file of %d", n, len(db)+len(wal))
		}
	})
}
