package contain

import (
	"golang.org/x/sys/unix"

	"github.com/shieldcli/shield/internal/confine"
)

const auditArch = unix.AUDIT_ARCH_AARCH64

// archSpecificWatchedCalls are the older system calls that only this processor has.
var archSpecificWatchedCalls = []confine.PathSyscall{newWatchedCall(unix.SYS_RENAMEAT, 0, 1, -1, true), newWatchedCall(unix.SYS_RENAMEAT, 2, 3, -1, true)}
