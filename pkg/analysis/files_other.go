//go:build !linux

package analysis

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

func cutRoot(path string) (root, rest string) {
	if len(path) > 1 && path[1] == ':' {
		return path[:2], strings.TrimPrefix(path[2:], "/")
	}
	return "", strings.TrimPrefix(path, "/")
}

// A looker looks up names.
type looker struct{}

func newFiles() *files { return &files{} }

func (*files) newLooker() looker { return looker{} }

func (*files) trust(string) {}

// at looks up one name whose folders are resolved. target is where a symbolic
// link leads, "" for what is none. found is false for what does not exist.
func (looker) at(path string) (target string, found bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", false
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return "", true
	}
	target, err = os.Readlink(path)
	target = filepath.ToSlash(target)
	if len(target) > 1 && target[1] == ':' {
		target = target[2:]
	}
	return target, err == nil && target != ""
}

// script reads a local script; see [effect.Place].
func (f *files) script(path string) ([]byte, bool) {
	real, whole := f.follow(path)
	if !whole {
		return nil, false
	}
	// Neither a FIFO nor a device may hold up the analysis.
	if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() || info.Size() > maxScript {
		return nil, false
	}
	file, err := os.Open(real)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	text, err := io.ReadAll(io.LimitReader(file, maxScript+1))
	if err != nil || len(text) > maxScript {
		return nil, false
	}
	return text, true
}
