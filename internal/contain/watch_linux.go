//go:build amd64 || arm64

package contain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxRefusals is how many different refusals of a program are told.
const maxRefusals = 64

// A watcher sees what a contained program asks of the kernel, and tells what that refuses. It
// decides nothing: whatever it reads of the program's memory may be something else a moment
// later, and what is not refused already by the rules goes on.
type watcher struct {
	order  *order
	fd     int
	report io.Writer
	told   map[Refusal]bool
}

// A notice is struct seccomp_notif, and an answer struct seccomp_notif_resp.
type notice struct {
	id      uint64
	pid     uint32
	flags   uint32
	call    int32
	arch    uint32
	pointer uint64
	args    [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// run answers until the program is gone.
func (w *watcher) run() {
	for {
		var n notice
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			if errno == unix.EINTR || errno == unix.ENOENT { // the process was ended meanwhile
				continue
			}
			return
		}
		a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if n.call == unix.SYS_SOCKET { // of a family that the filter sends here because it is refused
			a.errno, a.flags = -int32(unix.EACCES), 0
			w.tell(Refusal{Network, ""})
		} else if len(w.told) < maxRefusals {
			w.look(&n)
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
	}
}

// tell reports a refusal once.
func (w *watcher) tell(r Refusal) {
	if w.told[r] || len(w.told) >= maxRefusals {
		return
	}
	w.told[r] = true
	if line, err := json.Marshal(r); err == nil {
		_, _ = w.report.Write(append(line, '\n'))
	}
}

// look tells if a call is refused.
func (w *watcher) look(n *notice) {
	switch n.call {
	case unix.SYS_CONNECT:
		w.address(n.pid, n.args[1], n.args[2])
		return
	case unix.SYS_SENDTO:
		w.address(n.pid, n.args[4], n.args[5])
		return
	}
	for _, c := range watched {
		if n.call != int32(c.call) {
			continue
		}
		change := c.flags < 0
		if !change {
			if n.args[c.flags]&(unix.O_DIRECTORY|unix.O_PATH) != 0 {
				return // names are not hidden
			}
			const changes = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC
			change = n.args[c.flags]&changes != 0
		}
		dir := int32(unix.AT_FDCWD)
		if c.dir >= 0 {
			dir = int32(n.args[c.dir])
		}
		if path, err := pathOf(n.pid, dir, n.args[c.path]); err == nil {
			w.path(path, change, c.name)
		}
	}
}

// A watch says where a system call has a path: the arguments of folder and path, -1 for the
// current folder; and of the flags of opening, -1 if it changes something. name is whether it
// concerns the name itself, and not what a link leads to.
type watch struct {
	call             uintptr
	dir, path, flags int
	name             bool
}

var watched = append([]watch{
	{unix.SYS_OPENAT, 0, 1, 2, false},
	{unix.SYS_UNLINKAT, 0, 1, -1, true}, {unix.SYS_MKDIRAT, 0, 1, -1, true}, {unix.SYS_MKNODAT, 0, 1, -1, true}, {unix.SYS_SYMLINKAT, 1, 2, -1, true},
	{unix.SYS_LINKAT, 2, 3, -1, true}, {unix.SYS_RENAMEAT2, 0, 1, -1, true}, {unix.SYS_RENAMEAT2, 2, 3, -1, true}, {unix.SYS_TRUNCATE, -1, 0, -1, false},
}, watchedHere...)

// pathOf reads a path in the memory of a process, and makes it absolute.
func pathOf(pid uint32, dir int32, at uint64) (string, error) {
	text, err := memoryOf(pid, at, unix.PathMax)
	if err != nil {
		return "", err
	}
	end := bytes.IndexByte(text, 0)
	if end <= 0 {
		return "", errors.New("no path")
	}
	path := string(text[:end])
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	link := "/proc/" + strconv.Itoa(int(pid)) + "/cwd"
	if dir != unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/fd/%d", pid, dir)
	}
	base, err := os.Readlink(link)
	if err != nil || !filepath.IsAbs(base) {
		return "", errors.New("no folder")
	}
	return filepath.Join(base, path), nil
}

// memoryOf reads up to max bytes of the memory of a process, less where a page ends.
func memoryOf(pid uint32, at uint64, most int) ([]byte, error) {
	var b []byte
	for most > 0 {
		part := min(most, 4096-int(at%4096))
		buf := make([]byte, part)
		n, err := unix.ProcessVMReadv(int(pid), []unix.Iovec{{Base: &buf[0], Len: uint64(part)}}, []unix.RemoteIovec{{Base: uintptr(at), Len: part}}, 0)
		if err != nil || n == 0 {
			if len(b) == 0 {
				return nil, errors.New("cannot be read")
			}
			break
		}
		b = append(b, buf[:n]...)
		if bytes.IndexByte(buf[:n], 0) >= 0 {
			break
		}
		at, most = at+uint64(n), most-n
	}
	return b, nil
}

// path tells if the rules refuse a path, and the rights of the file do not refuse it anyway.
func (w *watcher) path(path string, change, name bool) {
	if strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/") || within(path, "/dev") {
		return
	}
	real, err := filepath.EvalSymlinks(path)
	exists := err == nil
	if !exists || name {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			if Within(path, w.order.Profile.Hidden) { // below a /tmp that the program does not see
				w.tell(Refusal{Read, path})
			}
			return
		}
		real = filepath.Join(folder, filepath.Base(path))
	}
	p := &w.order.Profile
	if Within(real, p.Hidden) {
		if exists {
			w.tell(Refusal{Read, real})
		}
		return
	}
	if !change || within(real, w.order.Tmp) || w.order.Private && within(real, tmp) && !Within(real, p.Shown) || Within(real, p.Write) && !(w.order.Namespaces && Within(real, p.Fixed)) {
		return
	}
	ask := real
	if !exists || name {
		ask = filepath.Dir(real)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, ask, unix.W_OK, unix.AT_EACCESS); err == nil || err == unix.EROFS {
		w.tell(Refusal{Write, real})
	}
}

// address tells if an address is not reached without a network.
func (w *watcher) address(pid uint32, at, size uint64) {
	if at == 0 || size < 8 {
		return
	}
	b := make([]byte, 28)
	n, err := unix.ProcessVMReadv(int(pid), []unix.Iovec{{Base: &b[0], Len: uint64(min(size, 28))}}, []unix.RemoteIovec{{Base: uintptr(at), Len: int(min(size, 28))}}, 0)
	if err != nil || n < 8 {
		return
	}
	port := uint16(b[2])<<8 | uint16(b[3])
	var addr netip.Addr
	switch family := uint16(b[0]) | uint16(b[1])<<8; {
	case family == unix.AF_INET:
		addr = netip.AddrFrom4([4]byte(b[4:8]))
	case family == unix.AF_INET6 && n >= 24:
		addr = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	default:
		return
	}
	if !addr.IsLoopback() && port != 0 {
		w.tell(Refusal{Network, netip.AddrPortFrom(addr, port).String()})
	}
}
