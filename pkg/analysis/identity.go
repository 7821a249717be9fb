package analysis

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"

	"github.com/shieldcli/shield/pkg/effect"
)

// maxIdentified is the size in bytes from which on the content of a file is not
// looked at.
const maxIdentified = 4 << 20

// An Identifier says what files are. It looks at each folder and each file once, so it
// is good for one goroutine, and for actions of which none can have run before the
// last is judged. A nil Identifier sees no file.
type Identifier struct {
	files *files
	known folders
	seen  folderStamps
	found map[string]identified

	list    []string // that Perhaps was asked for last
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

// Identify says what the file at a canonical path is. ok is false for what is not
// there, is not a regular file, or is not looked at.
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

// Perhaps returns those of some files that may be there: of the others each was
// looked for before, and nothing was put since into the folder that it would be in.
// The list must not change afterwards.
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
