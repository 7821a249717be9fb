//go:build amd64 || arm64

package contain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tmp is the folder in whose place a contained program gets one of its own.
const tmp = "/tmp"

// view makes the file system read-only but for what a profile says, and gives the process
// its own /tmp, /dev/shm, /proc, and a loopback if it has no other network.
func view(o *order) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount /: %w", err)
	}
	type part struct {
		tree     int
		path     string
		readOnly bool
	}
	var parts []part
	take := func(path string, readOnly bool) error {
		tree, err := clone(path)
		if err == nil && readOnly {
			err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		}
		parts = append(parts, part{tree, path, readOnly})
		return err
	}
	own, err := clone(o.Tmp)
	if err != nil {
		return err
	}
	for _, path := range byDepth(o.Profile.Shown) {
		if err := take(path, true); err != nil {
			return err
		}
	}
	for _, path := range byDepth(o.Profile.Write) {
		if err := take(path, false); err != nil {
			return err
		}
	}
	for _, path := range byDepth(o.Profile.Fixed) {
		if err := take(path, true); err != nil {
			return err
		}
	}
	if err := unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if _, err := os.Lstat("/dev/shm"); err == nil {
		if err := unix.Mount("shm", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return fmt.Errorf("mount /dev/shm: %w", err)
		}
	}
	if !slices.Contains(o.Profile.Write, tmp) {
		if err := place(own, tmp); err != nil {
			return err
		}
		for _, p := range parts {
			if err := point(p.tree, p.path); err != nil {
				return err
			}
		}
		o.Tmp = tmp + "/own" // what is hidden may be below /tmp, and not below this
		if err := os.Mkdir(o.Tmp, 0o700); err != nil {
			return err
		}
		o.Private = true
	}
	for _, p := range parts {
		if err := place(p.tree, p.path); err != nil {
			return err
		}
	}
	if !o.Profile.Network {
		return loopback()
	}
	return nil
}

// byDepth returns paths so that a folder is before what lies in it.
func byDepth(paths []string) []string {
	return slices.SortedFunc(slices.Values(paths), func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
}

// open opens a canonical path for what concerns its name alone. One that leads over a
// symbolic link now is not what was judged.
func open(path string) (int, error) { return openAs(path, unix.O_PATH) }

func openAs(path string, flags uint64) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	return fd, nil
}

// clone returns a mount of a path that lies nowhere yet.
func clone(path string) (int, error) {
	fd, err := open(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("%s: open_tree: %w", path, err)
	}
	return tree, nil
}

// place puts a mount at a path.
func place(tree int, path string) error {
	fd, err := open(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("%s: move_mount: %w", path, err)
	}
	return nil
}

// point makes the file or folder in the program's own /tmp at which a mount is placed.
func point(tree int, path string) error {
	if path == tmp || !within(path, tmp) {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(path, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// loopback switches on the network of this machine in a namespace that has no other.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(s)
	var request struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = unix.IFF_UP
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("loopback: %w", errno)
	}
	return nil
}
