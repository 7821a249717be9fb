package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/host"
)

// A hostSettingsFileOnDisk is a host's settings file, and its backup from before shield was
// installed. If the path is a symbolic link, the file at the end of all links is read, replaced and
// removed; it need not exist yet.
type hostSettingsFileOnDisk struct {
	path       string
	backupPath string
}

// maxSymlinks is how many symbolic links are followed, as on Linux.
const maxSymlinks = 40

func newSettingsFile(name string) (hostSettingsFileOnDisk, error) {
	path := name
	for range maxSymlinks {
		// The folder first: the target of a link is relative to the real folder of the link.
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(dir, filepath.Base(path))
		}
		target, err := os.Readlink(path)
		if err != nil { // not a link, or missing
			return hostSettingsFileOnDisk{path, path + ".before-shield"}, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return hostSettingsFileOnDisk{}, fmt.Errorf("%s: more than %d symbolic links; name the file itself", name, maxSymlinks)
}

// read returns the content and whether the file exists.
func (s hostSettingsFileOnDisk) read() (text []byte, exists bool, err error) {
	return readSettingsFile(s.path)
}

// readBackup returns the content from before shield, and whether there was any. A symbolic link in its
// place is an error: a repository may contain one to a file of the user.
func (s hostSettingsFileOnDisk) readBackup() (text []byte, exists bool, err error) {
	if st, err := os.Lstat(s.backupPath); err == nil && !st.Mode().IsRegular() {
		return nil, false, fmt.Errorf("%s: not a regular file; remove it", s.backupPath)
	}
	return readSettingsFile(s.backupPath)
}

// readSettingsFile reads a regular file of at most [host.MaxHookInputBytes]. For other files, such as FIFOs, it returns
// an error and does not block.
func readSettingsFile(name string) (text []byte, exists bool, err error) {
	f, err := owner.OpenNoFollow(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, false, fmt.Errorf("%s: not a regular file; remove it", name)
	}
	text, err = io.ReadAll(io.LimitReader(f, host.MaxHookInputBytes+1))
	if err == nil && len(text) > host.MaxHookInputBytes {
		err = fmt.Errorf("%s: the file is larger than %d MiB; shorten it", name, host.MaxHookInputBytes>>20)
	}
	return text, true, err
}

// saveBackup saves before, the content of the settings file before shield's hook was added, as a
// backup. If the file did not exist, it removes an earlier backup.
func (s hostSettingsFileOnDisk) saveBackup(before []byte, existed bool) error {
	if !existed {
		return s.removeBackup()
	}
	st, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	return replaceFile(s.backupPath, before, st)
}

// removeBackup removes the backup of the settings file that was made before shield's hook was
// added.
func (s hostSettingsFileOnDisk) removeBackup() error {
	if err := os.Remove(s.backupPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkWritable returns why the file cannot be replaced.
func (s hostSettingsFileOnDisk) checkWritable() error {
	if st, err := os.Stat(s.path); err == nil && st.Mode().Perm()&0o200 == 0 {
		return fmt.Errorf("%s: the file is read-only; run 'chmod u+w' on it", s.path)
	}
	return nil
}

// replaceContent replaces the content atomically and keeps mode and owner. If makeExecutable is
// true, the mode becomes 0755.
func (s hostSettingsFileOnDisk) replaceContent(text []byte, makeExecutable bool) error {
	st, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if err := s.checkWritable(); err != nil {
		return err
	}
	if err := replaceFile(s.path, text, st); err != nil || !makeExecutable {
		return err
	}
	return os.Chmod(s.path, 0o755)
}

// replaceFile replaces the file or symbolic link at the path name by a new file. The new file gets
// the mode and owner of the file like; if like is nil, it belongs to the user.
func replaceFile(name string, text []byte, like fs.FileInfo) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".shield-*")
	if err != nil {
		return fmt.Errorf("%s: the folder is not writable: %w; check its owner and mode", name, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if like != nil {
		err = errors.Join(err, owner.CopyOwner(f, like), f.Chmod(like.Mode().Perm()))
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
