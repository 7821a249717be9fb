// Package sqlitefile reads the tables of SQLite databases, with what their write-ahead log has committed, and
// changes neither. A file may hold anything: pages that form a circle, sizes that are not true and rows without
// end are errors. It reads UTF-8 texts in tables with a rowid; it knows no indexes, views and expressions, and
// takes no lock, so that a row that is written meanwhile can be an error.
//
// The form is described at https://www.sqlite.org/fileformat2.html.
package sqlitefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Magic begins each database.
const Magic = "SQLite format 3\x00"

// ErrDamaged is the error for a file that violates the SQLite file format.
var ErrDamaged = errors.New("damaged SQLite database")

func damagedError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// Bounds.
const (
	maxBTreeDepth  = 24      // levels of a table's B-tree
	maxWALFrames   = 4 << 20 // frames of a write-ahead log
	maxPages       = 4 << 20 // pages read in a walk through one table, even if a sparse file seems to have more
	maxSchemaBytes = 1 << 20 // bytes of the description of a table
)

// A DB is an open database. One goroutine at a time uses it.
type DB struct {
	mainFile             io.ReaderAt
	walFile              io.ReaderAt
	pageSize             int64
	usablePageBytes      int              // usable bytes of each page
	pageCount            uint32           // as the database says
	maxPagesPerTableWalk int64            // limit of pages read in a walk through one table: as many as the file and its log have, at most maxPages
	walOffsetByPage      map[uint32]int64 // where the log has a page
}

// Open reads the header of a database of size bytes, and the frames of its log. wal is nil if there is none.
func Open(main io.ReaderAt, size int64, wal io.ReaderAt, walSize int64) (*DB, error) {
	h := make([]byte, 100)
	if _, err := main.ReadAt(h, 0); err != nil || string(h[:16]) != Magic {
		return nil, damagedError("it has no header")
	}
	d := &DB{mainFile: main, walFile: wal, pageSize: int64(binary.BigEndian.Uint16(h[16:]))}
	if d.pageSize == 1 {
		d.pageSize = 65536
	}
	if d.pageSize < 512 || d.pageSize&(d.pageSize-1) != 0 {
		return nil, damagedError("pages of %d bytes", d.pageSize)
	}
	if d.usablePageBytes = int(d.pageSize) - int(h[20]); d.usablePageBytes < 480 {
		return nil, damagedError("%d usable bytes a page", d.usablePageBytes)
	}
	d.pageCount = uint32(min(size/d.pageSize, 1<<32-2))
	if wal != nil {
		if err := d.readWALFrames(walSize); err != nil {
			return nil, err
		}
	}
	d.maxPagesPerTableWalk = min(size/d.pageSize+int64(len(d.walOffsetByPage)), int64(d.pageCount), maxPages)
	// The first page may be in the log.
	first, err := d.readPage(1)
	if err != nil {
		return nil, err
	}
	if code := binary.BigEndian.Uint32(first[56:]); code > 1 {
		return nil, errors.New("a SQLite database whose texts are not UTF-8")
	}
	return d, nil
}

// readWALFrames notes the frames that the log has committed: those up to the last that ends a transaction, as long as
// salts and checksums fit.
func (d *DB) readWALFrames(size int64) error {
	h := make([]byte, 32)
	if size < 32 {
		return nil
	}
	if _, err := d.walFile.ReadAt(h, 0); err != nil {
		return err
	}
	magic := binary.BigEndian.Uint32(h)
	if magic&^1 != 0x377f0682 || int64(binary.BigEndian.Uint32(h[8:])) != d.pageSize {
		return nil // not a log of this database: SQLite begins a new one
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	s0, s1 := checksum(order, 0, 0, h[:24])
	if s0 != binary.BigEndian.Uint32(h[24:]) || s1 != binary.BigEndian.Uint32(h[28:]) {
		return nil
	}
	d.walOffsetByPage = map[uint32]int64{}
	open := map[uint32]int64{} // offsets of the pages in a transaction that is not committed yet
	frame := make([]byte, 24+d.pageSize)
	for at, n := int64(32), 0; at+int64(len(frame)) <= size; at, n = at+int64(len(frame)), n+1 {
		if n == maxWALFrames {
			return damagedError("a log of more than %d frames", maxWALFrames)
		}
		if _, err := d.walFile.ReadAt(frame, at); err != nil {
			return err
		}
		if string(frame[8:16]) != string(h[16:24]) {
			return nil // the frame is from before the log was last restarted
		}
		s0, s1 = checksum(order, s0, s1, frame[:8])
		s0, s1 = checksum(order, s0, s1, frame[24:])
		if s0 != binary.BigEndian.Uint32(frame[16:]) || s1 != binary.BigEndian.Uint32(frame[20:]) {
			return nil
		}
		open[binary.BigEndian.Uint32(frame)] = at + 24
		if pages := binary.BigEndian.Uint32(frame[4:]); pages > 0 {
			for page, where := range open {
				d.walOffsetByPage[page] = where
			}
			clear(open)
			d.pageCount = pages
		}
	}
	return nil
}

// checksum continues the checksum s0, s1 of a SQLite write-ahead log with data, whose length is a
// multiple of 8 bytes.
func checksum(order binary.ByteOrder, s0, s1 uint32, data []byte) (a, b uint32) {
	for ; len(data) >= 8; data = data[8:] {
		s0 += order.Uint32(data) + s1
		s1 += order.Uint32(data[4:]) + s0
	}
	return s0, s1
}

// readPage reads a page; the first is 1.
func (d *DB) readPage(n uint32) ([]byte, error) {
	if n == 0 || n > d.pageCount {
		return nil, damagedError("page %d of %d", n, d.pageCount)
	}
	b := make([]byte, d.pageSize)
	from, at := d.mainFile, int64(n-1)*d.pageSize
	if where, logged := d.walOffsetByPage[n]; logged {
		from, at = d.walFile, where
	}
	if _, err := from.ReadAt(b, at); err != nil {
		return nil, damagedError("page %d: %v", n, err)
	}
	return b, nil
}

// A tableBTreePage is a page of a table's tree.
type tableBTreePage struct {
	data           []byte
	isLeaf         bool
	cellOffsets    []int // offsets at which the cells begin
	rightmostChild uint32
}

func (d *DB) readTableBTreePage(n uint32) (*tableBTreePage, error) {
	b, err := d.readPage(n)
	if err != nil {
		return nil, err
	}
	at := 0
	if n == 1 {
		at = 100
	}
	x := &tableBTreePage{data: b[:d.usablePageBytes], isLeaf: b[at] == 13}
	first := at + 8
	if !x.isLeaf {
		if b[at] != 5 {
			return nil, damagedError("page %d is not of a table", n)
		}
		x.rightmostChild, first = binary.BigEndian.Uint32(b[at+8:]), at+12
	}
	count := int(binary.BigEndian.Uint16(b[at+3:]))
	if first+2*count > d.usablePageBytes {
		return nil, damagedError("page %d: %d cells", n, count)
	}
	for i := range count {
		cell := int(binary.BigEndian.Uint16(b[first+2*i:]))
		if cell < first || cell+4 > d.usablePageBytes {
			return nil, damagedError("page %d: a cell at %d", n, cell)
		}
		x.cellOffsets = append(x.cellOffsets, cell)
	}
	return x, nil
}

// parseVarint reads a number of up to nine bytes; n is 0 if there is none.
func parseVarint(b []byte) (v uint64, n int) {
	for i := range 9 {
		if i == len(b) {
			return 0, 0
		}
		if i == 8 {
			return v<<8 | uint64(b[i]), 9
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// A Table is a table with a rowid.
type Table struct {
	db       *DB
	rootPage uint32
	columns  []string
}

// Table returns a table by its name.
func (d *DB) Table(name string) (*Table, error) {
	schema := &Table{d, 1, []string{"type", "name", "tbl_name", "rootpage", "sql"}}
	var found *Table
	err := schema.Rows(maxSchemaBytes, func(_ int64, r *Row) error {
		if r.Text("type") != "table" || r.Text("name") != name {
			return nil
		}
		columns, err := parseColumns(r.Text("sql"))
		found = &Table{d, uint32(r.Int("rootpage")), columns}
		return err
	})
	if err == nil && found == nil {
		err = fmt.Errorf("the database has no table %s", name)
	}
	return found, err
}

// parseColumns returns the names of the columns that a CREATE TABLE describes.
func parseColumns(sql string) (names []string, err error) {
	_, body, found := strings.Cut(sql, "(")
	if !found || strings.Contains(strings.ToUpper(sql[max(0, len(sql)-40):]), "WITHOUT") {
		return nil, errors.New("a table of a form that is not read")
	}
	depth, quote, start := 0, byte(0), 0
	add := func(text string) {
		text = strings.TrimSpace(text)
		name := strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == '(' })
		if len(name) == 0 {
			return
		}
		switch strings.ToUpper(name[0]) {
		case "CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN":
			return
		}
		names = append(names, strings.Trim(name[0], "\"`[]'"))
	}
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ',' && depth == 0, c == ')':
			add(body[start:i])
			if start = i + 1; c == ')' {
				return names, nil
			}
		}
	}
	return nil, damagedError("a description of a table without an end")
}

// Rows calls fn with each row, in the order of their rowids, until it returns an error. At most
// maxRowBytes bytes of a row are read; fields behind them are empty.
func (t *Table) Rows(maxRowBytes int, fn func(rowid int64, r *Row) error) error {
	b := &readBudget{t.db.maxPagesPerTableWalk, t.db.maxPagesPerTableWalk * t.db.pageSize}
	return t.walkRows(t.rootPage, maxBTreeDepth, b, maxRowBytes, fn)
}

// A readBudget limits how many pages and bytes of a table's B-tree are read. An intact tree contains each page
// of the file at most once, and its rows share no bytes.
type readBudget struct{ pagesLeft, rowBytesLeft int64 }

func (t *Table) walkRows(page uint32, depth int, left *readBudget, most int, fn func(int64, *Row) error) error {
	if left.pagesLeft--; left.pagesLeft < 0 || depth == 0 {
		return damagedError("pages of a table form a circle")
	}
	x, err := t.db.readTableBTreePage(page)
	if err != nil {
		return err
	}
	for _, cell := range x.cellOffsets {
		if !x.isLeaf {
			if err := t.walkRows(binary.BigEndian.Uint32(x.data[cell:]), depth-1, left, most, fn); err != nil {
				return err
			}
			continue
		}
		size, _ := parseVarint(x.data[cell:])
		if size > uint64(left.rowBytesLeft) {
			return damagedError("rows are larger than the file")
		}
		left.rowBytesLeft -= int64(size)
		rowid, r, err := t.parseCell(x.data[cell:], most)
		if err == nil {
			err = fn(rowid, r)
		}
		if err != nil {
			return err
		}
	}
	if x.isLeaf {
		return nil
	}
	return t.walkRows(x.rightmostChild, depth-1, left, most, fn)
}

// Row returns the row with the given rowid; nil if there is none. The parameter most limits how many bytes of
// the row are read.
func (t *Table) Row(rowid int64, most int) (*Row, error) {
	page := t.rootPage
	for range maxBTreeDepth {
		x, err := t.db.readTableBTreePage(page)
		if err != nil {
			return nil, err
		}
		if x.isLeaf {
			for _, cell := range x.cellOffsets {
				if id, n, err := parseRowidAndPayloadOffset(x.data[cell:]); err != nil || id == rowid && n > 0 {
					if err != nil {
						return nil, err
					}
					_, r, err := t.parseCell(x.data[cell:], most)
					return r, err
				}
			}
			return nil, nil
		}
		page = x.rightmostChild
		for _, cell := range x.cellOffsets {
			key, n := parseVarint(x.data[cell+4:])
			if n == 0 {
				return nil, damagedError("a key is cut off")
			}
			if rowid <= int64(key) {
				page = binary.BigEndian.Uint32(x.data[cell:])
				break
			}
		}
	}
	return nil, damagedError("a tree of more than %d levels", maxBTreeDepth)
}

// parseRowidAndPayloadOffset returns the rowid of a cell, and how many bytes are before its payload.
func parseRowidAndPayloadOffset(cell []byte) (rowid int64, payloadOffset int, err error) {
	_, a := parseVarint(cell)
	id, b := parseVarint(cell[a:])
	if a == 0 || b == 0 {
		return 0, 0, damagedError("a cell is cut off")
	}
	return int64(id), a + b, nil
}

// parseCell reads the cell of a leaf.
func (t *Table) parseCell(cell []byte, most int) (int64, *Row, error) {
	size, _ := parseVarint(cell)
	rowid, n, err := parseRowidAndPayloadOffset(cell)
	if err != nil {
		return 0, nil, err
	}
	if size > uint64(t.db.pageCount)*uint64(t.db.pageSize) {
		return 0, nil, damagedError("a row of %d bytes", size)
	}
	usable := uint64(t.db.usablePageBytes)
	local := size
	if size > usable-35 {
		least := (usable-12)*32/255 - 23
		if local = least + (size-least)%(usable-4); local > usable-35 {
			local = least
		}
	}
	if uint64(len(cell)-n) < local {
		return 0, nil, damagedError("a row is cut off")
	}
	want := min(size, uint64(most))
	data := append([]byte(nil), cell[n:n+int(min(local, want))]...)
	if want > local {
		if len(cell)-n-int(local) < 4 {
			return 0, nil, damagedError("a row is cut off")
		}
		next := binary.BigEndian.Uint32(cell[n+int(local):])
		for uint64(len(data)) < want {
			page, err := t.db.readPage(next)
			if err != nil {
				return 0, nil, err
			}
			next = binary.BigEndian.Uint32(page)
			data = append(data, page[4:4+int(min(usable-4, want-uint64(len(data))))]...)
		}
	}
	r, err := t.parseRecord(data, size > want)
	if err == nil {
		r.BytesInFile = int64(size)
	}
	return rowid, r, err
}

// A Row holds the values in a row of a table. [Row.Text] and [Row.Int] return them by the name of their column.
type Row struct {
	Truncated   bool  // the row is longer than what was read
	BytesInFile int64 // size of the row in the file, in bytes
	names       []string
	fields      []field
}

type field struct {
	serialType uint64
	data       []byte
}

// parseRecord divides the data of a row.
func (t *Table) parseRecord(data []byte, cut bool) (*Row, error) {
	r := &Row{Truncated: cut, names: t.columns}
	size, n := parseVarint(data)
	if n == 0 || size > uint64(len(data)) || size < uint64(n) {
		return nil, damagedError("the header of a row")
	}
	header, rest := data[n:size], data[size:]
	for len(header) > 0 && len(r.fields) < len(t.columns) {
		kind, n := parseVarint(header)
		if n == 0 {
			return nil, damagedError("the header of a row")
		}
		header = header[n:]
		length := uint64(0)
		switch {
		case kind >= 12:
			length = (kind - 12) / 2
		case kind < 8:
			length = [...]uint64{0, 1, 2, 3, 4, 6, 8, 8}[kind]
		}
		if length > uint64(len(rest)) {
			if !cut {
				return nil, damagedError("a field is longer than its row")
			}
			return r, nil
		}
		r.fields = append(r.fields, field{kind, rest[:length]})
		rest = rest[length:]
	}
	return r, nil
}

func (r *Row) field(name string) (field, bool) {
	for i, f := range r.fields {
		if r.names[i] == name {
			return f, true
		}
	}
	return field{}, false
}

// Text returns a text or the bytes of a blob; "" for another value and for none.
func (r *Row) Text(name string) string {
	if f, ok := r.field(name); ok && f.serialType >= 12 {
		return string(f.data)
	}
	return ""
}

// Int returns an integer; 0 for another value and for none.
func (r *Row) Int(name string) int64 {
	f, ok := r.field(name)
	switch {
	case !ok || f.serialType > 9 || f.serialType == 7 || f.serialType == 0:
		return 0
	case f.serialType >= 8:
		return int64(f.serialType - 8)
	}
	v := int64(int8(f.data[0]))
	for _, b := range f.data[1:] {
		v = v<<8 | int64(b)
	}
	return v
}
