package state

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// BootIDAndUptime returns the ID of this boot and the time since boot, including suspend. Setting the clock
// does not change it.
func BootIDAndUptime() (boot string, up time.Duration, ok bool) {
	if boot = bootID(); boot == "" {
		return "", 0, false
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return "", 0, false
	}
	return boot, time.Duration(ts.Nano()), true
}

// bootID returns the ID of this boot, "" if unknown. It cannot change while a process runs.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(id) < 8 || len(id) > 64 {
		return ""
	}
	return string(id[:len(id)-1])
})
