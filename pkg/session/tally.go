package session

import (
	"slices"
	"sync"
)

// Bounds of the counts of sent data that are still in memory.
const (
	maxTalliedActions         = 256 // actions that sent something
	sentDataTallyFlushSeconds = 10  // this many seconds after the first counted action, the next counted action writes the counts
)

// A sentDataTally counts data sent to known hosts until the counts are written. Goroutines share it.
type sentDataTally struct {
	mu             sync.Mutex
	sent           map[Key][]SentData
	actionCount    int
	firstCountedAt int64
}

// add counts what an action sends and reports whether the counts should be written.
func (t *sentDataTally) add(k Key, sent []SentData, now int64) (due bool) {
	if len(sent) == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.actionCount == 0 {
		t.sent, t.firstCountedAt = map[Key][]SentData{}, now
	}
	t.actionCount++
	list := t.sent[k]
	for _, more := range sent {
		if i := slices.IndexFunc(list, func(have SentData) bool { return have.Recipient == more.Recipient }); i >= 0 {
			list[i].SendCount += more.SendCount
			list[i].Bytes += more.Bytes
		} else {
			list = append(list, more)
		}
	}
	t.sent[k] = list
	return t.actionCount >= maxTalliedActions || now-t.firstCountedAt >= sentDataTallyFlushSeconds
}

// removeCounts removes and returns the counts of a session, for writing.
func (t *sentDataTally) removeCounts(k Key) []SentData {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent := t.sent[k]
	delete(t.sent, k)
	if len(t.sent) == 0 {
		t.actionCount = 0
	}
	return sent
}

// removeAllCounts removes and returns the counts of all sessions.
func (t *sentDataTally) removeAllCounts() map[Key][]SentData {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.sent
	t.sent, t.actionCount = nil, 0
	return all
}
