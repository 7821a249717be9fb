package session

import (
	"sync"

	"github.com/shieldcli/shield/pkg/state"
)

// Bounds of the sessions that a process caches.
const (
	maxCachedSessions           = 64 // sessions
	sessionExpiryRecheckSeconds = 60 // seconds after which expiry is checked again
)

// A cacheKey identifies a session that was read.
type cacheKey struct {
	sessionKey                           Key
	parentSessionID, agentNamedSessionID string
}

// A sessionCache holds the sessions that were read since any process last changed the stored
// sessions. Goroutines share it.
type sessionCache struct {
	mu       sync.Mutex
	stamp    state.NamespaceRevisionID
	sessions map[cacheKey]*Session
}

// get returns a copy of a cached session; nil if it must be read.
func (c *sessionCache) get(stamp state.NamespaceRevisionID, which cacheKey, now int64) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[which]
	if s == nil || c.stamp != stamp || now < s.loadedAt || now-s.loadedAt > sessionExpiryRecheckSeconds {
		return nil
	}
	out := *s
	out.loadedAt = now
	return &out
}

func (c *sessionCache) put(stamp state.NamespaceRevisionID, which cacheKey, s *Session) {
	if s.err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stamp != stamp || len(c.sessions) >= maxCachedSessions {
		c.stamp, c.sessions = stamp, map[cacheKey]*Session{}
	}
	keep := *s
	c.sessions[which] = &keep
}
