package session

import (
	"sync"

	"github.com/shieldcli/shield/pkg/state"
)

// Bounds of the sessions that a process caches.
const (
	maxCached    = 64 // sessions
	recheckAfter = 60 // seconds after which expiry is checked again
)

// A cacheKey identifies a session that was read.
type cacheKey struct {
	key           Key
	parent, alias string
}

// A cache holds the sessions read since the shelf last changed. Goroutines share it.
type cache struct {
	mu       sync.Mutex
	stamp    state.Stamp
	sessions map[cacheKey]*Session
}

// get returns a copy of a cached session; nil if it must be read.
func (c *cache) get(stamp state.Stamp, which cacheKey, now int64) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[which]
	if s == nil || c.stamp != stamp || now < s.now || now-s.now > recheckAfter {
		return nil
	}
	out := *s
	out.now = now
	return &out
}

func (c *cache) put(stamp state.Stamp, which cacheKey, s *Session) {
	if s.err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stamp != stamp || len(c.sessions) >= maxCached {
		c.stamp, c.sessions = stamp, map[cacheKey]*Session{}
	}
	keep := *s
	c.sessions[which] = &keep
}
