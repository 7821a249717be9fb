//go:build amd64 || arm64

package confine

import (
	"syscall"
	"unsafe"
)

// Constants that package syscall lacks. golang.org/x/sys/unix has them, but is initialized too late.
// System calls from 424 on have the same number on all architectures.
const (
	sysOpenTree             = 428
	sysMoveMount            = 429
	sysCloseRange           = 436
	sysOpenat2              = 437
	sysFaccessat2           = 439
	sysMountSetattr         = 442
	sysLandlockAddRule      = 445
	sysLandlockRestrictSelf = 446

	oPath                   = 0x200000
	atFDCWD                 = -0x64
	atEmptyPath             = 0x1000
	atRecursive             = 0x8000
	atEaccess               = 0x200
	accessWrite             = 2
	closeRangeCloexec       = 4
	resolveNoMagic          = 2
	resolveNoLinks          = 4
	openTreeClone           = 1
	openTreeCloexec         = syscall.O_CLOEXEC
	moveMountEmptyPathFlags = 0x4 | 0x40
	mountReadOnly           = 1
	rulePathBeneath         = 1
	prNoNewPrivs            = 38
	prSetDumpable           = 4
	prChildSubreaper        = 36
	prCapBoundingSetDrop    = 24
	capVersion              = 0x20080522
	seccompSetModeFilter    = 1
	filterNewListener       = 1 << 3
	filterWaitKillable      = 1 << 5
	notifReceive            = 0xc0502100
	notifSend               = 0xc0182101
	notifContinue           = 1
)

// systemCall makes a system call. Memory that pointer arguments refer to does not move meanwhile.
//
//go:uintptrescapes
func systemCall(nr uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := syscall.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return 0, errno
	}
	return r, nil
}

// pathSystemCall makes a system call with a folder descriptor (or a negative number), a path and up to three
// more arguments.
//
//go:uintptrescapes
func pathSystemCall(nr uintptr, dir int, path string, third, fourth, fifth uintptr) (uintptr, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return 0, err
	}
	return systemCall(nr, uintptr(dir), uintptr(unsafe.Pointer(p)), third, fourth, fifth)
}

// setReadOnly makes a mount, and those below it, read-only.
func setReadOnly(tree int, path string, flags uintptr) error {
	attr := struct{ set, clear, propagation, userns uint64 }{set: mountReadOnly}
	_, err := pathSystemCall(sysMountSetattr, tree, path, atRecursive|flags, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	return err
}

// addLandlockRule adds a Landlock rule with rights for an open file, and everything below it.
func addLandlockRule(rulesetFD, pathFD int, rights uint64) error {
	rule := struct { // packed in the kernel
		rights uint64
		parent int32
		_      int32
	}{rights, int32(pathFD), 0}
	_, err := systemCall(sysLandlockAddRule, uintptr(rulesetFD), rulePathBeneath, uintptr(unsafe.Pointer(&rule)), 0)
	return err
}

// readMemory reads memory of another process.
func readMemory(pid uint32, at uint64, into []byte) (int, error) {
	local := struct {
		base *byte
		size int
	}{&into[0], len(into)}
	remote := struct{ base, size uintptr }{uintptr(at), uintptr(len(into))}
	n, err := systemCall(sysProcessVMReadv, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	return int(n), err
}

// hasPrefix and the functions below replace those of package strings, which is initialized too late.
func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }

// indexByte returns where a byte is, or -1.
func indexByte[T string | []byte](s T, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// splitAtByte splits a text at a byte.
func splitAtByte(s string, c byte) (out []string) {
	for {
		i := indexByte(s, c)
		if i < 0 {
			return append(out, s)
		}
		out, s = append(out, s[:i]), s[i+1:]
	}
}
