package analysis

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"

	"github.com/shieldcli/shield/pkg/effect"
)

// maxIdentified is the maximum size in bytes of a file whose content is read.
const maxIdentified = 4 << 20

// An Identifier identifies files. It looks at each folder and file only once, so use a new one whenever an
// action may have run. It is for one goroutine. A nil Identifier sees no files.
type Identifier struct {
	files *files
	known folders
	seen  folderStamps
	found map[string]identified

	list    []string // argument of the last call of Perhaps
	perhaps []string
}

type identified struct {
	effect.Identity
	ok bool
}

// Identifier returns an Identifier for the next action.
func (an *Analyzer) Identifier() *Identifier {
	if an.files == nil {
		return nil
	}
	return &Identifier{files: an.files, known: folders{}, seen: folderStamps{}, found: map[string]identified{}}
}

// Identify returns the identity of the file at a canonical path. ok is false if it does not exist, is not a
// regular file, or may not be looked at.
func (i *Identifier) Identify(path string) (id effect.Identity, ok bool) {
	if i == nil {
		return id, false
	}
	f, looked := i.found[path]
	if !looked {
		f.Identity, f.ok = i.files.identify(path, i.known, i.seen)
		i.found[path] = f
	}
	return f.Identity, f.ok
}

// Perhaps returns the files of a list that may exist. The others were absent at an earlier lookup, and their
// folders have not changed since. The caller must not change the list afterwards.
func (i *Identifier) Perhaps(paths []string) []string {
	if i == nil {
		return nil
	}
	if i.files.layer != nil {
		return paths
	}
	if len(paths) != len(i.list) || len(paths) > 0 && &paths[0] != &i.list[0] {
		i.list, i.perhaps = paths, i.files.absent.possiblyPresent(paths, i.seen)
	}
	return i.perhaps
}

func (f *files) identify(path string, known folders, seen folderStamps) (id effect.Identity, ok bool) {
	if f.layer == nil && f.absent.stillAbsent(path, seen) {
		return id, false
	}
	real, err := f.followCached(path, known)
	if errors.Is(err, fs.ErrNotExist) && real == path && f.layer == nil {
		f.absent.noteAbsence(path, seen)
	}
	if err != nil {
		return id, false
	}
	if text, err, known := f.layered(real); known {
		sum := sha256.Sum256(text)
		copy(id.Sum[:], sum[:])
		return id, err == nil && len(text) > 0
	}
	file, err := f.open(real)
	if err != nil {
		return id, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 || info.Size() > maxIdentified {
		return id, false
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(file, maxIdentified)); err != nil {
		return id, false
	}
	copy(id.Sum[:], h.Sum(nil))
	id.Device, id.Inode = inode(info)
	return id, true
}
