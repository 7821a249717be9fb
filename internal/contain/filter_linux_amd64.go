package contain

import (
	"golang.org/x/sys/unix"

	"github.com/shieldcli/shield/internal/confine"
)

const auditArch = unix.AUDIT_ARCH_X86_64

// archSpecificWatchedCalls are the older system calls that only this processor has.
var archSpecificWatchedCalls = []confine.PathSyscall{
	newWatchedCall(unix.SYS_OPEN, -1, 0, 1, false), newWatchedCall(unix.SYS_CREAT, -1, 0, -1, false), newWatchedCall(unix.SYS_UNLINK, -1, 0, -1, true), newWatchedCall(unix.SYS_RMDIR, -1, 0, -1, true), newWatchedCall(unix.SYS_MKDIR, -1, 0, -1, true),
	newWatchedCall(unix.SYS_MKNOD, -1, 0, -1, true), newWatchedCall(unix.SYS_SYMLINK, -1, 1, -1, true), newWatchedCall(unix.SYS_LINK, -1, 1, -1, true), newWatchedCall(unix.SYS_RENAME, -1, 0, -1, true), newWatchedCall(unix.SYS_RENAME, -1, 1, -1, true),
	newWatchedCall(unix.SYS_RENAMEAT, 0, 1, -1, true), newWatchedCall(unix.SYS_RENAMEAT, 2, 3, -1, true),
}
