//go:build amd64 || arm64

package contain

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/shieldcli/shield/internal/confine"
)

// refusedCalls are denied system calls: they bypass file and socket rules, or change the machine. Contained
// programs do not need them.
var refusedCalls = []uintptr{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_SYSLOG, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}

// enosysCalls are system calls that fail with ENOSYS, so that programs use alternatives. The filter
// cannot read the flags of clone3; clone can replace it.
var enosysCalls = []uintptr{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3}

// namespaceFlags are the clone flags that create new namespaces.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

func newWatchedCall(syscallNumber uintptr, folderArg, pathArg, flagsArg int, noFollow bool) confine.PathSyscall {
	return confine.PathSyscall{SyscallNumber: syscallNumber, FolderArg: folderArg, PathArg: pathArg, FlagsArg: flagsArg, NoFollow: noFollow}
}

// watchedCalls are the system calls that are reported to the containing process.
var watchedCalls = append([]confine.PathSyscall{
	newWatchedCall(unix.SYS_OPENAT, 0, 1, 2, false),
	newWatchedCall(unix.SYS_UNLINKAT, 0, 1, -1, true), newWatchedCall(unix.SYS_MKDIRAT, 0, 1, -1, true), newWatchedCall(unix.SYS_MKNODAT, 0, 1, -1, true), newWatchedCall(unix.SYS_SYMLINKAT, 1, 2, -1, true),
	newWatchedCall(unix.SYS_LINKAT, 2, 3, -1, true), newWatchedCall(unix.SYS_RENAMEAT2, 0, 1, -1, true), newWatchedCall(unix.SYS_RENAMEAT2, 2, 3, -1, true), newWatchedCall(unix.SYS_TRUNCATE, -1, 0, -1, false),
}, archSpecificWatchedCalls...)

// Offsets in struct seccomp_data.
const (
	seccompSyscallOffset = 0
	seccompArchOffset    = 4
	seccompArgsOffset    = 16 // 8 bytes each, low half first
)

// A bpfAssembler writes a BPF filter program.
type bpfAssembler []unix.SockFilter

//go:noinline
func (a *bpfAssembler) emitInstruction(code uint16, k uint32, yes, no uint8) {
	*a = append(*a, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

func (a *bpfAssembler) emitLoad(at uint32) {
	a.emitInstruction(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0)
}
func (a *bpfAssembler) emitReturn(v uint32)     { a.emitInstruction(unix.BPF_RET|unix.BPF_K, v, 0, 0) }
func (a *bpfAssembler) emitAllow()              { a.emitReturn(unix.SECCOMP_RET_ALLOW) }
func (a *bpfAssembler) emitRefuse(e unix.Errno) { a.emitReturn(unix.SECCOMP_RET_ERRNO | uint32(e)) }

func (a *bpfAssembler) emitNotify() { a.emitReturn(unix.SECCOMP_RET_USER_NOTIF) }

// emitRefuseIfEqual adds a rule: fail with e if the loaded value equals k.
func (a *bpfAssembler) emitRefuseIfEqual(k uintptr, e unix.Errno) {
	a.emitInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(k), 0, 1)
	a.emitRefuse(e)
}

// emitAllowIfEqual adds a rule: allow if the loaded value equals k.
func (a *bpfAssembler) emitAllowIfEqual(k uintptr) {
	a.emitInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(k), 0, 1)
	a.emitAllow()
}

// emitRulesForSyscall adds rules for one system call, and allows that call if none of them applies.
// Before these rules, the BPF accumulator must contain the system call number. For all other system
// calls, the rules are skipped and the accumulator is not changed.
func (a *bpfAssembler) emitRulesForSyscall(syscallNumber uintptr, emitRules func(*bpfAssembler)) {
	var b bpfAssembler
	emitRules(&b)
	b.emitAllow()
	a.emitInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(syscallNumber), 0, uint8(len(b)))
	*a = append(*a, b...)
}

// buildSeccompFilter returns the seccomp filter for a program that is contained as the instructions say.
func buildSeccompFilter(o *confine.ContainmentInstructions) []byte {
	var a bpfAssembler
	a.emitLoad(seccompArchOffset) // system call numbers depend on the architecture
	a.emitInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0)
	a.emitRefuse(unix.ENOSYS)
	a.emitLoad(seccompSyscallOffset)
	a.emitInstruction(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 1<<30, 0, 1) // x32
	a.emitRefuse(unix.ENOSYS)
	for _, call := range refusedCalls {
		a.emitRefuseIfEqual(call, unix.EPERM)
	}
	for _, call := range enosysCalls {
		a.emitRefuseIfEqual(call, unix.ENOSYS)
	}
	for _, call := range []uintptr{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		a.emitRulesForSyscall(call, func(a *bpfAssembler) {
			a.emitLoad(seccompArgsOffset)
			a.emitInstruction(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, namespaceFlags, 0, 1)
			a.emitRefuse(unix.EPERM)
		})
	}
	a.emitRulesForSyscall(unix.SYS_IOCTL, func(a *bpfAssembler) { // TIOCSTI inserts terminal input, as if the user had typed it
		a.emitLoad(seccompArgsOffset + 8)
		a.emitRefuseIfEqual(unix.TIOCSTI, unix.EPERM)
		a.emitRefuseIfEqual(unix.TIOCLINUX, unix.EPERM)
	})
	a.emitRulesForSyscall(unix.SYS_SOCKET, func(a *bpfAssembler) {
		a.emitLoad(seccompArgsOffset)
		a.emitAllowIfEqual(unix.AF_NETLINK) // programs read addresses and routes through it
		if o.AllowsNetwork || o.UsesNamespaces {
			a.emitAllowIfEqual(unix.AF_INET)
			a.emitAllowIfEqual(unix.AF_INET6)
		}
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
			a.emitInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, family, 0, 1)
			a.emitNotify() // the process that receives the notification denies the socket call and reports it
		}
		a.emitRefuse(unix.EAFNOSUPPORT)
	})
	seen := map[uintptr]bool{}
	for _, w := range watchedCalls {
		if !seen[w.SyscallNumber] {
			seen[w.SyscallNumber] = true
			a.emitInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(w.SyscallNumber), 0, 1)
			a.emitNotify()
		}
	}
	if !o.AllowsNetwork {
		a.emitInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SYS_CONNECT, 0, 1)
		a.emitNotify()
		a.emitRulesForSyscall(unix.SYS_SENDTO, func(a *bpfAssembler) {
			a.emitLoad(seccompArgsOffset + 8*4)
			a.emitAllowIfEqual(0) // sendto without an address: the socket is already connected
			a.emitNotify()
		})
	}
	a.emitAllow()
	var out []byte
	for _, op := range a {
		out = binary.NativeEndian.AppendUint16(out, op.Code)
		out = append(out, op.Jt, op.Jf)
		out = binary.NativeEndian.AppendUint32(out, op.K)
	}
	return out
}
