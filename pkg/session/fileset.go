package session

import (
	"crypto/rand"
	"slices"
	"sync"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
)

// A fileSet is a set of known files. Sessions share it; to change it, copy the map.
type fileSet struct {
	files                        map[string]fileRecord
	labelledPathsWithoutIdentity []string         // files whose identity is unknown
	downloaded                   *effect.PathList // files that were downloaded, decoded or cloned
}

func newFileSet(files map[string]fileRecord) fileSet { return fileSet{}.withChanges(files) }

// withChanges returns the set with changed files.
func (s fileSet) withChanges(files map[string]fileRecord) fileSet {
	unmet := labelledPathsWithoutIdentity(files)
	if slices.Equal(unmet, s.labelledPathsWithoutIdentity) {
		unmet = s.labelledPathsWithoutIdentity // keep the old slice: FileIdentityResolver.PossiblyPresent caches its result by the slice's address
	}
	return fileSet{files: files, labelledPathsWithoutIdentity: unmet, downloaded: s.downloaded.Update(downloadedPaths(files))}
}

// labelledPathsWithoutIdentity returns the labelled files whose identity is unknown, sorted by path.
func labelledPathsWithoutIdentity(files map[string]fileRecord) (out []string) {
	for path, e := range files {
		if e.identity == (effect.FileIdentity{}) && !e.includesDescendants && e.taintLabelBits != 0 {
			out = append(out, path)
		}
	}
	sorted.SortStrings(out)
	return out
}

// downloadedPaths returns the paths of the downloaded, decoded or cloned files, sorted.
func downloadedPaths(files map[string]fileRecord) (out []string) {
	for path, e := range files {
		if e.taintLabelBits&untrustedLabelBits != 0 {
			if e.includesDescendants {
				path += "/"
			}
			out = append(out, path)
		}
	}
	sorted.SortStrings(out)
	return out
}

// fileRecordsRevisionKey is the key of a random value that a group gets with each change of its files.
var fileRecordsRevisionKey = []byte("files")

func putNewFileRecordsRevision(sh storageTx, group []byte) error {
	return sh.Put(group, fileRecordsRevisionKey, []byte(rand.Text()))
}

// Bounds of the files that a process caches.
const (
	maxCachedFileSets = 16
	maxCachedFiles    = 1 << 16 // maximum number of cached files in all sets
)

// fileSetCache caches the files of sessions, read once per change. Goroutines share it.
type fileSetCache struct {
	mu         sync.Mutex
	byRevision map[string]fileSet
	fileCount  int
}

// load returns the files that some storage groups (of a session or of a user) hold. It reads them again only if
// a group has changed.
func (k *fileSetCache) load(sh storageTx, groups [][]byte) (fileSet, error) {
	change := ""
	for _, group := range groups {
		change += string(sh.Get(group, fileRecordsRevisionKey))
	}
	if change == "" {
		return fileSet{}, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if set, ok := k.byRevision[change]; ok {
		return set, nil
	}
	var all Session
	for _, group := range groups {
		if err := all.loadFiles(sh, group); err != nil {
			return fileSet{}, err
		}
	}
	set := newFileSet(all.files)
	k.cacheFileSet(change, set)
	return set, nil
}

// cacheChangedFiles gives the new files of a group a new change key and caches them under it, so that this
// process need not read them again.
func (k *fileSetCache) cacheChangedFiles(sh storageTx, group []byte, set fileSet) error {
	before := string(sh.Get(group, fileRecordsRevisionKey))
	if err := putNewFileRecordsRevision(sh, group); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, ok := k.byRevision[before]; ok {
		delete(k.byRevision, before)
		k.fileCount -= len(old.files)
	}
	k.cacheFileSet(string(sh.Get(group, fileRecordsRevisionKey)), set)
	return nil
}

func (k *fileSetCache) cacheFileSet(filesRevision string, set fileSet) {
	if k.byRevision == nil || len(k.byRevision) == maxCachedFileSets || k.fileCount+len(set.files) > maxCachedFiles {
		k.byRevision, k.fileCount = map[string]fileSet{}, 0
	}
	k.byRevision[filesRevision] = set
	k.fileCount += len(set.files)
}
