package contain

import (
	"golang.org/x/sys/unix"

	"github.com/shieldcli/shield/internal/confine"
)

const arch = unix.AUDIT_ARCH_AARCH64

// watchedHere are the older system calls that only this processor has.
var watchedHere = []confine.Watch{at(unix.SYS_RENAMEAT, 0, 1, -1, true), at(unix.SYS_RENAMEAT, 2, 3, -1, true)}
