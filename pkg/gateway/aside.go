package gateway

import "sync"

// Limits of what is examined while further messages are read.
const (
	maxExaminedResponses = 16   // answers that are examined at a time
	maxHeldNotices       = 1024 // notifications that wait for earlier answers
)

// An asyncExaminer examines server responses concurrently while further messages are read. A notification that
// follows a response can refer to it, so it is forwarded after that response. Responses depend only on
// their requests.
type asyncExaminer struct {
	maxBytes int // bytes of answers and notifications in memory

	mu                  sync.Mutex
	pendingWorkChanged  sync.Cond
	responseCount       int          // number of responses so far
	runningResponses    map[int]bool // key: number of the response
	heldNotices         []heldNotice
	isForwardingNotices bool // a goroutine is forwarding notifications
	pendingBytes        int
	err                 error
}

// A heldNotice is a notification that is forwarded only after all responses with numbers up to
// afterResponseNumber.
type heldNotice struct {
	afterResponseNumber, size int
	forward                   func() error
}

func newAsyncExaminer(most int) *asyncExaminer {
	a := &asyncExaminer{maxBytes: most, runningResponses: map[int]bool{}}
	a.pendingWorkChanged.L = &a.mu
	return a
}

// examineResponse examines a response of size bytes in a goroutine. It blocks while too many responses or bytes
// are being examined.
func (a *asyncExaminer) examineResponse(size int, examine func()) {
	a.mu.Lock()
	for len(a.runningResponses) > 0 && (len(a.runningResponses) >= maxExaminedResponses || a.pendingBytes+size > a.maxBytes) {
		a.pendingWorkChanged.Wait()
	}
	a.responseCount++
	n := a.responseCount
	a.runningResponses[n] = true
	a.pendingBytes += size
	a.mu.Unlock()
	go func() {
		examine()
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.runningResponses, n)
		a.pendingBytes -= size
		a.forwardReadyNotices()
		a.pendingWorkChanged.Broadcast()
	}()
}

// forwardNotice forwards a server notification in order: at once, or after the responses that came before it.
// It blocks while too many are held.
func (a *asyncExaminer) forwardNotice(size int, pass func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.heldNotices) >= maxHeldNotices || len(a.heldNotices) > 0 && a.pendingBytes+size > a.maxBytes {
		a.pendingWorkChanged.Wait()
	}
	a.heldNotices = append(a.heldNotices, heldNotice{a.responseCount, size, pass})
	a.pendingBytes += size
	a.forwardReadyNotices()
	err := a.err
	a.err = nil
	return err
}

// forwardReadyNotices forwards the notifications whose earlier responses are forwarded. If another goroutine is
// forwarding, that goroutine does it. The lock is held, except while a message is forwarded.
func (a *asyncExaminer) forwardReadyNotices() {
	for !a.isForwardingNotices && len(a.heldNotices) > 0 {
		one := a.heldNotices[0]
		for n := range a.runningResponses {
			if n <= one.afterResponseNumber {
				return
			}
		}
		a.heldNotices = a.heldNotices[1:]
		a.isForwardingNotices = true
		a.mu.Unlock()
		err := one.forward()
		a.mu.Lock()
		a.isForwardingNotices = false
		a.pendingBytes -= one.size
		if a.err == nil {
			a.err = err
		}
		a.pendingWorkChanged.Broadcast()
	}
}

// waitForAll blocks until all responses and notifications are forwarded.
func (a *asyncExaminer) waitForAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.runningResponses) > 0 || len(a.heldNotices) > 0 || a.isForwardingNotices {
		a.pendingWorkChanged.Wait()
	}
}
