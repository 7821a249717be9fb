package shield

import "sync"

// maxInFlightRecordBytes is how many bytes of records, and of data made from them, a stream holds at once. It is
// far more than a usual batch needs, and small enough that large records and a slow reader do not cost
// much memory. A larger record is processed alone.
const maxInFlightRecordBytes = 8 << 20

// A byteLimiter counts the bytes between input and output. The input is read only while there is room.
type byteLimiter struct {
	mu        sync.Mutex
	roomFreed sync.Cond
	maxBytes  int
	usedBytes int
	unlimited bool // reserveBytes no longer waits for room, see stopLimiting
}

func newByteLimiter(most int) *byteLimiter {
	f := &byteLimiter{maxBytes: most}
	f.roomFreed.L = &f.mu
	return f
}

// reserveBytes waits until there is room for n bytes, or nothing else is in flight.
func (f *byteLimiter) reserveBytes(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.usedBytes > 0 && f.usedBytes+n > f.maxBytes && !f.unlimited {
		f.roomFreed.Wait()
	}
	f.usedBytes += n
}

// adjustBytes changes the size of a counted record from was to n bytes. It never waits: a record
// that was read must be finished, or no room becomes free.
func (f *byteLimiter) adjustBytes(was, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.usedBytes += n - was; n < was {
		f.roomFreed.Signal()
	}
}

// stopLimiting wakes all waiting callers and stops limiting.
func (f *byteLimiter) stopLimiting() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unlimited = true
	f.roomFreed.Broadcast()
}

// A recordReadGate separates records that were read before an interrupt from later ones.
type recordReadGate struct {
	mu           sync.Mutex
	readUnderWay bool // a call of [InputRecordSource.Next] has not returned yet
	stopped      bool
}

// tryBeginRead reports whether another record may be read.
func (g *recordReadGate) tryBeginRead() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readUnderWay = !g.stopped
	return g.readUnderWay
}

// tryEndRead ends a read that tryBeginRead allowed. It returns false if stopReads was called
// meanwhile; the record that was read is then dropped.
func (g *recordReadGate) tryEndRead() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readUnderWay = false
	return !g.stopped
}

// stopReads ends the reading of records and reports whether a read of the source is under way. The
// record of that read is dropped, however long the read takes.
func (g *recordReadGate) stopReads() (reading bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	return g.readUnderWay
}
