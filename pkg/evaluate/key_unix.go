//go:build unix

package evaluate

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep a named pipe from blocking the open.
const openFlags = syscall.O_NONBLOCK

// checkAccess refuses a file that others can read or could have written.
func checkAccess(name string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, others have access; run 'chmod 600 %s'", name, mode, name)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to the one who runs shield", name, stat.Uid)
	}
	return nil
}
