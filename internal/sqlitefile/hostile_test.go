package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// TestRowsWithoutEnd holds that a small file ends a walk soon, though its log says that the database
// has four billion pages, its inner page names one leaf ten thousand times, and the leaf one row.
func TestRowsWithoutEnd(t *testing.T) {
	const size = 65536
	be := binary.BigEndian
	short := func(v int) []byte {
		if v < 128 {
			return []byte{byte(v)}
		}
		return []byte{byte(v>>7) | 0x80, byte(v & 0x7f)}
	}
	row := func(values ...any) []byte {
		var head, body []byte
		for _, v := range values {
			switch v := v.(type) {
			case int:
				head, body = append(head, 1), append(body, byte(v))
			case string:
				head, body = append(head, short(13+2*len(v))...), append(body, v...)
			}
		}
		head = append([]byte{byte(len(head) + 1)}, head...)
		cell := append(short(len(head)+len(body)), 1)
		return append(append(cell, head...), body...)
	}
	schema, inner, leaf := make([]byte, size), make([]byte, size), make([]byte, size)
	copy(schema, Magic)
	be.PutUint16(schema[16:], 1)
	be.PutUint32(schema[56:], 1)
	schema[100] = 13
	be.PutUint16(schema[103:], 1)
	be.PutUint16(schema[108:], 60000)
	copy(schema[60000:], row("table", "part", "part", 2, "CREATE TABLE part(id,message_id,session_id)"))
	inner[0] = 5
	be.PutUint16(inner[3:], 10000)
	be.PutUint32(inner[8:], 3)
	be.PutUint32(inner[50000:], 3)
	for i := range 10000 {
		be.PutUint16(inner[12+2*i:], 50000)
	}
	leaf[0] = 13
	be.PutUint16(leaf[3:], 20000)
	for i := range 20000 {
		be.PutUint16(leaf[8+2*i:], 50000)
	}
	copy(leaf[50000:], row("i", string(bytes.Repeat([]byte("x"), 4000)), "s"))
	file := bytes.Join([][]byte{schema, inner, leaf}, nil)

	log := make([]byte, 32)
	be.PutUint32(log, 0x377f0683)
	be.PutUint32(log[8:], size)
	s0, s1 := checksum(be, 0, 0, log[:24])
	be.PutUint32(log[24:], s0)
	be.PutUint32(log[28:], s1)
	frame := make([]byte, 24+size)
	be.PutUint32(frame, 3)
	be.PutUint32(frame[4:], 4_000_000_000)
	copy(frame[24:], leaf)
	s0, s1 = checksum(be, s0, s1, frame[:8])
	s0, s1 = checksum(be, s0, s1, frame[24:])
	be.PutUint32(frame[16:], s0)
	be.PutUint32(frame[20:], s1)
	log = append(log, frame...)

	d, err := Open(bytes.NewReader(file), int64(len(file)), bytes.NewReader(log), int64(len(log)))
	if err != nil {
		t.Fatal(err)
	}
	part, err := d.Table("part")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	err = part.Rows(4<<10, func(int64, *Row) error { rows++; return nil })
	if !errors.Is(err, ErrDamaged) || rows > 100 {
		t.Errorf("%d rows, then %v", rows, err)
	}
}
