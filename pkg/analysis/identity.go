package analysis

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"

	"github.com/shieldcli/shield/pkg/effect"
)

// maxContentHashedFileBytes is the maximum size in bytes of a file whose content is read.
const maxContentHashedFileBytes = 4 << 20

// A FileIdentityResolver identifies files. It looks at each folder and file only once, so use a new
// one whenever an action may have run. It is for one goroutine. A nil FileIdentityResolver sees no
// files.
type FileIdentityResolver struct {
	files                  *localFileInspector
	symlinkLookupsByFolder symlinkLookupCache
	stamps                 folderStampCache
	identities             map[string]fileIdentityResult

	previouslyCheckedPaths       []string // argument of the last call of PossiblyPresent
	previousPossiblyPresentPaths []string
}

type fileIdentityResult struct {
	effect.FileIdentity
	isIdentified bool
}

// NewFileIdentityResolver returns a FileIdentityResolver for the next action.
func (an *Analyzer) NewFileIdentityResolver() *FileIdentityResolver {
	if an.files == nil {
		return nil
	}
	return &FileIdentityResolver{files: an.files, symlinkLookupsByFolder: symlinkLookupCache{}, stamps: folderStampCache{}, identities: map[string]fileIdentityResult{}}
}

// Identify returns the identity of the file at a canonical path. ok is false if it does not exist, is not a
// regular file, is empty, is larger than maxContentHashedFileBytes, or may not be looked at.
func (i *FileIdentityResolver) Identify(path string) (id effect.FileIdentity, ok bool) {
	if i == nil {
		return id, false
	}
	f, looked := i.identities[path]
	if !looked {
		f.FileIdentity, f.isIdentified = i.files.identifyFile(path, i.symlinkLookupsByFolder, i.stamps)
		i.identities[path] = f
	}
	return f.FileIdentity, f.isIdentified
}

// PossiblyPresent returns the files of a list that may exist. The others were absent at an earlier lookup, and their
// folders have not changed since. The caller must not change the list afterwards.
func (i *FileIdentityResolver) PossiblyPresent(paths []string) []string {
	if i == nil {
		return nil
	}
	if i.files.overlay != nil {
		return paths
	}
	if len(paths) != len(i.previouslyCheckedPaths) || len(paths) > 0 && &paths[0] != &i.previouslyCheckedPaths[0] {
		i.previouslyCheckedPaths, i.previousPossiblyPresentPaths = paths, i.files.missingFiles.possiblyPresent(paths, i.stamps)
	}
	return i.previousPossiblyPresentPaths
}

func (f *localFileInspector) identifyFile(path string, known symlinkLookupCache, seen folderStampCache) (id effect.FileIdentity, ok bool) {
	if f.overlay == nil && f.missingFiles.stillAbsent(path, seen) {
		return id, false
	}
	real, err := f.resolvePathCached(path, known)
	if errors.Is(err, fs.ErrNotExist) && real == path && f.overlay == nil {
		f.missingFiles.cacheMissingFile(path, seen)
	}
	if err != nil {
		return id, false
	}
	if text, err, known := f.overlayText(real); known {
		sum := sha256.Sum256(text)
		copy(id.ContentSHA256Prefix[:], sum[:])
		return id, err == nil && len(text) > 0
	}
	file, err := f.open(real)
	if err != nil {
		return id, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 || info.Size() > maxContentHashedFileBytes {
		return id, false
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(file, maxContentHashedFileBytes)); err != nil {
		return id, false
	}
	copy(id.ContentSHA256Prefix[:], h.Sum(nil))
	id.Device, id.Inode = inode(info)
	return id, true
}
