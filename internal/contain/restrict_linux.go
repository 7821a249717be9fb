//go:build amd64 || arm64

package contain

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// restrict holds the calling thread, and what it starts, to a profile. It returns a file by
// which a watcher sees what they ask of the kernel, or the stage at which that failed.
func restrict(o *order) (watch int, stage string, err error) {
	rules, err := rulesOf(o)
	if err != nil {
		return -1, "Landlock", err
	}
	defer unix.Close(rules)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, "privileges", err
	}
	if err := dropCapabilities(); err != nil {
		return -1, "privileges", err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return -1, "Landlock", errno
	}
	program := filter(o)
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0} { // since 5.19: no signal interrupts what is seen
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags|unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&f)))
		if errno == 0 {
			return int(fd), "", nil
		}
		err = errno
	}
	return -1, "seccomp", err
}

// kept are the capabilities that a contained program of root keeps: those over the files
// and numbers of users, which the profile bounds in turn.
const kept = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE

// dropCapabilities takes all others away for good.
func dropCapabilities() error {
	for c := uintptr(0); c < 64; c++ {
		if kept>>c&1 == 1 {
			continue
		}
		// A user without privileges cannot, and need not.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&head, &has[0]); err != nil {
		return err
	}
	for i := range has {
		left := uint32(uint64(kept) >> (32 * i))
		has[i].Effective &= left
		has[i].Permitted &= left
		has[i].Inheritable = 0
	}
	return unix.Capset(&head, &has[0])
}

// Rights of Landlock.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	writeFile = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	changeDir = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	allRights = writeFile | changeDir | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// devices can be read and written by everybody and lead nowhere. Of /dev nothing else is
// there: who reads a disk reads every file.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// A ruleset adds rules of Landlock.
type ruleset struct {
	fd      int
	handled uint64
}

// rulesOf returns the rules of a profile.
func rulesOf(o *order) (_ int, err error) {
	level, err := abi()
	if err != nil {
		return -1, err
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: allRights}
	if level < 2 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if level < 3 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if level < 5 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	size := unsafe.Offsetof(attr.Scoped)
	if level >= 6 {
		size = unsafe.Offsetof(attr.Quiet_access_fs)
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	} else if level < 4 {
		size = unsafe.Offsetof(attr.Handled_access_net)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, errno
	}
	r := &ruleset{int(fd), attr.Handled_access_fs}
	defer func() {
		if err != nil {
			unix.Close(r.fd)
		}
	}()
	// Names can be listed everywhere: a right to a folder holds for what is below it.
	if err := r.add("/", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
		return -1, err
	}
	r.around("/", append([]string{"/dev"}, o.Profile.Hidden...))
	for _, path := range devices {
		if err := r.add(path, writeFile); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ELOOP) {
			return -1, err
		}
	}
	write := append([]string{"/dev/shm", o.Tmp}, o.Profile.Write...)
	if o.Private {
		write = append(write, tmp)
	}
	for _, path := range write {
		rights := uint64(writeFile | changeDir)
		if Holds(path, o.Profile.Hidden) {
			rights &^= readFile // what may be read of it is said beside what is hidden
		}
		if err := r.add(path, rights); err != nil && !(path == "/dev/shm" && errors.Is(err, unix.ENOENT)) {
			return -1, err
		}
	}
	return r.fd, nil
}

// around lets all of a folder be read but the hidden paths. What is not there yet cannot
// be read beside them: it might be hidden.
func (r *ruleset) around(dir string, hidden []string) {
	if !Holds(dir, hidden) {
		_ = r.add(dir, readFile) // without the rule it cannot be read
		return
	}
	fd, err := openAs(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	below := make([]string, 0, len(hidden))
	for _, h := range hidden {
		if within(h, dir) {
			below = append(below, h)
		}
	}
	if dir == "/" {
		dir = ""
	}
	for _, name := range names {
		path := dir + "/" + name
		switch {
		case Within(path, below):
		case Holds(path, below):
			r.around(path, below)
		default: // a link opens as itself, and leads nowhere by this rule
			if entry, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
				_ = r.addFile(entry, readFile)
				unix.Close(entry)
			}
		}
	}
}

// add gives rights to a path and to what lies below it. Rights that a file cannot have are
// left out.
func (r *ruleset) add(path string, rights uint64) error {
	fd, err := open(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := r.addFile(fd, rights); err != nil {
		return fmt.Errorf("%s: rule: %w", path, err)
	}
	return nil
}

// addFile is add for an open file.
func (r *ruleset) addFile(fd int, rights uint64) error {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	for {
		_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		switch file := uint64(writeFile) & rule.Allowed_access; {
		case errno == 0:
			return nil
		case errno == unix.EINVAL && file != rule.Allowed_access && file != 0:
			rule.Allowed_access = file
		default:
			return errno
		}
	}
}
