package session

import (
	"slices"
	"sync"
)

// Bounds of what is counted and not written yet.
const (
	maxTallied    = 256 // actions that sent something
	tallyInterval = 10  // seconds since the first of them
)

// A tally has what went to places that sessions know, until it is written.
// Goroutines share it.
type tally struct {
	mu    sync.Mutex
	sent  map[Key][]Sent
	count int
	since int64
}

// add counts what an action sends and reports whether it is time to write.
func (t *tally) add(k Key, sent []Sent, now int64) (due bool) {
	if len(sent) == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 {
		t.sent, t.since = map[Key][]Sent{}, now
	}
	t.count++
	list := t.sent[k]
	for _, more := range sent {
		if i := slices.IndexFunc(list, func(have Sent) bool { return have.To == more.To }); i >= 0 {
			list[i].Times += more.Times
			list[i].Bytes += more.Bytes
		} else {
			list = append(list, more)
		}
	}
	t.sent[k] = list
	return t.count >= maxTallied || now-t.since >= tallyInterval
}

// take returns what was counted for a session, which is then to be written.
func (t *tally) take(k Key) []Sent {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent := t.sent[k]
	delete(t.sent, k)
	if len(t.sent) == 0 {
		t.count = 0
	}
	return sent
}

// takeAll returns what was counted for all sessions.
func (t *tally) takeAll() map[Key][]Sent {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.sent
	t.sent, t.count = nil, 0
	return all
}
