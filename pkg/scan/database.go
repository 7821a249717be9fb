package scan

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/sqlitefile"
)

// Limits for reading an SQLite database with transcripts.
const (
	maxMessagePartsPerDatabase = 4 << 20
	maxDatabaseRowPrefixBytes  = 4 << 10 // bytes at the start of a row that are searched for its keys

	maxTotalSortKeyBytes = 256 << 20 // bytes of the keys of all rows
)

// openDatabase opens an SQLite database with its write-ahead log.
func openDatabase(name string) (db *sqlitefile.DB, end func(), err error) {
	var files []*os.File
	end = func() {
		for _, f := range files {
			f.Close()
		}
	}
	var size [2]int64
	for i, path := range []string{name, name + "-wal"} {
		f, err := owner.OpenNoFollow(path)
		if i == 1 && errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err == nil {
			files = append(files, f)
			var info fs.FileInfo
			if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
				err = errors.New("the database is not a regular file; put a regular file there")
			}
			if err == nil {
				size[i] = info.Size()
			}
		}
		if err != nil {
			end()
			return nil, nil, err
		}
	}
	var log io.ReaderAt
	if len(files) == 2 {
		log = files[1]
	}
	if db, err = sqlitefile.Open(files[0], size[0], log, size[1]); err != nil {
		end()
		return nil, nil, err
	}
	return db, end, nil
}

// isDatabase reports whether a file starts with the SQLite header.
func isDatabase(name string) bool {
	f, err := owner.OpenNoFollow(name)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, len(sqlitefile.Magic))
	_, err = io.ReadFull(f, start)
	return err == nil && string(start) == sqlitefile.Magic
}

// addDatabase adds the sessions of a database, each as one file.
func (f *transcriptFinder) addDatabase(s *transcriptSource, name string) error {
	db, end, err := openDatabase(name)
	if err != nil {
		return err
	}
	defer end()
	sessions, err := db.Table("session")
	if err != nil {
		return err
	}
	parts, err := db.Table("part")
	if err != nil {
		return err
	}
	type session struct {
		parent, folder string
		rows           []messagePartRow
	}
	all := map[string]*session{}
	n := 0
	err = sessions.Rows(maxDatabaseRowPrefixBytes, func(_ int64, r *sqlitefile.Row) error {
		if n++; n > maxTranscriptFiles {
			return fmt.Errorf("the database has more than %d sessions; delete old ones in the host", maxTranscriptFiles)
		}
		all[r.Text("id")] = &session{parent: r.Text("parent_id"), folder: r.Text("directory")}
		return nil
	})
	if err != nil {
		return err
	}
	n = 0
	keys := 0
	err = parts.Rows(maxDatabaseRowPrefixBytes, func(rowid int64, r *sqlitefile.Row) error {
		if n++; n > maxMessagePartsPerDatabase {
			return fmt.Errorf("the database has more than %d parts of messages; delete old sessions in the host", maxMessagePartsPerDatabase)
		}
		if one := all[r.Text("session_id")]; one != nil {
			key := r.Text("message_id") + " " + r.Text("id")
			if keys += len(key); keys > maxTotalSortKeyBytes {
				return fmt.Errorf("the IDs of all messages have more than %d bytes in total; delete old sessions, with their messages, in the host", maxTotalSortKeyBytes)
			}
			one.rows = append(one.rows, messagePartRow{key, rowid, r.BytesInFile})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range sorted.Keys(all) {
		one := all[id]
		if len(one.rows) == 0 {
			continue
		}
		if len(f.files) >= maxTranscriptFiles {
			return fmt.Errorf("the database has more than %d sessions; delete old ones in the host", maxTranscriptFiles)
		}
		sorted.SortStableBy(one.rows, func(a, b messagePartRow) int { return strings.Compare(a.sortKey, b.sortKey) })
		top := id
		for range 16 { // a sub-agent belongs to the session that started it
			if up := all[all[top].parent]; up == nil {
				break
			}
			top = all[top].parent
		}
		size := int64(0)
		for i := range one.rows {
			size += one.rows[i].sizeBytes
			one.rows[i].sortKey = ""
		}
		f.files = append(f.files, transcript{source: s, filePath: name, size: size, conversationID: name + "#" + top, sessionID: id, workingFolder: one.folder, rows: one.rows})
	}
	return nil
}

// A messagePartRow is the position of a message part in a database.
type messagePartRow struct {
	sortKey   string // sort key: IDs increase with time
	rowid     int64
	sizeBytes int64 // in bytes
}

// readRows reads the message parts of a session from a database, in the order of f.rows, and passes the JSON
// text and the number, from 1, of each part to read. A part that is longer than maxRecordBytes is counted as an
// unknown record.
func readRows(f transcript, read func(jsontext.Value, int) error, to recordSink, progress func(int64)) error {
	db, end, err := openDatabase(f.filePath)
	if err != nil {
		return err
	}
	defer end()
	parts, err := db.Table("part")
	if err != nil {
		return err
	}
	to.handleFolderChange(f.workingFolder)
	for i, at := range f.rows {
		r, err := parts.Row(at.rowid, maxRecordBytes)
		if err != nil {
			return err
		}
		progress(at.sizeBytes)
		switch {
		case r == nil: // deleted since it was listed
		case r.Truncated:
			to.countUnknownRecordKind(tooLongRecord)
		default:
			if err := read(jsontext.Value(r.Text("data")), i+1); err != nil {
				return err
			}
		}
	}
	return nil
}
