//go:build amd64 || arm64

package contain

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/shieldcli/shield/internal/confine"
)

// refused are denied system calls: they bypass file and socket rules, or change the machine. Contained
// programs do not need them.
var refused = []uintptr{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_SYSLOG, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}

// answeredENOSYS are system calls that fail with ENOSYS, so that programs use alternatives. The filter
// cannot read the flags of clone3; clone can replace it.
var answeredENOSYS = []uintptr{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3}

// namespaces are the clone flags that create new namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

func at(call uintptr, dir, path, flags int, name bool) confine.Watch {
	return confine.Watch{Call: call, Dir: dir, Path: path, Flags: flags, Name: name}
}

// watched are the system calls that are reported to the containing process.
var watched = append([]confine.Watch{
	at(unix.SYS_OPENAT, 0, 1, 2, false),
	at(unix.SYS_UNLINKAT, 0, 1, -1, true), at(unix.SYS_MKDIRAT, 0, 1, -1, true), at(unix.SYS_MKNODAT, 0, 1, -1, true), at(unix.SYS_SYMLINKAT, 1, 2, -1, true),
	at(unix.SYS_LINKAT, 2, 3, -1, true), at(unix.SYS_RENAMEAT2, 0, 1, -1, true), at(unix.SYS_RENAMEAT2, 2, 3, -1, true), at(unix.SYS_TRUNCATE, -1, 0, -1, false),
}, watchedHere...)

// Offsets in struct seccomp_data.
const (
	atCall = 0
	atArch = 4
	atArgs = 16 // 8 bytes each, low half first
)

// An assembler writes a BPF filter program.
type assembler []unix.SockFilter

//go:noinline
func (a *assembler) op(code uint16, k uint32, yes, no uint8) {
	*a = append(*a, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

func (a *assembler) load(at uint32)      { a.op(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }
func (a *assembler) answer(v uint32)     { a.op(unix.BPF_RET|unix.BPF_K, v, 0, 0) }
func (a *assembler) allow()              { a.answer(unix.SECCOMP_RET_ALLOW) }
func (a *assembler) refuse(e unix.Errno) { a.answer(unix.SECCOMP_RET_ERRNO | uint32(e)) }

func (a *assembler) notify() { a.answer(unix.SECCOMP_RET_USER_NOTIF) }

// answerIfEqual adds a rule: fail with e if the loaded value equals k.
func (a *assembler) answerIfEqual(k uintptr, e unix.Errno) {
	a.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(k), 0, 1)
	a.refuse(e)
}

// allowIfEqual adds a rule: allow if the loaded value equals k.
func (a *assembler) allowIfEqual(k uintptr) {
	a.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(k), 0, 1)
	a.allow()
}

// forCall adds rules for one system call, and allows it if none applies. The system call number is
// loaded before and after.
func (a *assembler) forCall(call uintptr, body func(*assembler)) {
	var b assembler
	body(&b)
	b.allow()
	a.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(call), 0, uint8(len(b)))
	*a = append(*a, b...)
}

// filter returns the seccomp filter for an order.
func filter(o *confine.Order) []byte {
	var a assembler
	a.load(atArch) // system call numbers depend on the architecture
	a.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, arch, 1, 0)
	a.refuse(unix.ENOSYS)
	a.load(atCall)
	a.op(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 1<<30, 0, 1) // x32
	a.refuse(unix.ENOSYS)
	for _, call := range refused {
		a.answerIfEqual(call, unix.EPERM)
	}
	for _, call := range answeredENOSYS {
		a.answerIfEqual(call, unix.ENOSYS)
	}
	for _, call := range []uintptr{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		a.forCall(call, func(a *assembler) {
			a.load(atArgs)
			a.op(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, namespaces, 0, 1)
			a.refuse(unix.EPERM)
		})
	}
	a.forCall(unix.SYS_IOCTL, func(a *assembler) { // TIOCSTI inserts terminal input, as if the user had typed it
		a.load(atArgs + 8)
		a.answerIfEqual(unix.TIOCSTI, unix.EPERM)
		a.answerIfEqual(unix.TIOCLINUX, unix.EPERM)
	})
	a.forCall(unix.SYS_SOCKET, func(a *assembler) {
		a.load(atArgs)
		a.allowIfEqual(unix.AF_NETLINK) // programs read addresses and routes through it
		if o.Network || o.Namespaces {
			a.allowIfEqual(unix.AF_INET)
			a.allowIfEqual(unix.AF_INET6)
		}
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
			a.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, family, 0, 1)
			a.notify() // the watcher denies it
		}
		a.refuse(unix.EAFNOSUPPORT)
	})
	seen := map[uintptr]bool{}
	for _, w := range watched {
		if !seen[w.Call] {
			seen[w.Call] = true
			a.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(w.Call), 0, 1)
			a.notify()
		}
	}
	if !o.Network {
		a.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SYS_CONNECT, 0, 1)
		a.notify()
		a.forCall(unix.SYS_SENDTO, func(a *assembler) {
			a.load(atArgs + 8*4)
			a.allowIfEqual(0) // the socket is connected
			a.notify()
		})
	}
	a.allow()
	var out []byte
	for _, op := range a {
		out = binary.NativeEndian.AppendUint16(out, op.Code)
		out = append(out, op.Jt, op.Jf)
		out = binary.NativeEndian.AppendUint32(out, op.K)
	}
	return out
}
