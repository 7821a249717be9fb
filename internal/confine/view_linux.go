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

// failedStageRestrictedMounts is the failed stage if the restricted mounts for a profile cannot be set
// up.
const failedStageRestrictedMounts = "view"

// mountRestrictedFileSystem makes the file system read-only except for the profile's paths. It gives the process
// its own /dev/shm and /proc, its own /tmp if [ContainmentInstructions.HasPrivateTmp], and a loopback
// interface of its own if it has no network. On failure the stage is [FailedStageNamespaceSetup] if the
// machine does not permit namespaces, and failedStageRestrictedMounts if the profile cannot be applied.
func mountRestrictedFileSystem(o *ContainmentInstructions) (failedStage string, err error) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return FailedStageNamespaceSetup, wrapError("mount /", err)
	}
	type part struct {
		tree     int
		path     string
		readOnly bool
	}
	var parts []part
	take := func(path string, readOnly bool) error {
		tree, err := cloneMount(path)
		if err == nil && readOnly {
			err = setReadOnly(tree, "", atEmptyPath)
		}
		parts = append(parts, part{tree, path, readOnly})
		return err
	}
	own, err := cloneMount(o.TmpFolder)
	if err != nil {
		return failedStageRestrictedMounts, err
	}
	for _, path := range sortedParentsFirst(o.VisibleTmpPaths) {
		if err := take(path, true); err != nil {
			return failedStageRestrictedMounts, err
		}
	}
	for _, path := range sortedParentsFirst(o.WritablePaths) {
		if err := take(path, false); err != nil {
			return failedStageRestrictedMounts, err
		}
	}
	for _, path := range sortedParentsFirst(o.ReadOnlyPaths) {
		if err := take(path, true); err != nil {
			return failedStageRestrictedMounts, err
		}
	}
	if err := setReadOnly(-1, "/", 0); err != nil {
		return failedStageRestrictedMounts, wrapError("read-only", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return FailedStageNamespaceSetup, wrapError("mount /proc", err)
	}
	var st syscall.Stat_t
	if syscall.Lstat(shm, &st) == nil {
		if err := syscall.Mount("shm", shm, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=1777"); err != nil {
			return failedStageRestrictedMounts, wrapError("mount /dev/shm", err)
		}
	}
	if o.HasPrivateTmp() {
		if err := moveMount(own, tmp); err != nil {
			return failedStageRestrictedMounts, err
		}
		for _, p := range parts {
			if err := makeMountPoint(p.tree, p.path); err != nil {
				return failedStageRestrictedMounts, err
			}
		}
	}
	for _, p := range parts {
		if err := moveMount(p.tree, p.path); err != nil {
			return failedStageRestrictedMounts, err
		}
	}
	if !o.AllowsNetwork {
		return failedStageRestrictedMounts, enableLoopback()
	}
	return failedStageRestrictedMounts, nil
}

// sortedParentsFirst returns paths sorted so that a folder precedes its content.
func sortedParentsFirst(paths []string) []string {
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

// openPath opens a canonical path with O_PATH. It fails if the path contains a symbolic link now, since
// then it is not the judged path.
func openPath(path string) (int, error) { return openWithFlags(path, oPath) }

func openWithFlags(path string, flags uint64) (int, error) {
	how := struct{ flags, mode, resolve uint64 }{flags | syscall.O_CLOEXEC, 0, resolveNoLinks | resolveNoMagic}
	fd, err := pathSystemCall(sysOpenat2, atFDCWD, path, uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0)
	if err != nil {
		return -1, wrapError(path, err)
	}
	return int(fd), nil
}

// cloneMount returns a detached mount of a path.
func cloneMount(path string) (int, error) {
	fd, err := openPath(path)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(fd)
	tree, err := pathSystemCall(sysOpenTree, fd, "", atEmptyPath|openTreeClone|openTreeCloexec|atRecursive, 0, 0)
	if err != nil {
		return -1, wrapError(path+": open_tree", err)
	}
	return int(tree), nil
}

// moveMount attaches a mount at a path.
func moveMount(tree int, path string) error {
	fd, err := openPath(path)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	defer syscall.Close(tree)
	var none byte
	if _, err := systemCall(sysMoveMount, uintptr(tree), uintptr(unsafe.Pointer(&none)), uintptr(fd), uintptr(unsafe.Pointer(&none)), moveMountEmptyPathFlags); err != nil {
		return wrapError(path+": move_mount", err)
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
				return wrapError(folder[:i], err)
			}
		}
	}
	if folder == path {
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDONLY|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return wrapError(path, err)
	}
	return syscall.Close(fd)
}

// enableLoopback brings up the loopback interface in a new network namespace.
func enableLoopback() error {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return wrapError("loopback", err)
	}
	defer syscall.Close(s)
	var request struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = syscall.IFF_UP
	if _, err := systemCall(syscall.SYS_IOCTL, uintptr(s), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); err != nil {
		return wrapError("loopback", err)
	}
	return nil
}
