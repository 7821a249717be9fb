package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Tail writes the last n lines of the log at path to w. With follow it goes on
// with what is appended, looking for it each poll, until ctx ends; it returns
// nil then.
func Tail(ctx context.Context, w io.Writer, path string, n int, follow bool, poll time.Duration) error {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	at, err := lastLines(f, n)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
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
		if g := replaced(path, f); g != nil { // the log goes on in another file
			f.Close()
			f, at = g, 0
		}
	}
}

// replaced opens the file that path stands for if it is not f any more.
func replaced(path string, f *os.File) *os.File {
	named, err := os.Lstat(path)
	info, ferr := f.Stat()
	if err != nil || ferr != nil || os.SameFile(named, info) {
		return nil
	}
	g, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil
	}
	return g
}

// lastLines returns where the last n lines of a file begin, reading it from
// its end.
func lastLines(f *os.File, n int) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	at, b := info.Size(), make([]byte, 64<<10)
	for ends := 0; at > 0; {
		from := max(at-int64(len(b)), 0)
		part := b[:at-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] == '\n' {
				if ends++; ends > n {
					return from + int64(i) + 1, nil
				}
			}
		}
		at = from
	}
	return 0, nil
}

// copyLines writes the whole lines from at on and returns where they end.
func copyLines(w io.Writer, f *os.File, at int64) (int64, error) {
	lines := newLines(io.NewSectionReader(f, at, 1<<62))
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return at, nil
		case errors.Is(err, errLongLine):
			return at, fmt.Errorf("read audit log: %w", err)
		case err != nil:
			return at, fmt.Errorf("read audit log: %w", err)
		}
		at += int64(len(line)) + 1
		if _, err := w.Write(append(visible(line), '\n')); err != nil {
			return at, err
		}
	}
}
