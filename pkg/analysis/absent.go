package analysis

import (
	"path"
	"slices"
	"sync"
	"time"
)

// absenceCache remembers files that did not exist when looked up. Each entry holds the deepest existing
// parent folder and its stamp: while the stamp is unchanged, the file still does not exist. Sessions look up
// the same files before each action. Goroutines may share it.
type absenceCache struct {
	mu   sync.Mutex
	of   map[string]absence
	list absentList
}

// An absentList is the list of files that was looked up last, with the few folders whose stamps prove that
// they do not exist. The list is identified by its address in memory.
type absentList struct {
	paths   []string
	folders []absence
	in      []int8 // index into folders, for each path; -1 if no folder proves that it is absent
	again   []int  // indexes of paths to look up again
}

type absence struct {
	folder string // the deepest existing parent folder
	as     folderStamp
}

// A folderStamp identifies the state of a folder by device, inode and ctime. Only the system sets the ctime,
// and no two folders share device and inode.
type folderStamp struct {
	device, inode uint64
	changed       int64 // ns since 1970
}

// Limits of the cache: files, and folders of a list.
const (
	maxAbsences = 1 << 14
	maxListed   = 64
)

// settled reports whether a stamp of an age can be trusted: a file created in the same clock tick of the file
// system does not change the stamp. A tick of Linux is at most 10 ms; for file systems with times in whole
// seconds, settled assumes a tick of 2 s.
func (s folderStamp) settled(age time.Duration) bool {
	tick := 2 * time.Second
	if s.changed%int64(time.Millisecond) != 0 {
		tick = 100 * time.Millisecond
	}
	return age >= tick
}

// folderStamps caches the stamps of folders during one action.
type folderStamps map[string]seenFolder

type seenFolder struct {
	folderStamp
	is    bool // it is a folder
	trust bool // the stamp is settled
}

func (s folderStamps) of(folder string) seenFolder {
	f, ok := s[folder]
	if !ok {
		f.folderStamp, f.is = stampOf(folder)
		f.trust = f.is && f.folderStamp.settled(time.Since(time.Unix(0, f.changed)))
		s[folder] = f
	}
	return f
}

// stillAbsent reports whether a file is still not there.
func (a *absenceCache) stillAbsent(name string, seen folderStamps) bool {
	a.mu.Lock()
	was, ok := a.of[name]
	a.mu.Unlock()
	return ok && seen.of(was.folder).folderStamp == was.as
}

// possiblyPresent returns the files of a list that may exist. Sessions pass the same list, action after
// action, until it has grown.
func (a *absenceCache) possiblyPresent(paths []string, seen folderStamps) (out []string) {
	if len(paths) == 0 {
		return nil
	}
	list := a.foldersProvingAbsence(paths)
	changed := make([]bool, len(list.folders))
	for i, was := range list.folders {
		changed[i] = seen.of(was.folder).folderStamp != was.as
	}
	var again []int
	for i, path := range paths {
		if f := list.in[i]; f < 0 || changed[f] {
			out, again = append(out, path), append(again, i)
		}
	}
	if len(again) > 0 {
		list.again = again
		a.mu.Lock()
		a.list = list
		a.mu.Unlock()
	}
	return out
}

// foldersProvingAbsence returns the folders whose stamps prove that files of a list do not exist.
func (a *absenceCache) foldersProvingAbsence(paths []string) absentList {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.list
	if len(list.paths) != len(paths) || &list.paths[0] != &paths[0] || len(list.folders) == maxListed {
		list = absentList{paths: paths, in: make([]int8, len(paths))}
		for i := range paths {
			list.find(i, a.of)
		}
	} else if len(list.again) > 0 {
		list.in, list.folders = slices.Clone(list.in), slices.Clip(list.folders) // other goroutines may read them
		for _, i := range list.again {
			list.find(i, a.of)
		}
	}
	list.again = nil
	a.list = list
	return list
}

// find records the folder that proves that file i of the list does not exist.
func (l *absentList) find(i int, of map[string]absence) {
	was, ok := of[l.paths[i]]
	f := slices.Index(l.folders, was)
	if ok && f < 0 && len(l.folders) < maxListed {
		f = len(l.folders)
		l.folders = append(l.folders, was)
	}
	if !ok {
		f = -1
	}
	l.in[i] = int8(f)
}

// noteAbsence remembers that a file does not exist, unless a symbolic link is in its path.
func (a *absenceCache) noteAbsence(name string, seen folderStamps) {
	folder := path.Dir(name)
	for !seen.of(folder).is && folder != path.Dir(folder) {
		folder = path.Dir(folder)
	}
	f := seen.of(folder)
	if !f.trust {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil || len(a.of) >= maxAbsences {
		a.of = map[string]absence{}
	}
	a.of[name] = absence{folder, f.folderStamp}
}
