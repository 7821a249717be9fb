//go:build !linux

package analysis

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func splitRoot(path string) (root, rest string) {
	if len(path) > 1 && path[1] == ':' {
		return path[:2], strings.TrimPrefix(path[2:], "/")
	}
	return "", strings.TrimPrefix(path, "/")
}

// A localSymlinkReader looks up the targets of symbolic links. It needs no state on this system.
type localSymlinkReader struct{}

// lastChangeTime returns the modification time of a file.
func lastChangeTime(info fs.FileInfo) time.Time { return info.ModTime() }

func newLocalFileInspector() *localFileInspector { return &localFileInspector{} }

// folderStampOf returns no stamp: not every system has a ctime that programs cannot set.
func folderStampOf(string) (s folderStamp, ok bool) { return s, false }

func (*localFileInspector) newLocalLinkLookup() localSymlinkReader { return localSymlinkReader{} }

func (*localFileInspector) allowInspectingFileSystem(string) {}

// linkTarget looks up a name whose parent folders are resolved. target is the target of a symbolic link, "" for
// anything else. The error is that of the lookup.
func (localSymlinkReader) linkTarget(path string) (target string, err error) {
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
		err = errPathNotInspected
	}
	return target, err
}

// open opens a regular file by a path without symbolic links.
func (f *localFileInspector) open(real string) (*os.File, error) {
	// Opening a FIFO or device could block the analysis.
	if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() {
		return nil, errPathNotInspected
	}
	file, err := os.Open(real)
	if err != nil {
		return nil, errPathNotInspected
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, errPathNotInspected
	}
	return file, nil
}
