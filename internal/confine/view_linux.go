//go:build amd64 || arm64

package confine

import (
	name "path"
	"slices"
	"syscall"
	"unsafe"
)

// tmp is the folder that is replaced by a private one.
const tmp = "/tmp"

// shm is the folder of shared memory.
const shm = "/dev/shm"

// visible is the stage of a failure to set up the view for this profile.
const visible = "view"

// mountView makes the file system read-only except for the profile's paths, and gives the process its
// own /dev/shm and /proc, its own /tmp if [Order.Private], and a loopback interface of its own if it
// has no network. On failure the stage is
// [Unavailable] if the machine does not permit namespaces, and visible if the profile cannot be
// applied.
func mountView(o *Order) (stage string, err error) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return Unavailable, wrap("mount /", err)
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
			err = setReadOnly(tree, "", atEmptyPath)
		}
		parts = append(parts, part{tree, path, readOnly})
		return err
	}
	own, err := clone(o.Tmp)
	if err != nil {
		return visible, err
	}
	for _, path := range byDepth(o.Shown) {
		if err := take(path, true); err != nil {
			return visible, err
		}
	}
	for _, path := range byDepth(o.Write) {
		if err := take(path, false); err != nil {
			return visible, err
		}
	}
	for _, path := range byDepth(o.Fixed) {
		if err := take(path, true); err != nil {
			return visible, err
		}
	}
	if err := setReadOnly(-1, "/", 0); err != nil {
		return visible, wrap("read-only", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return Unavailable, wrap("mount /proc", err)
	}
	var st syscall.Stat_t
	if syscall.Lstat(shm, &st) == nil {
		if err := syscall.Mount("shm", shm, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=1777"); err != nil {
			return visible, wrap("mount /dev/shm", err)
		}
	}
	if o.Private() {
		if err := moveMount(own, tmp); err != nil {
			return visible, err
		}
		for _, p := range parts {
			if err := makeMountPoint(p.tree, p.path); err != nil {
				return visible, err
			}
		}
	}
	for _, p := range parts {
		if err := moveMount(p.tree, p.path); err != nil {
			return visible, err
		}
	}
	if !o.Network {
		return visible, loopback()
	}
	return visible, nil
}

// byDepth returns paths sorted so that a folder precedes its content.
func byDepth(paths []string) []string {
	depth := func(path string) (n int) {
		for _, c := range []byte(path) {
			if c == '/' {
				n++
			}
		}
		return n
	}
	return slices.SortedFunc(slices.Values(paths), func(a, b string) int { return depth(a) - depth(b) })
}

// open opens a canonical path with O_PATH. It fails if the path contains a symbolic link now, since
// then it is not the judged path.
func open(path string) (int, error) { return openAs(path, oPath) }

func openAs(path string, flags uint64) (int, error) {
	how := struct{ flags, mode, resolve uint64 }{flags | syscall.O_CLOEXEC, 0, resolveNoLinks | resolveNoMagic}
	fd, err := onPath(sysOpenat2, atFDCWD, path, uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0)
	if err != nil {
		return -1, wrap(path, err)
	}
	return int(fd), nil
}

// clone returns a detached mount of a path.
func clone(path string) (int, error) {
	fd, err := open(path)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(fd)
	tree, err := onPath(sysOpenTree, fd, "", atEmptyPath|openTreeClone|openTreeCloexec|atRecursive, 0, 0)
	if err != nil {
		return -1, wrap(path+": open_tree", err)
	}
	return int(tree), nil
}

// moveMount attaches a mount at a path.
func moveMount(tree int, path string) error {
	fd, err := open(path)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	defer syscall.Close(tree)
	var none byte
	if _, err := call(sysMoveMount, uintptr(tree), uintptr(unsafe.Pointer(&none)), uintptr(fd), uintptr(unsafe.Pointer(&none)), moveEmptyPaths); err != nil {
		return wrap(path+": move_mount", err)
	}
	return nil
}

// makeMountPoint creates the file or folder in the program's own /tmp that a mount is attached to.
func makeMountPoint(tree int, path string) error {
	if path == tmp || !within(path, tmp) {
		return nil
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(tree, &st); err != nil {
		return err
	}
	folder := path
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		folder = path[:len(path)-len(name.Base(path))-1]
	}
	for i := len(tmp) + 1; i <= len(folder); i++ {
		if i == len(folder) || folder[i] == '/' {
			if err := syscall.Mkdir(folder[:i], 0o700); err != nil && err != syscall.EEXIST {
				return wrap(folder[:i], err)
			}
		}
	}
	if folder == path {
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDONLY|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return wrap(path, err)
	}
	return syscall.Close(fd)
}

// loopback brings up the loopback interface in a new network namespace.
func loopback() error {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return wrap("loopback", err)
	}
	defer syscall.Close(s)
	var request struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = syscall.IFF_UP
	if _, err := call(syscall.SYS_IOCTL, uintptr(s), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); err != nil {
		return wrap("loopback", err)
	}
	return nil
}
