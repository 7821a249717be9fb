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

// Identifier returns a function that says what the file at a canonical path is. Its
// ok is false for what is not there, is not a regular file, or is not looked at. It
// looks at each folder once, so it is good for one action and one goroutine.
func (an *Analyzer) Identifier() func(path string) (id effect.Identity, ok bool) {
	if an.files == nil {
		return nil
	}
	known, seen := folders{}, stamps{}
	return func(path string) (effect.Identity, bool) { return an.files.identify(path, known, seen) }
}

func (f *files) identify(path string, known folders, seen stamps) (id effect.Identity, ok bool) {
	if f.absent.still(path, seen) {
		return id, false
	}
	real, err := f.through(path, known)
	if errors.Is(err, fs.ErrNotExist) && real == path {
		f.absent.note(path, seen)
	}
	if err != nil {
		return id, false
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
