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

// maxRecord is the length of the longest record that is read, in bytes.
const maxRecord = 16 << 20

// errEnough stops the reading of a file after enough records.
var errEnough = errors.New("enough records")

// records reads the records of a file, at most most of them unless most is 0. progress receives the
// number of bytes read.
func records(f file, to sink, most int, progress func(n int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	if f.source.Form == database {
		r := readers[f.source.Reader](f.source)
		return readRows(f, func(raw jsontext.Value, n int) error {
			if !r.record(raw, place{f.name, n}, to) {
				to.unknown(unreadable)
			}
			return nil
		}, to, progress)
	}
	in, err := owner.Open(f.name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("the path is not a regular file; replace it with the file itself")
	}
	from := io.Reader(io.LimitReader(in, info.Size())) // the host can append meanwhile
	if cwd := folderBeside(f); cwd != "" && most == 0 {
		to.folder(cwd)
	}
	r := readers[f.source.Reader](f.source)
	n := 0
	read := func(raw jsontext.Value, line int) error {
		if !r.record(raw, place{f.name, line}, to) {
			to.unknown(unreadable)
		}
		if n++; n == most {
			return errEnough
		}
		return nil
	}
	if f.source.Form == document {
		err = readDocument(from, read, to, progress)
	} else {
		err = readLines(from, read, to, progress)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Kinds of invalid records, counted with the kinds that hosts name.
const (
	unreadable = "unreadable record"
	tooLong    = "record over 16 MiB"
	cutOff     = "record that is truncated"
)

// readLines reads JSON Lines.
func readLines(from io.Reader, read func(jsontext.Value, int) error, to sink, progress func(int64)) error {
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
				if over = over || len(long)+len(raw) > maxRecord; !over {
					long = append(long, raw...)
				}
			}
			raw = long
			if over {
				to.unknown(tooLong)
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
				to.unknown(cutOff)
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

// A gauge counts the bytes read from a stream, and fails if one value is longer than maxRecord.
type gauge struct {
	from     io.Reader
	left     int64
	progress func(int64)
}

func (g *gauge) Read(p []byte) (int, error) {
	if g.left <= 0 {
		return 0, fmt.Errorf("a value larger than %d MiB, which shield does not read", maxRecord>>20)
	}
	n, err := g.from.Read(p[:min(len(p), 64<<10)])
	g.left -= int64(n)
	g.progress(int64(n))
	return n, err
}

// readDocument reads the messages of a JSON document: an array, or an object with an array "messages".
func readDocument(from io.Reader, read func(jsontext.Value, int) error, to sink, progress func(int64)) error {
	g := &gauge{from, maxRecord, progress}
	d := jsontext.NewDecoder(g, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	cut := func(err error) error {
		if err != nil && !errors.Is(err, errEnough) {
			to.unknown(cutOff)
			return nil
		}
		return err
	}
	list := func() error {
		if _, err := d.ReadToken(); err != nil {
			return cut(err)
		}
		for n := 1; d.PeekKind() != ']'; n++ {
			g.left = maxRecord
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
		g.left = maxRecord
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

// folderBeside returns the folder of a conversation from a file beside its transcript, for Gemini CLI in the
// folder above; "" if unknown.
func folderBeside(f file) string {
	switch f.source.Host {
	case "gemini-cli":
		data, _, err := owner.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(f.name)), ".project_root"), 4096)
		if err == nil {
			return strings.TrimSpace(string(data))
		}
	case "cline":
		base, _, _ := strings.Cut(filepath.Base(f.name), ".")
		data, _, err := owner.ReadFile(filepath.Join(filepath.Dir(f.name), base+".json"), 1<<20)
		var about struct {
			CWD           string `json:"cwd"`
			WorkspaceRoot string `json:"workspaceRoot"`
			Workspace     string `json:"workspace_root"`
		}
		if err == nil && decode(data, &about) == nil {
			for _, dir := range []string{about.CWD, about.WorkspaceRoot, about.Workspace} {
				if dir != "" {
					return dir
				}
			}
		}
	}
	return ""
}
