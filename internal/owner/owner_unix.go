//go:build unix

package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// SupportsFileOwners reports whether this system shows who owns a file. Where it does not,
// [CheckOwnerAndDeniedModeBits] accepts everything.
const SupportsFileOwners = true

// openNonblocking keeps a named pipe from blocking the open.
const openNonblocking = syscall.O_NONBLOCK

// CheckOwnerAndDeniedModeBits refuses what belongs neither to this user nor to root, or has one of
// the mode bits in denied.
func CheckOwnerAndDeniedModeBits(info fs.FileInfo, denied fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return errors.New("the file belongs to another user; find out who put it there, then remove it, or run 'chown' to make it yours")
	}
	if mode := info.Mode().Perm(); mode&denied != 0 {
		return fmt.Errorf("the mode %04o gives other users access; run 'chmod %04o' on it", mode, mode&^GroupOrOtherAccessBits)
	}
	return nil
}

// CheckSingleLink returns an error if a file has more than one hard link: users who know the other
// path can read or change the file there, where its folder is not checked.
func CheckSingleLink(info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return errors.New("the file has a second hard link; find it with 'find -samefile', and remove it")
	}
	return nil
}

// OnlyRootCanWrite reports whether root alone can change a file.
func OnlyRootCanWrite(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0 && info.Mode().Perm()&GroupOrOtherWriteBits == 0
}

// OpenNoFollow opens a file for reading without following a link at its end and without
// waiting for the other side of a pipe.
func OpenNoFollow(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("the path is a symbolic link; replace the link with its target file")
	}
	return f, err
}

// CopyOwner gives a file the owner and group of another: root edits the
// settings of others, who have to be able to read them afterwards.
func CopyOwner(f *os.File, like fs.FileInfo) error {
	want, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if have, ok := st.Sys().(*syscall.Stat_t); ok && have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
		return fmt.Errorf("writing to %s would change the owner of the file: %w; run the command as the owner of the file", like.Name(), err)
	}
	return nil
}
