//go:build unix

package cmd

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// sameOwner gives a file the owner and group of another: root edits the
// settings of others, who have to be able to read them afterwards.
func sameOwner(f *os.File, like fs.FileInfo) error {
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
		return fmt.Errorf("%s would change its owner: %w", like.Name(), err)
	}
	return nil
}
