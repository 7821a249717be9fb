//go:build amd64 || arm64

package confine

import (
	"errors"
	"path"
	"strconv"
	"syscall"
	"unsafe"
)

// maxReportedDeniedAccesses is how many different denied accesses of a program are reported.
const maxReportedDeniedAccesses = 64

// A syscallWatcher receives a program's watched system calls by seccomp notifications, and reports those that
// the kernel will deny. It allows nothing that the other rules deny: the program can change the memory
// with the arguments afterwards, so a call with a path or an address always continues. It denies each
// socket call that the filter sends here.
type syscallWatcher struct {
	instructions    *ContainmentInstructions
	seccompNotifyFD int
	sentMessages    map[string]bool // messages that were sent
}

// A seccompNotice is the kernel's struct seccomp_notif, which describes a system call that waits
// for an answer.
type seccompNotice struct {
	id                 uint64
	pid                uint32
	flags              uint32
	call               int32
	arch               uint32
	instructionPointer uint64
	args               [6]uint64
}

type seccompAnswer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// answerNotices answers notifications until the program has ended.
func (w *syscallWatcher) answerNotices() {
	for {
		var n seccompNotice
		if _, err := systemCall(syscall.SYS_IOCTL, uintptr(w.seccompNotifyFD), notifReceive, uintptr(unsafe.Pointer(&n))); err != nil {
			if err == syscall.EINTR || err == syscall.ENOENT { // the process was killed meanwhile
				continue
			}
			return
		}
		a := seccompAnswer{id: n.id, flags: notifContinue}
		if n.call == syscall.SYS_SOCKET { // a socket family that the filter sends here to be denied
			a.errno, a.flags = -int32(syscall.EACCES), 0
			w.reportDeniedAccessOnce(ChildMessageConnectionDenied, "")
		} else if len(w.sentMessages) < maxReportedDeniedAccesses {
			w.reportIfKernelWillDeny(&n)
		}
		_, _ = systemCall(syscall.SYS_IOCTL, uintptr(w.seccompNotifyFD), notifSend, uintptr(unsafe.Pointer(&a)))
	}
}

// reportDeniedAccessOnce reports a denied access once.
func (w *syscallWatcher) reportDeniedAccessOnce(kind byte, name string) {
	message := string(kind) + name
	if w.sentMessages[message] || len(w.sentMessages) >= maxReportedDeniedAccesses || len(message) > MaxChildMessageBytes {
		return
	}
	w.sentMessages[message] = true
	sendMessageToParent(kind, name)
}

// reportIfKernelWillDeny reports a system call that the kernel will deny.
func (w *syscallWatcher) reportIfKernelWillDeny(n *seccompNotice) {
	switch n.call {
	case syscall.SYS_CONNECT:
		w.reportDeniedSocketAddress(n.pid, n.args[1], n.args[2])
		return
	case syscall.SYS_SENDTO:
		w.reportDeniedSocketAddress(n.pid, n.args[4], n.args[5])
		return
	}
	for _, c := range w.instructions.PathSyscallsReportedToWatcher {
		if n.call != int32(c.SyscallNumber) {
			continue
		}
		change := c.FlagsArg < 0
		if !change {
			if n.args[c.FlagsArg]&(syscall.O_DIRECTORY|oPath) != 0 {
				return // the call reads no file content; the names of hidden files are not secret
			}
			const changes = syscall.O_WRONLY | syscall.O_RDWR | syscall.O_CREAT | syscall.O_TRUNC
			change = n.args[c.FlagsArg]&changes != 0
		}
		dir := int32(atFDCWD)
		if c.FolderArg >= 0 {
			dir = int32(n.args[c.FolderArg])
		}
		if path, err := readPathFromProcessMemory(n.pid, dir, n.args[c.PathArg]); err == nil {
			w.reportDeniedPath(path, change, c.NoFollow)
		}
	}
}

// readPathFromProcessMemory reads a path from a process's memory, and makes it absolute.
func readPathFromProcessMemory(pid uint32, folderFD int32, address uint64) (string, error) {
	text, err := readMemoryUntilZeroByte(pid, address, syscall.PathMax)
	if err != nil {
		return "", err
	}
	end := indexByte(text, 0)
	if end <= 0 {
		return "", errors.New("no path")
	}
	name := string(text[:end])
	if name[0] == '/' {
		return path.Clean(name), nil
	}
	link := "/proc/" + strconv.Itoa(int(pid)) + "/cwd"
	if folderFD != atFDCWD {
		link = "/proc/" + strconv.Itoa(int(pid)) + "/fd/" + strconv.Itoa(int(folderFD))
	}
	base, err := readlink(link)
	if err != nil || base[0] != '/' {
		return "", errors.New("no folder")
	}
	return path.Join(base, name), nil
}

// readlink returns the target of a symbolic link.
func readlink(link string) (string, error) {
	b := make([]byte, syscall.PathMax)
	n, err := syscall.Readlink(link, b)
	if err != nil || n <= 0 {
		return "", errors.New("no link")
	}
	return string(b[:n]), nil
}

// realPath returns an existing path without symbolic links.
func realPath(path string) (string, error) {
	fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer syscall.Close(fd)
	return readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

// readMemoryUntilZeroByte reads at most maxBytes bytes of a process's memory, page by page. It
// stops after the page that contains the first zero byte, or where the memory cannot be read.
func readMemoryUntilZeroByte(pid uint32, address uint64, maxBytes int) ([]byte, error) {
	var b []byte
	for maxBytes > 0 {
		part := min(maxBytes, 4096-int(address%4096))
		buf := make([]byte, part)
		n, err := readMemory(pid, address, buf)
		if err != nil || n == 0 {
			if len(b) == 0 {
				return nil, errors.New("the memory of the contained process cannot be read; use --contain without require")
			}
			break
		}
		b = append(b, buf[:n]...)
		if indexByte(buf[:n], 0) >= 0 {
			break
		}
		address, maxBytes = address+uint64(n), maxBytes-n
	}
	return b, nil
}

// reportDeniedPath reports a path that the rules deny, unless file permissions deny it anyway.
func (w *syscallWatcher) reportDeniedPath(name string, isChange, noFollow bool) {
	if hasPrefix(name, "/proc/") || hasPrefix(name, "/sys/") || within(name, "/dev") {
		return
	}
	o := w.instructions
	real, err := realPath(name)
	exists := err == nil
	if !exists || noFollow {
		folder, err := realPath(path.Dir(name))
		if err != nil {
			if Within(name, o.HiddenPaths) { // a hidden path whose real parent folder is not visible in the program's private /tmp
				w.reportDeniedAccessOnce(ChildMessageReadDenied, name)
			}
			return
		}
		real = path.Join(folder, path.Base(name))
	}
	if Within(real, o.HiddenPaths) {
		if exists {
			w.reportDeniedAccessOnce(ChildMessageReadDenied, real)
		}
		return
	}
	if !isChange || within(real, o.TmpFolder) || o.HasPrivateTmp() && within(real, tmp) && !Within(real, o.VisibleTmpPaths) || Within(real, o.WritablePaths) && !(o.UsesNamespaces && Within(real, o.ReadOnlyPaths)) {
		return
	}
	ask := real
	if !exists || noFollow {
		ask = path.Dir(real)
	}
	if _, err := pathSystemCall(sysFaccessat2, atFDCWD, ask, accessWrite, atEaccess, 0); err == nil || err == syscall.EROFS {
		w.reportDeniedAccessOnce(ChildMessageFileChangeDenied, real)
	}
}

// loopbackIPv6 is ::1; mappedIPv4Prefix is the prefix of IPv4-mapped IPv6 addresses.
const (
	loopbackIPv6     = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
	mappedIPv4Prefix = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff"
)

// reportDeniedSocketAddress reports an address that cannot be reached without a network.
func (w *syscallWatcher) reportDeniedSocketAddress(pid uint32, memoryAddress, addressBytes uint64) {
	if memoryAddress == 0 || addressBytes < 8 {
		return
	}
	b := make([]byte, min(addressBytes, 28))
	n, err := readMemory(pid, memoryAddress, b)
	if err != nil || n < 8 {
		return
	}
	port := string(b[2:4])
	var addr []byte
	switch family := uint16(b[0]) | uint16(b[1])<<8; {
	case family == syscall.AF_INET:
		addr = b[4:8]
	case family == syscall.AF_INET6 && n >= 24:
		addr = b[8:24]
		if hasPrefix(string(addr), mappedIPv4Prefix) {
			addr = addr[12:]
		}
	default:
		return
	}
	loopback := len(addr) == 4 && addr[0] == 127 || string(addr) == loopbackIPv6
	if !loopback && port != "\x00\x00" {
		w.reportDeniedAccessOnce(ChildMessageConnectionDenied, string(addr)+port)
	}
}
