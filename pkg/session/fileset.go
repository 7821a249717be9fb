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
	files        map[string]fileEntry
	unidentified []string         // files whose identity is unknown
	downloaded   *effect.PathList // files that were downloaded, decoded or cloned
}

func newFileSet(files map[string]fileEntry) fileSet { return fileSet{}.withChanges(files) }

// withChanges returns the set with changed files.
func (s fileSet) withChanges(files map[string]fileEntry) fileSet {
	unmet := unidentifiedPaths(files)
	if slices.Equal(unmet, s.unidentified) {
		unmet = s.unidentified // the cache is keyed by the address of the slice
	}
	return fileSet{files: files, unidentified: unmet, downloaded: s.downloaded.Update(downloadedPaths(files))}
}

// unidentifiedPaths returns the labelled files whose identity is unknown, sorted by path.
func unidentifiedPaths(files map[string]fileEntry) (out []string) {
	for path, e := range files {
		if e.identity == (effect.Identity{}) && !e.wholeTree && e.labels != 0 {
			out = append(out, path)
		}
	}
	sorted.Strings(out)
	return out
}

// downloadedPaths returns the paths of the downloaded, decoded or cloned files, sorted.
func downloadedPaths(files map[string]fileEntry) (out []string) {
	for path, e := range files {
		if e.labels&untrustedBits != 0 {
			if e.wholeTree {
				path += "/"
			}
			out = append(out, path)
		}
	}
	sorted.Strings(out)
	return out
}

// filesChangeKey is the key of a random value that a group gets with each change of its files.
var filesChangeKey = []byte("files")

func renewChangeKey(sh storageTx, group []byte) error {
	return sh.Put(group, filesChangeKey, []byte(rand.Text()))
}

// Bounds of the files that a process caches.
const (
	maxFileSets    = 16
	maxCachedFiles = 1 << 16 // maximum number of cached files in all sets
)

// fileSets caches the files of sessions, read once per change. Goroutines share it.
type fileSets struct {
	mu        sync.Mutex
	byChange  map[string]fileSet
	fileCount int
}

// load returns the files of some groups.
func (k *fileSets) load(sh storageTx, groups [][]byte) (fileSet, error) {
	change := ""
	for _, group := range groups {
		change += string(sh.Get(group, filesChangeKey))
	}
	if change == "" {
		return fileSet{}, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if set, ok := k.byChange[change]; ok {
		return set, nil
	}
	var all Session
	for _, group := range groups {
		if err := all.loadFiles(sh, group); err != nil {
			return fileSet{}, err
		}
	}
	set := newFileSet(all.files)
	k.cacheSet(change, set)
	return set, nil
}

// storeChanged gives the new files of a group a new change key and caches them under it, so that this
// process need not read them again.
func (k *fileSets) storeChanged(sh storageTx, group []byte, set fileSet) error {
	before := string(sh.Get(group, filesChangeKey))
	if err := renewChangeKey(sh, group); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, ok := k.byChange[before]; ok {
		delete(k.byChange, before)
		k.fileCount -= len(old.files)
	}
	k.cacheSet(string(sh.Get(group, filesChangeKey)), set)
	return nil
}

func (k *fileSets) cacheSet(change string, set fileSet) {
	if k.byChange == nil || len(k.byChange) == maxFileSets || k.fileCount+len(set.files) > maxCachedFiles {
		k.byChange, k.fileCount = map[string]fileSet{}, 0
	}
	k.byChange[change] = set
	k.fileCount += len(set.files)
}
