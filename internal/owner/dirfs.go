package owner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// DirFSOfRegularFiles returns the files of a folder, as [os.DirFS] does, but opens only regular files and
// folders: opening a FIFO would wait for its other side, and opening a device may have an effect.
func DirFSOfRegularFiles(dir string) fs.FS { return regularFilesFS(dir) }

type regularFilesFS string

// Open implements [fs.FS].
func (d regularFilesFS) Open(name string) (fs.File, error) {
	fail := func(err error) (fs.File, error) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return fail(fs.ErrInvalid)
	}
	path := filepath.Join(string(d), filepath.FromSlash(name))
	usable := func(m fs.FileMode) bool { return m.IsRegular() || m.IsDir() }
	before, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !usable(before.Mode()) {
		return fail(errors.New("the path is not a regular file; put a regular file there"))
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblocking, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !usable(info.Mode()) { // it was replaced in between
		f.Close()
		return fail(errors.New("the path is not a regular file; put a regular file there"))
	}
	return f, nil
}
