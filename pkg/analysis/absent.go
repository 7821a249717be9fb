package analysis

import (
	"path"
	"slices"
	"sync"
	"time"
)

// missingFileCache remembers files that did not exist when looked up. Each entry holds the deepest existing
// parent folder and its stamp: while the stamp is unchanged, the file still does not exist. Sessions look up
// the same files before each action. Goroutines may share it.
type missingFileCache struct {
	mu                    sync.Mutex
	byPath                map[string]fileAbsenceEvidence
	latestAbsenceEvidence pathListAbsenceEvidence
}

// A pathListAbsenceEvidence is the list of files that was looked up last, with the few folders whose stamps
// (device, inode and ctime) prove that these files still do not exist. The list is identified by its length and
// the address of its first element.
type pathListAbsenceEvidence struct {
	paths                    []string
	absenceEvidence          []fileAbsenceEvidence
	evidenceIndexByPathIndex []int8 // index into folders, for each path; -1 if no folder proves that it is absent
	pathIndexesToRecheck     []int  // indexes of paths to look up again
}

type fileAbsenceEvidence struct {
	existingParent                 string // the deepest existing parent folder
	existingParentIdentityAndCtime folderStamp
}

// A folderStamp identifies the state of a folder by device, inode and ctime. Only the system sets the ctime,
// and no two folders share device and inode.
type folderStamp struct {
	device, inode  uint64
	changedAtNanos int64 // ns since 1970
}

// Limits of a missingFileCache: the number of files in it, and of folders in a pathListAbsenceEvidence.
const (
	maxCachedMissingFiles         = 1 << 14
	maxFileAbsenceEvidenceFolders = 64
)

// isOlderThanClockTick reports whether a stamp of an age can be trusted: a file created in the same
// clock tick of the file system does not change the stamp. A tick of Linux is at most 10 ms; for
// file systems with times in whole seconds or milliseconds, a tick of 2 s is assumed.
func (s folderStamp) isOlderThanClockTick(stampAge time.Duration) bool {
	tick := 2 * time.Second
	if s.changedAtNanos%int64(time.Millisecond) != 0 {
		tick = 100 * time.Millisecond
	}
	return stampAge >= tick
}

// folderStampCache caches, for one action, the stamp of each folder by the folder's path. A stamp changes when the
// folder's entries change, see [folderStamp].
type folderStampCache map[string]cachedFolder

type cachedFolder struct {
	folderStamp
	isFolder                  bool // the path is a folder; false also for a missing path and for a symbolic link
	isStampOlderThanClockTick bool // the stamp is old enough to be trusted, see [folderStamp.isOlderThanClockTick]
}

func (s folderStampCache) folderFromCacheOrDisk(folder string) cachedFolder {
	f, ok := s[folder]
	if !ok {
		f.folderStamp, f.isFolder = folderStampOf(folder)
		f.isStampOlderThanClockTick = f.isFolder && f.folderStamp.isOlderThanClockTick(time.Since(time.Unix(0, f.changedAtNanos)))
		s[folder] = f
	}
	return f
}

// stillAbsent reports whether a file is still not there.
func (a *missingFileCache) stillAbsent(name string, seen folderStampCache) bool {
	a.mu.Lock()
	was, ok := a.byPath[name]
	a.mu.Unlock()
	return ok && seen.folderFromCacheOrDisk(was.existingParent).folderStamp == was.existingParentIdentityAndCtime
}

// possiblyPresent returns the files of a list that may exist. Sessions pass the same list, action after
// action, until it has grown.
func (a *missingFileCache) possiblyPresent(paths []string, seen folderStampCache) (out []string) {
	if len(paths) == 0 {
		return nil
	}
	list := a.findAbsenceEvidence(paths)
	changed := make([]bool, len(list.absenceEvidence))
	for i, was := range list.absenceEvidence {
		changed[i] = seen.folderFromCacheOrDisk(was.existingParent).folderStamp != was.existingParentIdentityAndCtime
	}
	var again []int
	for i, path := range paths {
		if f := list.evidenceIndexByPathIndex[i]; f < 0 || changed[f] {
			out, again = append(out, path), append(again, i)
		}
	}
	if len(again) > 0 {
		list.pathIndexesToRecheck = again
		a.mu.Lock()
		a.latestAbsenceEvidence = list
		a.mu.Unlock()
	}
	return out
}

// findAbsenceEvidence returns the folders whose stamps prove that files of a list do not exist.
func (a *missingFileCache) findAbsenceEvidence(paths []string) pathListAbsenceEvidence {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.latestAbsenceEvidence
	if len(list.paths) != len(paths) || &list.paths[0] != &paths[0] || len(list.absenceEvidence) == maxFileAbsenceEvidenceFolders {
		list = pathListAbsenceEvidence{paths: paths, evidenceIndexByPathIndex: make([]int8, len(paths))}
		for i := range paths {
			list.recordExistingParentFolder(i, a.byPath)
		}
	} else if len(list.pathIndexesToRecheck) > 0 {
		list.evidenceIndexByPathIndex, list.absenceEvidence = slices.Clone(list.evidenceIndexByPathIndex), slices.Clip(list.absenceEvidence) // other goroutines may read them
		for _, i := range list.pathIndexesToRecheck {
			list.recordExistingParentFolder(i, a.byPath)
		}
	}
	list.pathIndexesToRecheck = nil
	a.latestAbsenceEvidence = list
	return list
}

// recordExistingParentFolder records the existing parent folder that proves that the file
// paths[pathIndex] does not exist.
func (l *pathListAbsenceEvidence) recordExistingParentFolder(pathIndex int, missingFileByPath map[string]fileAbsenceEvidence) {
	was, ok := missingFileByPath[l.paths[pathIndex]]
	f := slices.Index(l.absenceEvidence, was)
	if ok && f < 0 && len(l.absenceEvidence) < maxFileAbsenceEvidenceFolders {
		f = len(l.absenceEvidence)
		l.absenceEvidence = append(l.absenceEvidence, was)
	}
	if !ok {
		f = -1
	}
	l.evidenceIndexByPathIndex[pathIndex] = int8(f)
}

// cacheMissingFile remembers that a file does not exist, unless a symbolic link is in its path.
func (a *missingFileCache) cacheMissingFile(filePath string, seen folderStampCache) {
	folder := path.Dir(filePath)
	for !seen.folderFromCacheOrDisk(folder).isFolder && folder != path.Dir(folder) {
		folder = path.Dir(folder)
	}
	f := seen.folderFromCacheOrDisk(folder)
	if !f.isStampOlderThanClockTick {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byPath == nil || len(a.byPath) >= maxCachedMissingFiles {
		a.byPath = map[string]fileAbsenceEvidence{}
	}
	a.byPath[filePath] = fileAbsenceEvidence{folder, f.folderStamp}
}
