package session

import (
	"crypto/rand"
	"slices"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
)

// A fileSet is what is known of files. Sessions share it, and anyone who changes it
// takes a copy of the map.
type fileSet struct {
	files        map[string]fileEntry
	unidentified []string      // those whose identity is not known
	downloaded   *effect.Paths // those that came from elsewhere
}

func newFileSet(files map[string]fileEntry) fileSet { return fileSet{}.withChanges(files) }

// withChanges returns the set after a change of its files.
func (s fileSet) withChanges(files map[string]fileEntry) fileSet {
	unmet := unidentifiedPaths(files)
	if slices.Equal(unmet, s.unidentified) {
		unmet = s.unidentified // what is known of a list is kept by where it lies
	}
	return fileSet{files: files, unidentified: unmet, downloaded: s.downloaded.Next(downloadedPaths(files))}
}

// unidentifiedPaths returns the labelled files whose identity is not known, by path.
func unidentifiedPaths(files map[string]fileEntry) (out []string) {
	for path, e := range files {
		if e.id == (effect.Identity{}) && !e.tree && e.labels != 0 {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// downloadedPaths returns the paths of the files that came from elsewhere, sorted.
func downloadedPaths(files map[string]fileEntry) (out []string) {
	for path, e := range files {
		if e.labels&untrustedBits != 0 {
			if e.tree {
				path += "/"
			}
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// changeKey is the key of a random text that a group gets with each change of its
// files.
var changeKey = []byte("files")

func changedFiles(sh shelf, group []byte) error {
	return sh.Put(group, changeKey, []byte(rand.Text()))
}

// Bounds of the files that a process keeps.
const (
	maxFileSets = 16
	maxSetFiles = 1 << 16 // of all of them
)

// fileSets are the files of sessions, read once a change. Goroutines share them.
type fileSets struct {
	mu       sync.Mutex
	byChange map[string]fileSet
	files    int
}

// load returns the files of groups.
func (k *fileSets) load(sh shelf, groups [][]byte) (fileSet, error) {
	change := ""
	for _, group := range groups {
		change += string(sh.Get(group, changeKey))
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
	k.put(change, set)
	return set, nil
}

// change gives a group its new files a name, and keeps them under it: anyone who reads
// the group next in this process has them already.
func (k *fileSets) change(sh shelf, group []byte, set fileSet) error {
	before := string(sh.Get(group, changeKey))
	if err := changedFiles(sh, group); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, ok := k.byChange[before]; ok {
		delete(k.byChange, before)
		k.files -= len(old.files)
	}
	k.put(string(sh.Get(group, changeKey)), set)
	return nil
}

func (k *fileSets) put(change string, set fileSet) {
	if k.byChange == nil || len(k.byChange) == maxFileSets || k.files+len(set.files) > maxSetFiles {
		k.byChange, k.files = map[string]fileSet{}, 0
	}
	k.byChange[change] = set
	k.files += len(set.files)
}
