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
// link leads, "" for what is none. The error is that of the look.
func (looker) at(path string) (target string, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return "", nil
	}
	target, err = os.Readlink(path)
	target = filepath.ToSlash(target)
	if len(target) > 1 && target[1] == ':' {
		target = target[2:]
	}
	if err == nil && target == "" {
		err = errUnseen
	}
	return target, err
}

// script reads a local script; see [effect.Place].
func (f *files) script(path string) ([]byte, error) {
	real, err := f.follow(path)
	if err != nil {
		return nil, err
	}
	// Neither a FIFO nor a device may hold up the analysis.
	if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() || info.Size() > maxScript {
		return nil, errUnseen
	}
	file, err := os.Open(real)
	if err != nil {
		return nil, errUnseen
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errUnseen
	}
	text, err := io.ReadAll(io.LimitReader(file, maxScript+1))
	if err != nil || len(text) > maxScript {
		return nil, errUnseen
	}
	return text, nil
}
