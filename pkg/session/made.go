package session

import (
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/sorted"
)

// maxRunTime is the longest time a command is assumed to run: a file changed later after the session's
// last write was changed by another program.
const maxRunTime = 10 * 60 // seconds

// madeFor is how long writes to a created file need no new entry.
const madeFor = 60 // seconds

// madeIndex returns the index in Made of a path or a parent folder, or -1.
func (r *Record) madeIndex(path string) int {
	return slices.IndexFunc(r.Made, func(m Made) bool { return m.Path == path || strings.HasPrefix(path, m.Path+"/") })
}

// isNewlyMade reports whether a write to a path needs an entry.
func (r *Record) isNewlyMade(path string, now int64) bool {
	i := r.madeIndex(path)
	return len(path) <= maxPath && (i < 0 || now-r.Made[i].Last >= madeFor)
}

// noteMade records that the session creates a path, or writes to one that it created.
func (r *Record) noteMade(path string, now int64) bool {
	if !r.isNewlyMade(path, now) {
		return false
	}
	m := Made{Path: path, From: now}
	if i := r.madeIndex(path); i >= 0 {
		m = r.Made[i]
		r.Made = slices.Delete(r.Made, i, i+1)
	} else if len(r.Made) == maxMade {
		r.Made = slices.Delete(r.Made, 0, 1)
	}
	m.Last = now
	r.Made = append(r.Made, m)
	return true
}

// Made reports whether the session created a file, or a folder with all its content, and no other
// program changed it since. A new session has made nothing.
func (s *Session) Made(path string) bool {
	made, asked := s.made[path]
	if !asked {
		if i := s.rec.madeIndex(path); i >= 0 && s.disk != nil {
			m := s.rec.Made[i]
			made = s.disk.Intact(path, time.Unix(m.From-2, 0), time.Unix(m.Last+maxRunTime, 0))
		}
		if s.made == nil {
			s.made = map[string]bool{}
		}
		s.made[path] = made
	}
	return made
}

// MadePaths returns the paths for which Made returned true, sorted.
func (s *Session) MadePaths() (out []string) {
	for path, made := range s.made {
		if made {
			out = append(out, path)
		}
	}
	sorted.Strings(out)
	return out
}
