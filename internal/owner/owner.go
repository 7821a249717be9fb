// Package owner checks that files belong to the user who runs shield and are closed
// to others: what others can replace cannot be relied on.
package owner

import (
	"fmt"
	"io/fs"
	"os"
)

// What of a file's mode lets others in.
const (
	Access fs.FileMode = 0o077 // in any way
	Write  fs.FileMode = 0o022 // to change it
)

// CheckFolder refuses a folder, at the end of links too, that belongs neither
// to this user nor to root, or in which others may create and rename files.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder; remove it", path)
	}
	if err := Check(info, Write); err != nil {
		return fmt.Errorf("folder %s: %w", path, err)
	}
	return nil
}
