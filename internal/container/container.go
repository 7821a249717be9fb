// Package container determines whether this process runs in a disposable container that contains
// nothing of its host but the workspace. It relies only on kernel information, since an agent can
// create a file such as /.dockerenv or set a variable.
package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

// A Container is a disposable container: all changes in it are discarded.
type Container struct {
	MountPoints []string // folders that are not on its own disk, including the workspace
}

// IsOnContainerDisk reports whether a canonical path is on the container's own disk, with nothing below it on
// another one.
func (c *Container) IsOnContainerDisk(file string) bool {
	return !slices.ContainsFunc(c.MountPoints, func(m string) bool { return isBelow(file, m) || isBelow(m, file) })
}

// isBelow reports whether a path is a folder or inside it.
func isBelow(file, folder string) bool {
	return file == folder || strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/")
}

// hostNamespaces are the inode numbers of a host's initial namespaces.
var hostNamespaces = map[string]uint64{
	"pid": 0xEFFFFFFC, "ipc": 0xEFFFFFFF, "uts": 0xEFFFFFFE, "net": 0xEFFFFFF9, // net has this number since Linux 6.18
}

// hostAccessCapabilities are capabilities that give access to the host: CAP_DAC_READ_SEARCH opens any file of a
// mounted disk, the others load modules, access hardware or mount.
var hostAccessCapabilities = map[uint]string{2: "CAP_DAC_READ_SEARCH", 16: "CAP_SYS_MODULE", 17: "CAP_SYS_RAWIO", 21: "CAP_SYS_ADMIN"}

// maxKernelFileBytes is how many bytes of a /proc or /sys file are read.
const maxKernelFileBytes = 1 << 20

// DetectContainer returns the container that this process runs in, or an error that says why this
// is not a container, or not an isolated one. rootFS is the file system from / on; home and
// workspaceRoots are the canonical paths of the user's home folder and of the workspace.
func DetectContainer(rootFS fs.FS, home string, workspaceRoots []string) (*Container, error) {
	mounts, err := readMounts(rootFS, "self")
	if err != nil {
		return nil, err
	}
	top := mounts[len(mounts)-1]
	for _, m := range mounts {
		if m.mountPoint == "/" {
			top = m // the last mount hides the others
		}
	}
	if top.mountPoint != "/" || !top.isContainerImageRoot() {
		return nil, fmt.Errorf("the root file system is %s, not an overlay as container images have", top.fileSystemType)
	}
	if first, err := readMounts(rootFS, "1"); err != nil || !slices.Contains(first, top) {
		return nil, errors.New("process 1 has another root file system, or its list of mounts cannot be read")
	}
	if err := checkNoHostNamespaces(rootFS); err != nil {
		return nil, err
	}
	if err := checkNoHostAccessCapabilities(rootFS); err != nil {
		return nil, err
	}
	c := &Container{}
	for _, m := range mounts {
		switch {
		case m.mountPoint == "/":
			continue
		case !m.isInEveryContainer() && (!m.isWorkspace(home, workspaceRoots) || isHostDisk(rootFS, m)):
			return nil, fmt.Errorf("%s is mounted from the host, and is not the workspace", m.mountPoint)
		}
		if !slices.Contains(c.MountPoints, m.mountPoint) {
			c.MountPoints = append(c.MountPoints, m.mountPoint)
		}
	}
	for _, glob := range containerRuntimeSocketGlobs {
		found, err := fs.Glob(rootFS, glob)
		if len(found) > 0 || err != nil {
			return nil, fmt.Errorf("/%s, the socket of the container runtime, gives access to the host", glob)
		}
	}
	return c, nil
}

// containerRuntimeSocketGlobs match the sockets of container runtimes. A socket of this kind gives access to the
// host.
var containerRuntimeSocketGlobs = []string{
	"run/docker.sock", "var/run/docker.sock", "run/containerd/containerd.sock", "run/podman/podman.sock", "run/crio/crio.sock",
	"run/buildkit/buildkitd.sock", "run/user/*/docker.sock", "run/user/*/podman/podman.sock",
}

// checkNoHostNamespaces returns an error if this process shares a namespace with the host.
func checkNoHostNamespaces(root fs.FS) error {
	for _, name := range [...]string{"pid", "ipc", "uts", "net"} {
		target, err := fs.ReadLink(root, "proc/self/ns/"+name)
		number, ok := strings.CutPrefix(strings.TrimSuffix(target, "]"), name+":[")
		n, failed := strconv.ParseUint(number, 10, 64)
		switch {
		case err != nil || !ok || failed != nil:
			return fmt.Errorf("the %s namespace of this process cannot be read", name)
		case n == hostNamespaces[name]:
			return fmt.Errorf("this process shares the %s namespace with the host", name)
		}
	}
	if _, err := fs.Stat(root, "proc/sys/net/core/somaxconn"); err != nil { // exists in every network namespace
		return errors.New("the kernel's network settings cannot be read")
	}
	// exists only in the initial network namespace.
	if _, err := fs.Stat(root, "proc/sys/net/core/netdev_max_backlog"); !errors.Is(err, fs.ErrNotExist) {
		return errors.New("the container uses the host's network")
	}
	return nil
}

// checkNoHostAccessCapabilities returns an error if a process here has or can get a capability that gives
// access to the host (hostAccessCapabilities).
func checkNoHostAccessCapabilities(root fs.FS) error {
	status, err := readKernelFile(root, "proc/self/status")
	if err != nil {
		return err
	}
	for _, set := range [...]string{"CapPrm", "CapEff", "CapBnd"} {
		_, rest, ok := strings.Cut("\n"+status, "\n"+set+":")
		line, _, _ := strings.Cut(rest, "\n")
		bits, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
		if !ok || err != nil {
			return fmt.Errorf("the capability set %s of this process cannot be read", set)
		}
		for bit, name := range hostAccessCapabilities {
			if bits&(1<<bit) != 0 {
				return fmt.Errorf("this process has the capability %s, which gives access to the host", name)
			}
		}
	}
	return nil
}

// A mount is a line of mountinfo.
type mount struct {
	id, device       string
	pathInFileSystem string // path within the mounted file system
	mountPoint       string
	fileSystemType   string // file system type
}

// imageFileSystemTypes are file systems that container runtimes use for images; with other ones, the
// container's files can be on the host's disk.
var imageFileSystemTypes = []string{"overlay", "aufs", "fuse.fuse-overlayfs", "fuse-overlayfs"}

var snapshotPathPattern = prefilter.LazyRegexp(`/(?:io\.containerd\.snapshotter\.v1\.[a-z-]+|(?:docker|storage)/(?:btrfs/subvolumes|vfs/dir))/`)

// isContainerImageRoot reports whether a mount of / is a container image.
func (m mount) isContainerImageRoot() bool {
	if m.pathInFileSystem == "/" {
		return slices.Contains(imageFileSystemTypes, m.fileSystemType)
	}
	return snapshotPathPattern().MatchString(m.pathInFileSystem + "/")
}

// isInEveryContainer reports whether every container has the mount: a kernel file system, memory, or a file
// such as /etc/hosts.
func (m mount) isInEveryContainer() bool {
	kernel := isBelow(m.mountPoint, "/proc") || isBelow(m.mountPoint, "/sys")
	switch m.fileSystemType {
	case "proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "hugetlbfs", "securityfs", "binfmt_misc":
		return kernel || isBelow(m.mountPoint, "/dev")
	case "devtmpfs":
		return path.Dir(m.mountPoint) == "/dev" && slices.Contains([]string{"/null", "/zero", "/full", "/random", "/urandom", "/tty"}, m.pathInFileSystem)
	case "tmpfs": // only below /proc, /sys, /dev and /run/secrets: a tmpfs elsewhere can be the host's /run or /tmp
		if m.pathInFileSystem == "/" && (kernel || isBelow(m.mountPoint, "/dev") || isBelow(m.mountPoint, "/run/secrets")) || m.pathInFileSystem == "/null" && kernel {
			return true
		}
	}
	switch m.mountPoint {
	case "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log", "/run/.containerenv", "/sbin/docker-init", "/run/podman-init", "/dev/init":
		return !strings.HasSuffix(m.pathInFileSystem, ".sock")
	}
	return false
}

// isWorkspace reports whether a mount is in a workspace root, or contains one and nothing else of the
// user.
func (m mount) isWorkspace(home string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return isBelow(m.mountPoint, root) || isBelow(root, m.mountPoint) && !isBelow(home, m.mountPoint)
	})
}

// isHostDisk reports whether a mount contains the files of a machine, not only a workspace.
func isHostDisk(root fs.FS, m mount) bool {
	for _, name := range [...]string{"/etc/passwd", "/var/lib", "/proc/1"} {
		if _, err := fs.Stat(root, strings.TrimPrefix(m.mountPoint+name, "/")); err == nil {
			return true
		}
	}
	return false
}

// readMounts returns the mounts of a process, in order.
func readMounts(root fs.FS, process string) (out []mount, err error) {
	text, err := readKernelFile(root, "proc/"+process+"/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		own, of, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(own), strings.Fields(of)
		if !ok || len(f) < 6 || len(g) < 2 {
			return nil, errors.New("the kernel's list of mounts cannot be read")
		}
		out = append(out, mount{id: f[0], device: f[2], pathInFileSystem: unescapeMountinfoPath(f[3]), mountPoint: path.Clean(unescapeMountinfoPath(f[4])), fileSystemType: g[0]})
	}
	if len(out) == 0 {
		return nil, errors.New("the kernel's list of mounts is empty")
	}
	return out, nil
}

var octalEscapePattern = prefilter.LazyRegexp(`\\[0-7]{3}`)

// unescapeMountinfoPath decodes the escapes in a mountinfo path.
func unescapeMountinfoPath(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return octalEscapePattern().ReplaceAllStringFunc(s, func(code string) string {
		n, _ := strconv.ParseUint(code[1:], 8, 16)
		return string([]byte{byte(n)})
	})
}

// readKernelFile returns the content of a /proc or /sys file.
func readKernelFile(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read", name)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKernelFileBytes+1))
	if err != nil || len(text) > maxKernelFileBytes {
		return "", fmt.Errorf("%s cannot be read, or is longer than %d bytes", name, maxKernelFileBytes)
	}
	return string(text), nil
}
