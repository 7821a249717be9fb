package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A log that has reached [Options.MaxFileBytes] continues in a new file of the same name. The full file is
// renamed: the sequence number of its last entry, with seqDigits digits, is appended, so that names
// sort in the order of entries. The hash chain continues: the first entry of a file contains the hash
// of the last entry of the previous file.
const seqDigits = 12

func rotatedFilePath(path string, lastSeq uint64) string {
	return fmt.Sprintf("%s.%0*d", path, seqDigits, lastSeq)
}

// listRotatedFiles returns the paths of a log's full files, oldest first.
func listRotatedFiles(path string) ([]string, error) {
	dir, base := filepath.Dir(path), filepath.Base(path)+"."
	entries, err := os.ReadDir(dir) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for audit logs: %w", err)
	}
	var full []string
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), base)
		if ok && len(number) == seqDigits && strings.Trim(number, "0123456789") == "" {
			full = append(full, filepath.Join(dir, e.Name()))
		}
	}
	return full, nil
}

// openRead opens one file of a log for reading.
func openRead(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is not a regular file; remove it, or name another with audit.file", path)
	}
	return f, nil
}

// LogFilePaths returns the paths of all files of a log, the current one last, even if it does not exist.
func LogFilePaths(path string) ([]string, error) {
	full, err := listRotatedFiles(path)
	return append(full, path), err
}

// A logFiles iterates over the files of a log, oldest first.
type logFiles struct {
	rotatedPaths     []string
	current          *os.File // nil before the first file
	lastReturnedFile *os.File // the file that nextFile returned most recently
}

// openLogFiles opens a log with all its files. The error is [fs.ErrNotExist] if there are none.
func openLogFiles(path string) (*logFiles, error) {
	// Open the current file first: if it is renamed to a full file meanwhile, it is found twice rather
	// than missed.
	current, err := openRead(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := &logFiles{current: current}
	full, ferr := listRotatedFiles(path)
	if ferr != nil {
		s.closeFiles()
		return nil, ferr
	}
	if s.rotatedPaths = full; current != nil {
		s.rotatedPaths = rotatedFilesBefore(full, current)
	}
	if current == nil && len(s.rotatedPaths) == 0 {
		return nil, fmt.Errorf("the audit log is missing: %w; restore it from a backup, or run 'shield doctor --repair-audit'", err)
	}
	return s, nil
}

// nextFile returns the next file, or io.EOF.
func (s *logFiles) nextFile() (string, io.Reader, error) {
	if s.lastReturnedFile != nil {
		s.lastReturnedFile.Close()
		s.lastReturnedFile = nil
	}
	if len(s.rotatedPaths) > 0 {
		f, err := openRead(s.rotatedPaths[0])
		if err != nil {
			return "", nil, err
		}
		s.lastReturnedFile, s.rotatedPaths = f, s.rotatedPaths[1:]
	} else {
		s.lastReturnedFile, s.current = s.current, nil
	}
	if s.lastReturnedFile == nil {
		return "", nil, io.EOF
	}
	return s.lastReturnedFile.Name(), s.lastReturnedFile, nil
}

func (s *logFiles) closeFiles() {
	for _, f := range []*os.File{s.lastReturnedFile, s.current} {
		if f != nil {
			f.Close()
		}
	}
}

// A Reader reads all files of a log as one.
type Reader struct {
	files       *logFiles
	current     io.Reader
	atLineStart bool // the last byte was a line feed
}

// OpenAllLogFiles opens a log for reading, with all its files, the oldest first.
func OpenAllLogFiles(path string) (*Reader, error) {
	s, err := openLogFiles(path)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	return &Reader{files: s, atLineStart: true}, nil
}

// Read implements [io.Reader]. If a file does not end with a line feed, one is added.
func (r *Reader) Read(p []byte) (int, error) {
	for {
		if r.current != nil {
			n, err := r.current.Read(p)
			if n > 0 {
				r.atLineStart = p[n-1] == '\n'
				return n, nil
			}
			if err == nil || !errors.Is(err, io.EOF) {
				return n, err
			}
			r.current = nil
		}
		_, next, err := r.files.nextFile()
		if err != nil {
			return 0, err
		}
		if r.current = next; !r.atLineStart && len(p) > 0 {
			r.atLineStart, p[0] = true, '\n'
			return 1, nil
		}
	}
}

// Close closes the log.
func (r *Reader) Close() error {
	r.files.closeFiles()
	return nil
}
