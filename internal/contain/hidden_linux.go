//go:build amd64 || arm64

package contain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A mount is a line of /proc/self/mountinfo.
type mount struct{ device, root, point string } // root is the path in the file system that is mounted at point

// mostMounts is how much of the list of mounts is read, in bytes.
const mostMounts = 4 << 20

// mounts returns what is mounted, what was mounted last at the end.
func mounts() ([]mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	if len(text) > mostMounts {
		return nil, errors.New("more is mounted than can be looked through")
	}
	var out []mount
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 5 {
			out = append(out, mount{f[2], octal(f[3]), octal(f[4])})
		}
	}
	return out, nil
}

// octal returns a path without the escapes of mountinfo.
func octal(s string) string {
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

// again returns the other paths at which hidden ones are, because their file system, or a part of
// it, is mounted more than once.
func again(hidden []string, all []mount) (out []string) {
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
				if other != h && same(h, other) {
					out = append(out, other)
				}
			case Within(m.root, []string{path}): // a part of what is hidden
				if !Within(m.point, hidden) {
					out = append(out, m.point)
				}
			}
		}
	}
	return out
}

// same reports whether two paths are one file: another mount may lie on one of them.
func same(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Lstat(a, &x) == nil && unix.Lstat(b, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}

// mostLinked is how many names are looked through in one hidden folder; one with more is none whose files
// are looked at.
const mostLinked = 1000

// linked returns an error if a hidden file has a name that is not hidden: a hard link.
func linked(hidden []string) error {
	type inode struct{ device, number uint64 }
	type file struct {
		path        string
		links, seen uint64
	}
	files := map[inode]*file{}
	var walk func(dir int, path string, left *int, found map[inode]*file)
	look := func(dir int, name, path string, left *int, found map[inode]*file) {
		var st unix.Stat_t
		if *left--; *left < 0 || unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			if fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
				walk(fd, path, left, found)
				unix.Close(fd)
			}
		case unix.S_IFREG:
			if st.Nlink > 1 {
				at := inode{uint64(st.Dev), st.Ino}
				if found[at] == nil {
					found[at] = &file{path: path, links: uint64(st.Nlink)}
				}
				found[at].seen++
			}
		}
	}
	walk = func(dir int, path string, left *int, found map[inode]*file) {
		entries(dir, func(name string, kind byte) {
			if kind != unix.DT_LNK && *left >= 0 {
				look(dir, name, path+"/"+name, left, found)
			}
		})
	}
	for _, h := range hidden {
		left, found := mostLinked, map[inode]*file{}
		look(unix.AT_FDCWD, h, h, &left, found)
		if left < 0 {
			continue
		}
		for at, f := range found {
			if files[at] == nil {
				files[at] = &file{path: f.path, links: f.links}
			}
			files[at].seen += f.seen
		}
	}
	for _, f := range files {
		if f.seen < f.links {
			return fmt.Errorf("containment: %.200q has a second hard link, by which a contained program could read it; remove one of the two links", f.path)
		}
	}
	return nil
}
