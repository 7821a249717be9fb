package analysis

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// A Layer holds files over those of the disk, for actions that ran at another time or in a folder
// that is not here: what it knows is there, or is gone, whatever the disk says. One goroutine at a
// time asks it.
type Layer interface {
	// Look returns what is at a canonical path; known is false where the disk says it.
	Look(path string) (e Entry, known bool)

	// Names returns the names of what the layer has or has taken away in a folder.
	Names(folder string) []string

	// Absent is told a path that neither the layer nor the disk has. It reports whether to judge as
	// if an empty file were there.
	Absent(path string) bool
}

// An Entry is what a [Layer] has at a path.
type Entry struct {
	Text      []byte
	Folder    bool
	Gone      bool // nothing is there
	Unread    bool // a file whose content is not known
	Committed bool // the last commit of its repository has it as it is
}

// layerEntryAt returns what the layer has at a path.
func (f *files) layerEntryAt(path string) (e Entry, known bool) {
	if f.layer == nil {
		return e, false
	}
	return f.layer.Look(path)
}

// at looks up one name, as [looker.at], in the layer and then on the disk.
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

// layered returns the text of a file of the layer; known is false for what is not there.
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
	if _, err := look.at(path); errors.Is(err, fs.ErrNotExist) { // judged as if an empty file were there
		return nil, nil, f.layer.Absent(path)
	}
	return nil, nil, false
}

// merged returns at most most entries of a folder, those of the disk and of the layer, by name.
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
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// layerEntry is an entry of a layer as [fs.DirEntry] and [fs.FileInfo].
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
