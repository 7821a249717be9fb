package gateway

import "sync"

// Limits of what is examined while further messages are read.
const (
	maxAside = 16   // answers that are examined at a time
	maxHeld  = 1024 // notifications that wait for earlier answers
)

// An aside examines server responses concurrently while further messages are read. A notification that
// follows a response can refer to it, so it is forwarded after that response. Responses depend only on
// their requests.
type aside struct {
	most int // bytes of answers and notifications in memory

	mu      sync.Mutex
	changed sync.Cond
	started int          // number of responses so far
	running map[int]bool // key: number of the response
	held    []heldNotice
	passing bool // a goroutine is forwarding notifications
	bytes   int
	err     error
}

// A heldNotice is a notification that is forwarded once all responses up to number after are
// forwarded.
type heldNotice struct {
	after, size int
	pass        func() error
}

func newAside(most int) *aside {
	a := &aside{most: most, running: map[int]bool{}}
	a.changed.L = &a.mu
	return a
}

// answer examines a response of size bytes in a goroutine. It blocks while too many responses or bytes
// are being examined.
func (a *aside) answer(size int, examine func()) {
	a.mu.Lock()
	for len(a.running) > 0 && (len(a.running) >= maxAside || a.bytes+size > a.most) {
		a.changed.Wait()
	}
	a.started++
	n := a.started
	a.running[n] = true
	a.bytes += size
	a.mu.Unlock()
	go func() {
		examine()
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.running, n)
		a.bytes -= size
		a.release()
		a.changed.Broadcast()
	}()
}

// notice forwards a server notification in order: at once, or after the responses that came before it.
// It blocks while too many are held.
func (a *aside) notice(size int, pass func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.held) >= maxHeld || len(a.held) > 0 && a.bytes+size > a.most {
		a.changed.Wait()
	}
	a.held = append(a.held, heldNotice{a.started, size, pass})
	a.bytes += size
	a.release()
	err := a.err
	a.err = nil
	return err
}

// release forwards the notifications whose earlier responses are forwarded. If another goroutine is
// forwarding, that goroutine does it. The lock is held, except while a message is forwarded.
func (a *aside) release() {
	for !a.passing && len(a.held) > 0 {
		one := a.held[0]
		for n := range a.running {
			if n <= one.after {
				return
			}
		}
		a.held = a.held[1:]
		a.passing = true
		a.mu.Unlock()
		err := one.pass()
		a.mu.Lock()
		a.passing = false
		a.bytes -= one.size
		if a.err == nil {
			a.err = err
		}
		a.changed.Broadcast()
	}
}

// wait blocks until all responses and notifications are forwarded.
func (a *aside) wait() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.running) > 0 || len(a.held) > 0 || a.passing {
		a.changed.Wait()
	}
}
