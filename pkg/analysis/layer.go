package analysis

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/sorted"
)

// A FileOverlay replaces files of the disk, for judging actions that ran at another time or in a folder that does
// not exist here: its entries, present or deleted, take precedence over the disk. It is used by one goroutine
// at a time.
type FileOverlay interface {
	// LookUpEntry returns the entry at a canonical path; known is false if the disk decides.
	LookUpEntry(path string) (e OverlayEntry, known bool)

	// Names returns the names in a folder that the overlay has added or deleted.
	Names(folder string) []string

	// TreatsMissingPathAsEmptyFile is called with a path that is neither in the overlay nor on the disk. It reports
	// whether to judge as if an empty file existed at the path.
	TreatsMissingPathAsEmptyFile(path string) bool
}

// An OverlayEntry is the state of a path in a [FileOverlay].
type OverlayEntry struct {
	Text                 []byte
	IsFolder             bool
	Deleted              bool // deleted
	ContentUnknown       bool // a file whose content is not known
	IsIdenticalInGitHEAD bool // identical in the last commit of its repository
}

// overlayEntryAt returns the overlay's entry at a path.
func (f *localFileInspector) overlayEntryAt(path string) (e OverlayEntry, known bool) {
	if f.overlay == nil {
		return e, false
	}
	return f.overlay.LookUpEntry(path)
}

// overlayOrDiskLinkTarget looks up a name as [localSymlinkReader.linkTarget] does, but the overlay takes precedence
// over the disk.
func (f *localFileInspector) overlayOrDiskLinkTarget(look *localSymlinkReader, path string) (linkTarget string, err error) {
	e, known := f.overlayEntryAt(path)
	switch {
	case known && e.Deleted:
		return "", fs.ErrNotExist
	case known:
		return "", nil
	}
	linkTarget, err = look.linkTarget(path)
	if f.overlay != nil && errors.Is(err, fs.ErrNotExist) && f.overlay.TreatsMissingPathAsEmptyFile(path) {
		return "", nil
	}
	return linkTarget, err
}

// overlayText returns the text of a file in the overlay; known is false if the disk decides.
func (f *localFileInspector) overlayText(path string) (text []byte, err error, known bool) {
	e, known := f.overlayEntryAt(path)
	switch {
	case known && e.Deleted:
		return nil, fs.ErrNotExist, true
	case known && (e.IsFolder || e.ContentUnknown):
		return nil, errPathNotInspected, true
	case known:
		return e.Text, nil, true
	}
	if f.overlay == nil {
		return nil, nil, false
	}
	look := f.newLocalLinkLookup()
	if _, err := look.linkTarget(path); errors.Is(err, fs.ErrNotExist) { // the file is missing on the disk too: the overlay decides whether an empty file is assumed instead
		return nil, nil, f.overlay.TreatsMissingPathAsEmptyFile(path)
	}
	return nil, nil, false
}

// readDirWithOverlay returns the entries of a folder, sorted by name, at most maxEntries. Entries of the overlay
// replace those on the disk.
func (f *localFileInspector) readDirWithOverlay(folder string, maxEntries int) ([]fs.DirEntry, error) {
	names := f.overlay.Names(folder)
	out, err := readDir(folder, maxEntries)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || len(names) == 0) {
		return out, err
	}
	for _, name := range names {
		out = slices.DeleteFunc(out, func(e fs.DirEntry) bool { return e.Name() == name })
		if e, known := f.overlayEntryAt(path.Join(folder, name)); known && !e.Deleted && len(out) < maxEntries {
			out = append(out, overlayFileInfo{name, e})
		}
	}
	sorted.SortStableBy(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// An overlayFileInfo is an entry of a [FileOverlay] as [fs.DirEntry] and [fs.FileInfo].
type overlayFileInfo struct {
	name  string
	entry OverlayEntry
}

func (n overlayFileInfo) Name() string               { return n.name }
func (n overlayFileInfo) IsDir() bool                { return n.entry.IsFolder }
func (n overlayFileInfo) Info() (fs.FileInfo, error) { return n, nil }
func (n overlayFileInfo) Type() fs.FileMode          { return n.Mode().Type() }
func (n overlayFileInfo) Size() int64                { return int64(len(n.entry.Text)) }
func (n overlayFileInfo) ModTime() time.Time         { return time.Time{} }
func (n overlayFileInfo) Sys() any                   { return nil }
func (n overlayFileInfo) Mode() fs.FileMode {
	if n.entry.IsFolder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
