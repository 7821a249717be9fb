// Package owner checks that files belong to the user who runs shield or to root, and that other users cannot
// access them: files that others can replace are not trusted.
package owner

import (
	"fmt"
	"io/fs"
	"os"
)

// Mode bits for other users.
const (
	GroupOrOtherAccessBits fs.FileMode = 0o077 // any access
	GroupOrOtherWriteBits  fs.FileMode = 0o022 // write access
)

// CheckFolderOwnerAndMode returns an error for a folder (after symbolic links) that belongs neither to this user
// nor to root, or in which other users can create and rename files.
func CheckFolderOwnerAndMode(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder; remove it", path)
	}
	if err := CheckOwnerAndDeniedModeBits(info, GroupOrOtherWriteBits); err != nil {
		return fmt.Errorf("folder %s: %w", path, err)
	}
	return nil
}
