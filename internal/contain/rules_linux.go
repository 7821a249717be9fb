//go:build amd64 || arm64

package contain

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/shieldcli/shield/internal/confine"
)

// Landlock access rights.
const (
	readFileRights     = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	writeFileRights    = readFileRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	changeFolderRights = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	allRights = writeFileRights | changeFolderRights | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// accessibleDevices are harmless devices that everyone can use. Other devices are not accessible, since a disk
// device contains every file.
var accessibleDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// shm is the folder of shared memory.
const shm = "/dev/shm"

// tmp is the folder that is replaced by a private one.
const tmp = "/tmp"

// A ruleset is a Landlock ruleset.
type ruleset struct {
	fd            int
	handledRights uint64 // the access rights that the ruleset denies unless a rule allows them
}

// newRuleset returns a ruleset that allows nothing, for a Landlock ABI version.
func newRuleset(landlockABIVersion int) (*ruleset, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: allRights}
	if landlockABIVersion < 2 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if landlockABIVersion < 3 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if landlockABIVersion < 5 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	size := unsafe.Offsetof(attr.Scoped)
	if landlockABIVersion >= 6 {
		size = unsafe.Offsetof(attr.Quiet_access_fs)
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	} else if landlockABIVersion < 4 {
		size = unsafe.Offsetof(attr.Handled_access_net)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, errno
	}
	return &ruleset{int(fd), attr.Handled_access_fs}, nil
}

// addPathRulesFromInstructions adds Landlock rules for the paths in the instructions. The contained process
// itself adds the rules for mounts that only it sees, such as its own /proc.
func (r *ruleset) addPathRulesFromInstructions(o *confine.ContainmentInstructions) error {
	// All folders can be listed, also hidden ones: a Landlock right for a folder holds for everything below it,
	// so a hidden folder cannot be left out.
	if err := r.addPath("/", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
		return err
	}
	hidden := append([]string{"/dev"}, o.HiddenPaths...)
	temporary := uint64(writeFileRights | changeFolderRights)
	if o.HasPrivateTmp() && FolderHoldsAny(tmp, o.HiddenPaths) { // hidden paths are in /tmp, so the private /tmp gets no read right as a whole
		temporary &^= readFileRights
		hidden = append(hidden, o.TmpFolder)
		for _, path := range o.VisibleTmpPaths { // mounted in the private /tmp, where the rights of their real parent folders do not apply
			r.allowReadExceptHidden(path, hidden)
		}
	}
	r.allowReadExceptHidden("/", hidden)
	for _, path := range accessibleDevices {
		if err := r.addPath(path, writeFileRights); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ELOOP) {
			return err
		}
	}
	for _, path := range o.WritablePaths {
		rights := uint64(writeFileRights | changeFolderRights)
		if FolderHoldsAny(path, o.HiddenPaths) {
			rights &^= readFileRights // read rights are set by allowReadExceptHidden, because of hidden paths
		}
		if err := r.addPath(path, rights); err != nil {
			return err
		}
	}
	if err := r.addPath(o.TmpFolder, temporary); err != nil {
		return err
	}
	if err := r.addPath(o.TmpFolder+"/own", writeFileRights|changeFolderRights); err != nil {
		return err
	}
	if err := r.addPath(shm, writeFileRights|changeFolderRights); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// allowReadExceptHidden makes a folder readable except for the hidden paths. Files created later next to them
// are not readable, since they could be hidden ones.
func (r *ruleset) allowReadExceptHidden(dir string, hidden []string) {
	if Within(dir, hidden) {
		return
	}
	if !FolderHoldsAny(dir, hidden) {
		_ = r.addPath(dir, readFileRights) // on an error the path stays unreadable
		return
	}
	fd, err := openWithFlags(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	below := make([]string, 0, len(hidden))
	for _, h := range hidden {
		if confine.Within(h, []string{dir}) {
			below = append(below, h)
		}
	}
	if dir == "/" {
		dir = ""
	}
	first := map[string]bool{} // first path elements of hidden paths below dir: entries of dir that are hidden or contain a hidden path
	for _, h := range below {
		name, _, _ := strings.Cut(h[len(dir)+1:], "/")
		first[name] = true
	}
	forEachEntry(fd, func(name string, kind byte) {
		switch {
		case first[name]:
			if path := dir + "/" + name; !Within(path, below) {
				r.allowReadExceptHidden(path, below)
			}
		case kind == unix.DT_LNK: // a symbolic link needs no rule
		default:
			if entry, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
				_ = r.addFile(entry, readFileRights)
				unix.Close(entry)
			}
		}
	})
}

// addPath adds Landlock rights for a file, or for a folder and everything below it. If the path is
// a file, addPath omits the rights that apply only to folders.
func (r *ruleset) addPath(path string, rights uint64) error {
	fd, err := openPath(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := r.addFile(fd, rights); err != nil {
		return fmt.Errorf("%s: rule: %w", path, err)
	}
	return nil
}

// addFile adds Landlock rights for an open file, or for an open folder and everything below it,
// without the rights that a file cannot have.
func (r *ruleset) addFile(fd int, rights uint64) error {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handledRights, Parent_fd: int32(fd)}
	for {
		_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		switch file := uint64(writeFileRights) & rule.Allowed_access; {
		case errno == 0:
			return nil
		case errno == unix.EINVAL && file != rule.Allowed_access && file != 0:
			rule.Allowed_access = file
		default:
			return errno
		}
	}
}

// openPath opens a canonical path with O_PATH. It fails if the path contains a symbolic link now, since
// then it is not the judged path.
func openPath(path string) (int, error) { return openWithFlags(path, unix.O_PATH) }

func openWithFlags(path string, flags uint64) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	return fd, nil
}

// forEachEntry calls each for the names in an open folder, with their types (DT_…).
func forEachEntry(folder int, each func(name string, kind byte)) {
	buf := make([]byte, 1<<15)
	for {
		n, err := unix.Getdents(folder, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		for b := buf[:n]; len(b) > 19; { // struct linux_dirent64
			size := int(b[16]) | int(b[17])<<8
			if size < 19 || size > len(b) {
				return
			}
			name, _, _ := bytes.Cut(b[19:size], []byte{0})
			if s := string(name); s != "." && s != ".." {
				each(s, b[18])
			}
			b = b[size:]
		}
	}
}
