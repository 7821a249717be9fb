package scan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/owner"
)

// maxRecordBytes is the length of the longest record that is read, in bytes.
const maxRecordBytes = 16 << 20

// errMaxRecordsRead stops the reading of a file after enough records.
var errMaxRecordsRead = errors.New("enough records")

// readRecords reads the records of a file. maxRecords is the maximum number of records; 0 means all. A database
// is always read completely. progress receives the number of bytes read; it can be nil.
func readRecords(f transcript, to recordSink, maxRecords int, progress func(n int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	if f.source.RecordFormat == recordFormatSQLite {
		r := readerConstructors[f.source.Reader](f.source)
		return readRows(f, func(raw jsontext.Value, n int) error {
			if !r.tryReadRecord(raw, transcriptPosition{f.filePath, n}, to) {
				to.countUnknownRecordKind(unreadableRecord)
			}
			return nil
		}, to, progress)
	}
	in, err := owner.OpenNoFollow(f.filePath)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("the path is not a regular file; put a regular file there")
	}
	from := io.Reader(io.LimitReader(in, info.Size())) // the host can append meanwhile
	if cwd := workingFolderFromSiblingFile(f); cwd != "" && maxRecords == 0 {
		to.handleFolderChange(cwd)
	}
	r := readerConstructors[f.source.Reader](f.source)
	n := 0
	read := func(raw jsontext.Value, line int) error {
		if !r.tryReadRecord(raw, transcriptPosition{f.filePath, line}, to) {
			to.countUnknownRecordKind(unreadableRecord)
		}
		if n++; n == maxRecords {
			return errMaxRecordsRead
		}
		return nil
	}
	if f.source.RecordFormat == recordFormatJSONDocument {
		err = readDocument(from, read, to, progress)
	} else {
		err = readLines(from, read, to, progress)
	}
	if errors.Is(err, errMaxRecordsRead) {
		return nil
	}
	return err
}

// Kinds of invalid records. They are counted like the unknown kinds of records that transcripts
// contain.
const (
	unreadableRecord = "unreadable record"
	tooLongRecord    = "record over 16 MiB"
	truncatedRecord  = "record that is truncated"
)

// readLines reads JSON Lines.
func readLines(from io.Reader, read func(jsontext.Value, int) error, to recordSink, progress func(int64)) error {
	in := bufio.NewReaderSize(from, 256<<10)
	var long []byte
	for line := 1; ; line++ {
		raw, err := in.ReadSlice('\n')
		size := int64(len(raw))
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], raw...)
			over := false
			for errors.Is(err, bufio.ErrBufferFull) {
				raw, err = in.ReadSlice('\n')
				size += int64(len(raw))
				if over = over || len(long)+len(raw) > maxRecordBytes; !over {
					long = append(long, raw...)
				}
			}
			raw = long
			if over {
				to.countUnknownRecordKind(tooLongRecord)
				raw = nil
			}
			if cap(long) > 4<<20 {
				long = nil
			}
		}
		progress(size)
		end := errors.Is(err, io.EOF)
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			if end && !jsontext.Value(raw).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
				to.countUnknownRecordKind(truncatedRecord)
			} else if err := read(raw, line); err != nil {
				return err
			}
		}
		switch {
		case end:
			return nil
		case err != nil:
			return err
		}
	}
}

// A limitedProgressReader counts the bytes read from a stream, and fails if one value is longer than maxRecordBytes.
type limitedProgressReader struct {
	input     io.Reader
	bytesLeft int64
	progress  func(int64)
}

func (g *limitedProgressReader) Read(p []byte) (int, error) {
	if g.bytesLeft <= 0 {
		return 0, fmt.Errorf("a value larger than %d MiB, which shield does not read", maxRecordBytes>>20)
	}
	n, err := g.input.Read(p[:min(len(p), 64<<10)])
	g.bytesLeft -= int64(n)
	g.progress(int64(n))
	return n, err
}

// readDocument reads the messages of a JSON document: an array, or an object with an array "messages".
func readDocument(from io.Reader, read func(jsontext.Value, int) error, to recordSink, progress func(int64)) error {
	g := &limitedProgressReader{from, maxRecordBytes, progress}
	d := jsontext.NewDecoder(g, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	cut := func(err error) error {
		if err != nil && !errors.Is(err, errMaxRecordsRead) {
			to.countUnknownRecordKind(truncatedRecord)
			return nil
		}
		return err
	}
	list := func() error {
		if _, err := d.ReadToken(); err != nil {
			return cut(err)
		}
		for n := 1; d.PeekKind() != ']'; n++ {
			g.bytesLeft = maxRecordBytes
			raw, err := d.ReadValue()
			if err != nil {
				return cut(err)
			}
			if err := read(raw, n); err != nil {
				return err
			}
		}
		_, err := d.ReadToken()
		return cut(err)
	}
	switch d.PeekKind() {
	case '[':
		return list()
	case '{':
	default:
		return cut(io.ErrUnexpectedEOF)
	}
	if _, err := d.ReadToken(); err != nil {
		return cut(err)
	}
	for d.PeekKind() == '"' {
		g.bytesLeft = maxRecordBytes
		name, err := d.ReadToken()
		if err != nil {
			return cut(err)
		}
		if name.String() == "messages" && d.PeekKind() == '[' {
			if err := list(); err != nil {
				return err
			}
			continue
		}
		if err := d.SkipValue(); err != nil {
			return cut(err)
		}
	}
	if d.PeekKind() != '}' {
		return cut(io.ErrUnexpectedEOF)
	}
	return nil
}

// workingFolderFromSiblingFile returns the working folder of a conversation, read from a file beside its
// transcript or, for Gemini CLI, in the parent folder; "" if unknown.
func workingFolderFromSiblingFile(f transcript) string {
	switch f.source.Host {
	case "gemini-cli":
		data, _, err := owner.ReadRegularFile(filepath.Join(filepath.Dir(filepath.Dir(f.filePath)), ".project_root"), 4096)
		if err == nil {
			return strings.TrimSpace(string(data))
		}
	case "cline":
		base, _, _ := strings.Cut(filepath.Base(f.filePath), ".")
		data, _, err := owner.ReadRegularFile(filepath.Join(filepath.Dir(f.filePath), base+".json"), 1<<20)
		var about struct {
			CWD           string `json:"cwd"`
			WorkspaceRoot string `json:"workspaceRoot"`
			Workspace     string `json:"workspace_root"`
		}
		if err == nil && decodeLenientJSON(data, &about) == nil {
			for _, dir := range []string{about.CWD, about.WorkspaceRoot, about.Workspace} {
				if dir != "" {
					return dir
				}
			}
		}
	}
	return ""
}
