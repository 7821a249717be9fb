package analysis

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
)

// CreatedPaths returns the paths that an action creates in the workspace or a temporary folder and that certainly do
// not exist yet: files, and the topmost missing folder above one. It also returns the files it changes that
// the session has created.
func (c *ActionCase) CreatedPaths() (out []string) {
	if c.files == nil {
		return nil
	}
	moves := false
	for i := range c.Effects {
		e := &c.Effects[i]
		moves = moves || e.Kind == effect.MoveFile && !(c.executionContext.IsFileCreatedBySession != nil && c.executionContext.IsFileCreatedBySession(e.Path))
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.WriteFile && e.Kind != effect.CreateDirectory || e.Certainty == effect.Possible || e.PathIsPattern || e.Path == "" || len(out) == maxResolvedPaths {
			continue
		}
		if c.executionContext.IsFileCreatedBySession != nil && c.executionContext.IsFileCreatedBySession(e.Path) {
			out = append(out, e.Path)
			continue
		}
		first := c.topmostMissingFolder(e.Path)
		if first != "" && (!moves || e.Kind == effect.CreateDirectory) && !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	return out
}

// topmostMissingFolder returns the topmost missing folder above a path, or the path itself; "" if nothing is
// missing, if that is not known, or if the path is outside the workspace and the temporary folders or goes
// through a symbolic link.
func (c *ActionCase) topmostMissingFolder(name string) string {
	if c.files == nil {
		return ""
	}
	root := c.containingWorkspaceOrTempRoot(name)
	if _, err := c.files.resolvePath(root); root == "" || err != nil {
		return ""
	}
	real, err := c.files.resolvePath(name)
	if !errors.Is(err, fs.ErrNotExist) || real != name { // the path exists, cannot be examined, or goes through a symbolic link
		return ""
	}
	for first := name; ; first = path.Dir(first) {
		up := path.Dir(first)
		if _, err := c.files.resolvePath(up); err == nil || up == root || len(up) <= 1 {
			return first
		}
	}
}

// containingWorkspaceOrTempRoot returns the root or temporary folder that contains a path; "" if none.
func (c *ActionCase) containingWorkspaceOrTempRoot(filePath string) string {
	for _, root := range c.executionContext.WorkspaceRoots {
		if strings.HasPrefix(filePath, strings.TrimSuffix(root, "/")+"/") {
			return root
		}
	}
	folder, _ := effect.CutTemporaryFolder(filePath)
	return folder
}

// maxCheckedFolderEntries is the maximum number of entries that
// [FileIdentityResolver.AllFilesChangedBetween] looks at.
const maxCheckedFolderEntries = 4096

// AllFilesChangedBetween reports whether the last change of each file at or below a path was between two instants, or the
// path does not exist.
func (i *FileIdentityResolver) AllFilesChangedBetween(rootPath string, from, to time.Time) bool {
	if i == nil {
		return false
	}
	real, err := i.files.resolvePathCached(rootPath, i.symlinkLookupsByFolder)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	if _, known := i.files.overlayEntryAt(real); known {
		return real == rootPath // an earlier action of the session made the entry of the overlay, so its times need no check
	}
	left := maxCheckedFolderEntries
	return real == rootPath && i.files.allFilesChangedBetween(rootPath, from, to, &left)
}

func (f *localFileInspector) allFilesChangedBetween(rootPath string, from, to time.Time, entriesLeft *int) bool {
	info, err := localNoSymlinkDisk{f}.Lstat(rootPath)
	if *entriesLeft--; err != nil || *entriesLeft < 0 {
		return false
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return true
	case !info.IsDir():
		return info.Mode().IsRegular() && !info.ModTime().Before(from) && !info.ModTime().After(to)
	}
	names, err := localNoSymlinkDisk{f}.ReadDir(rootPath, *entriesLeft+1)
	for _, n := range names {
		if err != nil || !f.allFilesChangedBetween(rootPath+"/"+n.Name(), from, to, entriesLeft) {
			return false
		}
	}
	return err == nil
}
