//go:build amd64 || arm64

package confine

import (
	"errors"
	"strconv"
	"syscall"
	"unsafe"
)

// restrictCallingThread applies a profile to the calling thread and its children. It returns the seccomp
// notification descriptor for a watcher, or the stage that failed.
func restrictCallingThread(o *ContainmentInstructions) (seccompNotifyFD int, failedStage string, err error) {
	if o.UsesNamespaces { // rules for /proc and /dev/shm, which are mounted only in this process's namespace
		for path, rights := range map[string]uint64{"/proc": o.ReadablePathLandlockRights, shm: o.WritablePathLandlockRights} {
			fd, err := openPath(path)
			if path == shm && errors.Is(err, syscall.ENOENT) {
				continue
			}
			if err == nil {
				err = addLandlockRule(landlockRulesetFD, fd, rights)
				syscall.Close(fd)
			}
			if err != nil {
				return -1, "Landlock", err
			}
		}
	}
	if err := prctl(prNoNewPrivs, 1); err != nil {
		return -1, "privileges", err
	}
	if err := dropCapabilities(); err != nil {
		return -1, "privileges", err
	}
	if _, err := systemCall(sysLandlockRestrictSelf, landlockRulesetFD, 0); err != nil {
		return -1, "Landlock", err
	}
	program, err := decodeHex(o.SeccompFilterHex)
	if err != nil || len(program) == 0 {
		return -1, "seccomp", errors.New("no filter")
	}
	filter := struct {
		size uint16
		at   *byte
	}{uint16(len(program) / 8), &program[0]}
	for _, flags := range []uintptr{filterWaitKillable, 0} { // wait killable (Linux 5.19): no other signal interrupts a watched call
		fd, errno := systemCall(sysSeccomp, seccompSetModeFilter, flags|filterNewListener, uintptr(unsafe.Pointer(&filter)))
		if errno == nil {
			return int(fd), "", nil
		}
		err = errno
	}
	return -1, "seccomp", err
}

// decodeHex returns the bytes of hexadecimal digits.
func decodeHex(digits string) ([]byte, error) {
	b := make([]byte, len(digits)/2)
	for i := range b {
		n, err := strconv.ParseUint(digits[2*i:2*i+2], 16, 8)
		if err != nil {
			return nil, err
		}
		b[i] = byte(n)
	}
	return b, nil
}

// prctl changes an attribute of this thread.
func prctl(option int, value uintptr) error {
	_, err := systemCall(syscall.SYS_PRCTL, uintptr(option), value, 0, 0, 0)
	return err
}

// keptCapabilities are the capabilities that a contained program of root keeps: file ownership and
// user IDs, which the profile limits too, and low ports.
const keptCapabilities = 1<<0 /* CHOWN */ | 1<<1 /* DAC_OVERRIDE */ | 1<<3 /* FOWNER */ | 1<<4 /* FSETID */ | 1<<6 /* SETGID */ | 1<<7 /* SETUID */ | 1<<10 /* NET_BIND_SERVICE */

// dropCapabilities irrevocably drops all capabilities except keptCapabilities.
func dropCapabilities() error {
	for c := uintptr(0); c < 64; c++ {
		if keptCapabilities>>c&1 == 1 {
			continue
		}
		// An unprivileged user cannot drop them, and need not.
		if err := prctl(prCapBoundingSetDrop, c); errors.Is(err, syscall.EINVAL) {
			break
		}
	}
	head := struct {
		version uint32
		pid     int32
	}{capVersion, 0}
	var has [2]struct{ effective, permitted, inheritable uint32 }
	if _, err := systemCall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&has[0]))); err != nil {
		return err
	}
	for i := range has {
		left := uint32(uint64(keptCapabilities) >> (32 * i))
		has[i].effective &= left
		has[i].permitted &= left
		has[i].inheritable = 0
	}
	_, err := systemCall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&has[0])))
	return err
}
