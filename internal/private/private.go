// Package private checks that files and folders are their owner's alone:
// what shield trusts or executes must not be another user's to change.
package private

import (
	"errors"
	"os"
)

// Folder refuses a folder that others may write to, or that is another user's.
func Folder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("not a folder")
	}
	return Check(info, 0o022)
}
