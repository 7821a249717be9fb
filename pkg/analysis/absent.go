package analysis

import (
	"path"
	"sync"
	"time"
)

// absences are files that were looked for and were not there, each with the folder
// that shows that it still is not: nothing was put into it since. Sessions ask for
// the same files before each action. Goroutines share them.
type absences struct {
	mu sync.Mutex
	of map[string]absence
}

type absence struct {
	folder string // the deepest that was there, by its name in the path
	as     stamp
}

// A stamp is a folder at a moment. The time of its last change is set by the system
// alone, and no two folders share device and inode.
type stamp struct {
	device, inode uint64
	changed       int64 // ns since 1970
}

const maxAbsences = 1 << 14

// settled reports whether a stamp of some age is trusted: what was put into a folder in the same
// tick of the clock of its file system does not show. Linux takes a tick of at most
// 10 ms; a file system that keeps whole seconds or two shows so by the time itself.
func (s stamp) settled(age time.Duration) bool {
	tick := 2 * time.Second
	if s.changed%int64(time.Millisecond) != 0 {
		tick = 100 * time.Millisecond
	}
	return age >= tick
}

// stamps are those of folders, as they are looked at for one action.
type stamps map[string]seenFolder

type seenFolder struct {
	stamp
	is    bool // it is a folder
	trust bool // it is settled
}

func (s stamps) of(folder string) seenFolder {
	f, ok := s[folder]
	if !ok {
		f.stamp, f.is = stampOf(folder)
		f.trust = f.is && f.stamp.settled(time.Since(time.Unix(0, f.changed)))
		s[folder] = f
	}
	return f
}

// still reports whether a file is still not there.
func (a *absences) still(name string, seen stamps) bool {
	a.mu.Lock()
	was, ok := a.of[name]
	a.mu.Unlock()
	return ok && seen.of(was.folder).stamp == was.as
}

// note keeps that a file is not there, if no link leads to where it would be.
func (a *absences) note(name string, seen stamps) {
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
	a.of[name] = absence{folder, f.stamp}
}
