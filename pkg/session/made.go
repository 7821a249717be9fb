package session

import (
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/sorted"
)

// maxCommandRunSeconds is the longest time that a command is assumed to run. If a file changed more
// than this time after the session's last write to it, another program changed it.
const maxCommandRunSeconds = 10 * 60 // seconds

// minSecondsBetweenRecordedWrites is the time after a recorded write to a created file during which further
// writes to it are not recorded.
const minSecondsBetweenRecordedWrites = 60 // seconds

// createdIndex returns the index in Record.CreatedPaths of a path or of a folder that contains it,
// or -1.
func (r *Record) createdIndex(path string) int {
	return slices.IndexFunc(r.CreatedPaths, func(m CreatedPath) bool { return m.Path == path || strings.HasPrefix(path, m.Path+"/") })
}

// needsCreatedPathEntry reports whether a write to a path has to be recorded in Record.CreatedPaths,
// because the path is not listed or its last recorded write is minSecondsBetweenRecordedWrites ago.
func (r *Record) needsCreatedPathEntry(path string, now int64) bool {
	i := r.createdIndex(path)
	return len(path) <= maxPathBytes && (i < 0 || now-r.CreatedPaths[i].LastWrittenAt >= minSecondsBetweenRecordedWrites)
}

// recordCreated records that the session creates a path, or writes to one that it created.
func (r *Record) recordCreated(path string, now int64) bool {
	if !r.needsCreatedPathEntry(path, now) {
		return false
	}
	m := CreatedPath{Path: path, CreatedAt: now}
	if i := r.createdIndex(path); i >= 0 {
		m = r.CreatedPaths[i]
		r.CreatedPaths = slices.Delete(r.CreatedPaths, i, i+1)
	} else if len(r.CreatedPaths) == maxCreatedPaths {
		r.CreatedPaths = slices.Delete(r.CreatedPaths, 0, 1)
	}
	m.LastWrittenAt = now
	r.CreatedPaths = append(r.CreatedPaths, m)
	return true
}

// HasCreated reports whether the session created a file, or a folder with all its content, and no
// other program has changed it since. A new session has created nothing.
func (s *Session) HasCreated(path string) bool {
	made, asked := s.hasCreatedByPath[path]
	if !asked {
		if i := s.record.createdIndex(path); i >= 0 && s.fileChecker != nil {
			m := s.record.CreatedPaths[i]
			made = s.fileChecker.AllFilesChangedBetween(path, time.Unix(m.CreatedAt-2, 0), time.Unix(m.LastWrittenAt+maxCommandRunSeconds, 0))
		}
		if s.hasCreatedByPath == nil {
			s.hasCreatedByPath = map[string]bool{}
		}
		s.hasCreatedByPath[path] = made
	}
	return made
}

// CreatedPaths returns the paths for which HasCreated returned true, sorted.
func (s *Session) CreatedPaths() (out []string) {
	for path, made := range s.hasCreatedByPath {
		if made {
			out = append(out, path)
		}
	}
	sorted.SortStrings(out)
	return out
}
