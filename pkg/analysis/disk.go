package analysis

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
)

// A localNoSymlinkDisk gives package committed access to files. Paths through a symbolic link or on a file system that is
// not local are errors.
type localNoSymlinkDisk struct{ files *localFileInspector }

// checkFolderHasNoSymlink returns an error if a folder's path goes through a symbolic link or cannot be looked at.
func (d localNoSymlinkDisk) checkFolderHasNoSymlink(dir string) error {
	real, err := d.files.resolvePath(dir)
	if err == nil && real != dir {
		return errPathNotInspected
	}
	return err
}

func (d localNoSymlinkDisk) Lstat(name string) (fs.FileInfo, error) {
	if err := d.checkFolderHasNoSymlink(path.Dir(name)); err != nil {
		return nil, err
	}
	if e, known := d.files.overlayEntryAt(name); known {
		if e.Deleted {
			return nil, fs.ErrNotExist
		}
		return overlayFileInfo{path.Base(name), e}, nil
	}
	look := d.files.newLocalLinkLookup()
	if _, err := look.linkTarget(name); err != nil {
		return nil, err
	}
	return os.Lstat(name)
}

func (d localNoSymlinkDisk) Open(name string) (*os.File, error) {
	if err := d.checkFolderHasNoSymlink(name); err != nil {
		return nil, err
	}
	return d.files.open(name)
}

func (d localNoSymlinkDisk) Readlink(name string) (string, error) {
	if err := d.checkFolderHasNoSymlink(path.Dir(name)); err != nil {
		return "", err
	}
	return os.Readlink(name)
}

func (d localNoSymlinkDisk) ReadDir(name string, most int) ([]fs.DirEntry, error) {
	if err := d.checkFolderHasNoSymlink(name); err != nil {
		return nil, err
	}
	if d.files.overlay != nil {
		return d.files.readDirWithOverlay(name, most)
	}
	return readDir(name, most)
}

// readDir returns the entries of a folder on disk. most is the maximum number of entries.
func readDir(name string, most int) ([]fs.DirEntry, error) {
	dir, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var out []fs.DirEntry
	for len(out) < most {
		more, err := dir.ReadDir(most - len(out))
		out = append(out, more...)
		if err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return nil, err
		}
	}
	return out, nil
}
