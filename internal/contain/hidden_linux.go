//go:build amd64 || arm64

package contain

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A mount is a line of /proc/self/mountinfo.
type mount struct{ device, root, point string } // root is the path in the file system that is mounted at point

// maxMountListBytes is how much of the mount list is read, in bytes.
const maxMountListBytes = 4 << 20

// readMounts returns the mounts, the latest last.
func readMounts() ([]mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	if len(text) > maxMountListBytes {
		return nil, errors.New("too many file systems are mounted to search them for hard links; unmount some, or use --contain without require")
	}
	var out []mount
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 5 {
			out = append(out, mount{f[2], decodeOctal(f[3]), decodeOctal(f[4])})
		}
	}
	return out, nil
}

// decodeOctal returns a path with the octal escapes of mountinfo decoded.
func decodeOctal(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// hiddenFilePathsInOtherMounts returns other paths of the hidden files, because their file system, or a part of it,
// is mounted more than once.
func hiddenFilePathsInOtherMounts(hidden []string, all []mount) (out []string) {
	for _, h := range hidden {
		at := -1
		for i, m := range all {
			if Within(h, []string{m.point}) && (at < 0 || len(m.point) >= len(all[at].point)) {
				at = i
			}
		}
		if at < 0 {
			continue
		}
		path := filepath.Join(all[at].root, strings.TrimPrefix(h, all[at].point))
		for i, m := range all {
			if i == at || m.device != all[at].device {
				continue
			}
			switch other := filepath.Join(m.point, strings.TrimPrefix(path, m.root)); {
			case Within(path, []string{m.root}):
				if other != h && sameFile(h, other) {
					out = append(out, other)
				}
			case Within(m.root, []string{path}): // only a part of the hidden path is mounted at m.point
				if !Within(m.point, hidden) {
					out = append(out, m.point)
				}
			}
		}
	}
	return out
}

// sameFile reports whether two paths lead to the same file. Another mount can cover one of the
// paths, so that it leads to another file.
func sameFile(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Lstat(a, &x) == nil && unix.Lstat(b, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}

// How many names are examined in one hidden folder: in the first search, and in a second one if the
// first ended before it had found out whether a file has another hard link.
const (
	maxHardLinkSearchEntries     = 1000
	maxDeepHardLinkSearchEntries = 100 * maxHardLinkSearchEntries
)

// An inode identifies a file independently of its names.
type inode struct{ device, number uint64 }

// A hardLinkedFile is a file with more than one hard link.
type hardLinkedFile struct {
	path               string
	hardLinkCount      int
	foundFolderEntries map[folderEntry]bool
}

// A folderEntry is a name in a folder, identified by inode, so that two paths to it are equal.
type folderEntry struct {
	folder inode
	name   string
}

// checkNoUnhiddenHardLinks returns an error if a hidden file has a hard link that is not hidden.
// incompleteFolders are the hidden folders with too many names to search completely. The limit is higher if
// useDeepLimit is set, or if the first search of a folder has found a file with several hard links.
func checkNoUnhiddenHardLinks(hiddenPaths []string, useDeepLimit bool) (incompleteFolders []string, _ error) {
	files := map[inode]*hardLinkedFile{}
	for _, h := range hiddenPaths {
		found, whole := findHardLinkedFiles(h, maxHardLinkSearchEntries)
		if !whole && (useDeepLimit || len(found) > 0) { // further hard links can be in the folders that were not searched
			found, whole = findHardLinkedFiles(h, maxDeepHardLinkSearchEntries)
		}
		if !whole {
			incompleteFolders = append(incompleteFolders, h)
		}
		for at, f := range found {
			if files[at] == nil {
				files[at] = f
			}
			maps.Copy(files[at].foundFolderEntries, f.foundFolderEntries)
		}
	}
	for _, f := range files {
		if len(f.foundFolderEntries) < f.hardLinkCount {
			return nil, fmt.Errorf("containment: %.200q has a second hard link, by which a contained program could read it; remove one of the two links", f.path)
		}
	}
	return incompleteFolders, nil
}

// findHardLinkedFiles returns the files with more than one hard link at or below a path. It
// examines at most entriesLeft names; isComplete is false if there are more.
func findHardLinkedFiles(path string, entriesLeft int) (found map[inode]*hardLinkedFile, isComplete bool) {
	found = map[inode]*hardLinkedFile{}
	var look func(dir int, name, path string)
	look = func(dir int, name, path string) {
		var st, folder unix.Stat_t
		if entriesLeft--; entriesLeft < 0 || unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			if fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
				forEachEntry(fd, func(name string, kind byte) {
					if kind != unix.DT_LNK && entriesLeft >= 0 {
						look(fd, name, path+"/"+name)
					}
				})
				unix.Close(fd)
			}
		case unix.S_IFREG:
			if st.Nlink < 2 {
				return
			}
			if dir == unix.AT_FDCWD {
				_ = unix.Stat(filepath.Dir(path), &folder)
			} else {
				_ = unix.Fstat(dir, &folder)
			}
			at := inode{uint64(st.Dev), st.Ino}
			if found[at] == nil {
				found[at] = &hardLinkedFile{path, int(st.Nlink), map[folderEntry]bool{}}
			}
			found[at].foundFolderEntries[folderEntry{inode{uint64(folder.Dev), folder.Ino}, filepath.Base(name)}] = true
		}
	}
	look(unix.AT_FDCWD, path, path)
	return found, entriesLeft >= 0
}
