package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Tail writes the last n lines of the log at path to w, reading older files if needed. With follow it
// also writes appended lines, checking every poll interval, and returns nil when ctx ends.
func Tail(ctx context.Context, w io.Writer, path string, n int, follow bool, poll time.Duration) error {
	f, err := openRead(path)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer func() { f.Close() }()
	at, missing, err := lastLinesOffset(f, n)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	if err := writeRotatedFilesTail(w, path, f, missing); err != nil {
		return err
	}
	tick := time.NewTicker(max(poll, time.Millisecond))
	defer tick.Stop()
	for {
		if at, err = copyLines(w, f, at); err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		g := openIfReplaced(path, f)
		if g == nil {
			continue
		}
		// The log continues in a new file. First write the rest of this file, and the full files after
		// it.
		if _, err = copyLines(w, f, at); err == nil {
			err = copyRotatedFilesBetween(w, path, f, g)
		}
		f.Close()
		if f, at = g, 0; err != nil {
			return err
		}
	}
}

// writeRotatedFilesTail writes the last n lines of the files before a log's current file.
func writeRotatedFilesTail(w io.Writer, path string, current *os.File, lineCount int) error {
	full, err := listRotatedFiles(path)
	if err != nil || lineCount <= 0 {
		return err
	}
	type part struct {
		f  *os.File
		at int64
	}
	var parts []part
	defer func() {
		for _, p := range parts {
			p.f.Close()
		}
	}()
	full = rotatedFilesBefore(full, current)
	for i := len(full) - 1; i >= 0 && lineCount > 0; i-- {
		f, err := openRead(full[i])
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		p := part{f: f}
		if p.at, lineCount, err = lastLinesOffset(f, lineCount); err != nil {
			f.Close()
			return fmt.Errorf("read audit log: %w", err)
		}
		parts = append(parts, p)
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if _, err := copyLines(w, parts[i].f, parts[i].at); err != nil {
			return err
		}
	}
	return nil
}

// copyRotatedFilesBetween writes the full log files that are newer than previousFile and older than
// currentFile.
func copyRotatedFilesBetween(w io.Writer, path string, previousFile, currentFile *os.File) error {
	full, err := listRotatedFiles(path)
	if err != nil {
		return err
	}
	older := rotatedFilesBefore(full, previousFile)
	if len(older) == len(full) { // previousFile is not a renamed full file: another program replaced the log
		return nil
	}
	for _, name := range rotatedFilesBefore(full, currentFile)[len(older)+1:] {
		f, err := openRead(name)
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		_, err = copyLines(w, f, 0)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// rotatedFilesBefore returns the full files before f, or all of them if f is not a full file.
func rotatedFilesBefore(rotatedPaths []string, f *os.File) []string {
	info, err := f.Stat()
	if err != nil {
		return rotatedPaths
	}
	for i, name := range rotatedPaths {
		if named, err := os.Lstat(name); err == nil && os.SameFile(named, info) {
			return rotatedPaths[:i]
		}
	}
	return rotatedPaths
}

// openIfReplaced opens the file at path if it is not previousFile; otherwise it returns nil.
func openIfReplaced(path string, previousFile *os.File) *os.File {
	named, err := os.Lstat(path)
	info, ferr := previousFile.Stat()
	if err != nil || ferr != nil || os.SameFile(named, info) {
		return nil
	}
	g, err := openRead(path)
	if err != nil {
		return nil
	}
	return g
}

// lastLinesOffset returns the offset at which the last n lines of a file begin, reading the file
// from its end. If the file has fewer than n lines, missingLineCount is the number of lines that
// are missing.
func lastLinesOffset(f *os.File, n int) (offset int64, missingLineCount int, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	ends, b := 0, make([]byte, 64<<10)
	for offset = info.Size(); offset > 0; {
		from := max(offset-int64(len(b)), 0)
		part := b[:offset-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] == '\n' {
				if ends++; ends > n {
					return from + int64(i) + 1, 0, nil
				}
			}
		}
		offset = from
	}
	return 0, max(n-ends, 0), nil
}

// copyLines writes the complete lines from offset at and returns the offset of their end.
func copyLines(w io.Writer, f *os.File, at int64) (int64, error) {
	lines := newLineReader(io.NewSectionReader(f, at, 1<<62))
	for {
		line, err := lines.nextLine()
		switch {
		case errors.Is(err, io.EOF):
			return at, nil
		case errors.Is(err, errLongLine):
			return at, fmt.Errorf("read audit log: %w", err)
		case err != nil:
			return at, fmt.Errorf("read audit log: %w", err)
		}
		at += int64(len(line)) + 1
		if _, err := w.Write(append(escapeNonprinting(line), '\n')); err != nil {
			return at, err
		}
	}
}
