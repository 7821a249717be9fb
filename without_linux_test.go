package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// without is the command of scripts "without WHAT PROGRAM ARG…": the kernel lets the program, and all that it
// starts, have no namespaces, or neither them nor Landlock.
func without() {
	runtime.LockOSThread()
	const allow, jump, load = unix.SECCOMP_RET_ALLOW, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	filter := []unix.SockFilter{
		{Code: load},
		{Code: jump, K: unix.SYS_CLONE3, Jf: 1}, // its flags cannot be seen
		{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
	}
	if os.Args[1] == "Landlock" {
		filter = append(filter, unix.SockFilter{Code: jump, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1}, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)})
	}
	filter = append(filter,
		unix.SockFilter{Code: jump, K: unix.SYS_CLONE, Jf: 3},
		unix.SockFilter{Code: load, K: 16},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_NEWUSER, Jf: 1},
		unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		unix.SockFilter{Code: unix.BPF_RET, K: allow})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	path, err := exec.LookPath(os.Args[2])
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	if err == nil {
		err = syscall.Exec(path, os.Args[2:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
