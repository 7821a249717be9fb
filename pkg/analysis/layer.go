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

// A Layer replaces files of the disk, for judging actions that ran at another time or in a folder that does
// not exist here: its entries, present or deleted, take precedence over the disk. It is used by one goroutine
// at a time.
type Layer interface {
	// Look returns the entry at a canonical path; known is false if the disk decides.
	Look(path string) (e Entry, known bool)

	// Names returns the names in a folder that the layer has added or deleted.
	Names(folder string) []string

	// Absent is called with a path that is neither in the layer nor on the disk. It reports whether to judge
	// as if an empty file existed.
	Absent(path string) bool
}

// An Entry is the state of a path in a [Layer].
type Entry struct {
	Text      []byte
	Folder    bool
	Gone      bool // deleted
	Unread    bool // a file whose content is not known
	Committed bool // identical in the last commit of its repository
}

// layerEntryAt returns the layer's entry at a path.
func (f *files) layerEntryAt(path string) (e Entry, known bool) {
	if f.layer == nil {
		return e, false
	}
	return f.layer.Look(path)
}

// at is like [looker.at], but asks the layer before the disk.
func (f *files) at(look *looker, path string) (target string, err error) {
	e, known := f.layerEntryAt(path)
	switch {
	case known && e.Gone:
		return "", fs.ErrNotExist
	case known:
		return "", nil
	}
	target, err = look.at(path)
	if f.layer != nil && errors.Is(err, fs.ErrNotExist) && f.layer.Absent(path) {
		return "", nil
	}
	return target, err
}

// layered returns the text of a file in the layer; known is false if the disk decides.
func (f *files) layered(path string) (text []byte, err error, known bool) {
	e, known := f.layerEntryAt(path)
	switch {
	case known && e.Gone:
		return nil, fs.ErrNotExist, true
	case known && (e.Folder || e.Unread):
		return nil, errUnseen, true
	case known:
		return e.Text, nil, true
	}
	if f.layer == nil {
		return nil, nil, false
	}
	look := f.newLooker()
	if _, err := look.at(path); errors.Is(err, fs.ErrNotExist) { // the layer may judge as if an empty file existed
		return nil, nil, f.layer.Absent(path)
	}
	return nil, nil, false
}

// merged returns the entries of a folder from disk and layer, sorted by name, at most as many as most says.
func (f *files) merged(folder string, most int) ([]fs.DirEntry, error) {
	names := f.layer.Names(folder)
	out, err := readDir(folder, most)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || len(names) == 0) {
		return out, err
	}
	for _, name := range names {
		out = slices.DeleteFunc(out, func(e fs.DirEntry) bool { return e.Name() == name })
		if e, known := f.layerEntryAt(path.Join(folder, name)); known && !e.Gone && len(out) < most {
			out = append(out, layerEntry{name, e})
		}
	}
	sorted.By(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// A layerEntry is an entry of a layer as [fs.DirEntry] and [fs.FileInfo].
type layerEntry struct {
	name  string
	entry Entry
}

func (n layerEntry) Name() string               { return n.name }
func (n layerEntry) IsDir() bool                { return n.entry.Folder }
func (n layerEntry) Info() (fs.FileInfo, error) { return n, nil }
func (n layerEntry) Type() fs.FileMode          { return n.Mode().Type() }
func (n layerEntry) Size() int64                { return int64(len(n.entry.Text)) }
func (n layerEntry) ModTime() time.Time         { return time.Time{} }
func (n layerEntry) Sys() any                   { return nil }
func (n layerEntry) Mode() fs.FileMode {
	if n.entry.Folder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
