package shield

import "sync"

// maxInFlight is how many bytes of records, and of data made from them, a stream holds at once. It is
// far more than a usual batch needs, and small enough that large records and a slow reader do not cost
// much memory. A larger record is processed alone.
const maxInFlight = 8 << 20

// An inFlight counts the bytes between input and output. The input is read only while there is room.
type inFlight struct {
	mu   sync.Mutex
	room sync.Cond
	most int
	used int
	open bool // all waiting has ended
}

func newInFlight(most int) *inFlight {
	f := &inFlight{most: most}
	f.room.L = &f.mu
	return f
}

// take waits until there is room for n bytes, or nothing else is in flight.
func (f *inFlight) take(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.used > 0 && f.used+n > f.most && !f.open {
		f.room.Wait()
	}
	f.used += n
}

// change replaces a count of was bytes by n. It never waits: a record that was read must be finished,
// or no room becomes free.
func (f *inFlight) change(was, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used += n - was; n < was {
		f.room.Signal()
	}
}

// release wakes all waiting callers and stops limiting.
func (f *inFlight) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = true
	f.room.Broadcast()
}

// A gate separates records that were read before an interrupt from later ones.
type gate struct {
	mu      sync.Mutex
	reading bool // a read of the source is under way
	shut    bool
}

// enter reports whether another record may be read.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reading = !g.shut
	return g.reading
}

// leave reports whether the record just read counts.
func (g *gate) leave() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reading = false
	return !g.shut
}

// close closes the gate and reports whether a read of the source is under way: its record no longer
// counts, however long the read takes.
func (g *gate) close() (reading bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	return g.reading
}
