package shield

import "sync"

// maxInFlight is how many bytes of records, and of what was made of them, a
// stream holds at once: far more than a batch of usual actions has, and so
// little that large records and a reader that stalls cost no more memory than
// any others. A record that is larger than that goes through alone.
const maxInFlight = 8 << 20

// An inFlight counts the bytes that wait between the input and the output. The
// input is read on only while there is room.
type inFlight struct {
	mu   sync.Mutex
	room sync.Cond
	most int
	used int
	open bool // no one has to wait any more
}

func newInFlight(most int) *inFlight {
	f := &inFlight{most: most}
	f.room.L = &f.mu
	return f
}

// take waits until n bytes have room, or nothing else is under way.
func (f *inFlight) take(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.used > 0 && f.used+n > f.most && !f.open {
		f.room.Wait()
	}
	f.used += n
}

// change counts n bytes where there were was. It never waits: what was read has
// to be finished, or nothing gives room again.
func (f *inFlight) change(was, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used += n - was; n < was {
		f.room.Signal()
	}
}

// release ends all waiting.
func (f *inFlight) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = true
	f.room.Broadcast()
}

// A gate tells records that were read before an interrupt from those that were
// not.
type gate struct {
	mu      sync.Mutex
	reading bool // the source is being asked for a record
	shut    bool
}

// enter says whether another record may be read.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reading = !g.shut
	return g.reading
}

// leave says whether the record that was read counts.
func (g *gate) leave() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reading = false
	return !g.shut
}

// close shuts the gate and says whether the source is being read: then nothing
// more comes, however long that takes.
func (g *gate) close() (reading bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	return g.reading
}
