//go:build amd64 || arm64

package confine

import (
	name "path"
	"slices"
	"syscall"
	"unsafe"
)

// tmp is the folder in whose place a contained program gets one of its own.
const tmp = "/tmp"

// shm is the memory that programs share.
const shm = "/dev/shm"

// visible is the stage at which a view is made that is for this profile.
const visible = "view"

// mountView makes the file system read-only but for what a profile says, and gives the process
// its own /tmp, /dev/shm, /proc, and a loopback if it has no other network. If that fails, the stage is [Unavailable]
// where the machine lets this process make no view, and visible where the profile cannot be put into force.
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

// byDepth returns paths so that a folder is before what lies in it.
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

// open opens a canonical path for what concerns its name alone. One that leads over a
// symbolic link now is not what was judged.
func open(path string) (int, error) { return openAs(path, oPath) }

func openAs(path string, flags uint64) (int, error) {
	how := struct{ flags, mode, resolve uint64 }{flags | syscall.O_CLOEXEC, 0, resolveNoLinks | resolveNoMagic}
	fd, err := onPath(sysOpenat2, atFDCWD, path, uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0)
	if err != nil {
		return -1, wrap(path, err)
	}
	return int(fd), nil
}

// clone returns a mount of a path that lies nowhere yet.
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

// moveMount puts a mount at a path.
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

// makeMountPoint makes the file or folder in the program's own /tmp at which a mount is placed.
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

// loopback switches on the network of this machine in a namespace that has no other.
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
