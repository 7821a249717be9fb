package session

import (
	"slices"
	"sync"
)

// Bounds of the counts that are not written yet.
const (
	maxTallied    = 256 // actions that sent something
	tallyInterval = 10  // seconds since the first action counted
)

// A tally counts data sent to known hosts until the counts are written. Goroutines share it.
type tally struct {
	mu    sync.Mutex
	sent  map[Key][]Sent
	count int
	since int64
}

// add counts what an action sends and reports whether the counts should be written.
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

// take removes and returns the counts of a session, for writing.
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

// takeAll removes and returns the counts of all sessions.
func (t *tally) takeAll() map[Key][]Sent {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.sent
	t.sent, t.count = nil, 0
	return all
}
