package session

import (
	"sync"

	"github.com/shieldcli/shield/pkg/state"
)

// Bounds of what a process keeps of sessions that it has read.
const (
	maxCached = 64 // sessions
	freshFor  = 60 // seconds, after which what has expired is looked at again
)

// A loaded says which session was read.
type loaded struct {
	key           Key
	parent, alias string
}

// A cache has the sessions that were read since the shelf last changed. Goroutines
// share it.
type cache struct {
	mu       sync.Mutex
	stamp    state.Stamp
	sessions map[loaded]*Session
	carried  map[*byte][]Value // of sessions, by where their list of groups lies
}

// get returns a session of its own for who asks; nil if it has to be read.
func (c *cache) get(stamp state.Stamp, which loaded, now int64) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[which]
	if s == nil || c.stamp != stamp || now < s.now || now-s.now > freshFor {
		return nil
	}
	out := *s
	out.now = now
	return &out
}

func (c *cache) put(stamp state.Stamp, which loaded, s *Session) {
	if s.err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stamp != stamp || len(c.sessions) >= maxCached {
		c.stamp, c.sessions, c.carried = stamp, map[loaded]*Session{}, nil
	}
	keep := *s
	c.sessions[which] = &keep
}

// values returns the values of a session, if they were read since the shelf last
// changed.
func (c *cache) values(s *Session) ([]Value, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.stamp != c.stamp || len(s.from) == 0 {
		return nil, false
	}
	v, ok := c.carried[&s.from[0][0]]
	return v, ok
}

func (c *cache) putValues(s *Session, values []Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.stamp != c.stamp || s.stamp == (state.Stamp{}) || len(s.from) == 0 {
		return
	}
	if c.carried == nil {
		c.carried = map[*byte][]Value{}
	}
	c.carried[&s.from[0][0]] = values
}
