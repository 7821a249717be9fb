package analysis

import (
	"path"
	"slices"
	"sync"
	"time"
)

// absenceCache are files that were looked for and were not there, each with the folder
// that shows that it still is not: nothing was put into it since. Sessions ask for
// the same files before each action. Goroutines share them.
type absenceCache struct {
	mu   sync.Mutex
	of   map[string]absence
	list absentList
}

// An absentList is the list of files that was asked for last, with the few folders
// that show that they are absent. It is known again by where it lies.
type absentList struct {
	paths   []string
	folders []absence
	in      []int8 // index into folders, for each path; -1 where nothing shows it
	again   []int  // paths that were looked for since
}

type absence struct {
	folder string // the deepest that was there, by its name in the path
	as     folderStamp
}

// A folderStamp is a folder at a moment. The time of its last change is set by the system
// alone, and no two folders share device and inode.
type folderStamp struct {
	device, inode uint64
	changed       int64 // ns since 1970
}

// The bounds of what is kept: files, and folders of a list.
const (
	maxAbsences = 1 << 14
	maxListed   = 64
)

// settled reports whether a stamp of some age is trusted: what was put into a folder in the same
// tick of the clock of its file system does not show. Linux takes a tick of at most
// 10 ms; a file system that keeps whole seconds or two shows so by the time itself.
func (s folderStamp) settled(age time.Duration) bool {
	tick := 2 * time.Second
	if s.changed%int64(time.Millisecond) != 0 {
		tick = 100 * time.Millisecond
	}
	return age >= tick
}

// folderStamps are those of folders, as they are looked at for one action.
type folderStamps map[string]seenFolder

type seenFolder struct {
	folderStamp
	is    bool // it is a folder
	trust bool // it is settled
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

// possiblyPresent returns those of a list of files that may be there. Sessions ask for the
// same list, action after action, until it has grown.
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

// foldersProvingAbsence returns the folders that show that the files of a list are absent.
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
		list.in, list.folders = slices.Clone(list.in), slices.Clip(list.folders) // others may read them
		for _, i := range list.again {
			list.find(i, a.of)
		}
	}
	list.again = nil
	a.list = list
	return list
}

// find notes what shows that a file of the list is absent.
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

// noteAbsence keeps that a file is not there, if no link leads to where it would be.
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
