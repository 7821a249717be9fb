//go:build !unix

package owner

import (
	"errors"
	"io/fs"
	"os"
)

// SupportsFileOwners reports whether this system shows who owns a file. Where it does not,
// [CheckOwnerAndDeniedModeBits] accepts everything.
const SupportsFileOwners = false

const openNonblocking = 0

// CheckOwnerAndDeniedModeBits accepts everything: access is governed by lists that a mode does not
// show, and a user's own folders are closed to other users.
func CheckOwnerAndDeniedModeBits(fs.FileInfo, fs.FileMode) error { return nil }

// OpenNoFollow opens a file that is not a link for reading.
func OpenNoFollow(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("the path is not a regular file; put a regular file there")
	}
	return os.Open(path)
}

// CopyOwner does nothing: a new file inherits its folder's permissions here.
func CopyOwner(*os.File, fs.FileInfo) error { return nil }

// OnlyRootCanWrite reports false: access is governed by lists that a mode does not show.
func OnlyRootCanWrite(fs.FileInfo) bool { return false }

// CheckSingleLink accepts everything.
func CheckSingleLink(fs.FileInfo) error { return nil }
