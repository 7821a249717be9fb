package gateway

import "sync"

// Limits of what is examined while further messages are read.
const (
	maxConcurrentResponseExaminations = 16   // answers that are examined at a time
	maxHeldServerNotifications        = 1024 // notifications that wait for earlier answers
)

// An asyncResponseExaminer examines server responses concurrently while further messages are read.
// A notification can refer to an earlier response, so the notification is forwarded after that
// response. The responses themselves are independent of each other.
type asyncResponseExaminer struct {
	maxPendingMessageBytes int // bytes of answers and notifications in memory

	mu                              sync.Mutex
	pendingWorkChanged              sync.Cond
	totalResponseCount              int          // number of responses so far
	runningResponses                map[int]bool // key: number of the response
	heldServerNotifications         []heldServerNotification
	isForwardingServerNotifications bool // a goroutine is forwarding notifications
	pendingMessageBytes             int
	forwardError                    error
}

// A heldServerNotification is a notification that is forwarded only after all responses with numbers up to
// afterResponseNumber.
type heldServerNotification struct {
	afterResponseNumber, size int
	forward                   func() error
}

func newAsyncResponseExaminer(maxPendingMessageBytes int) *asyncResponseExaminer {
	a := &asyncResponseExaminer{maxPendingMessageBytes: maxPendingMessageBytes, runningResponses: map[int]bool{}}
	a.pendingWorkChanged.L = &a.mu
	return a
}

// examineResponse examines a response of size bytes in a goroutine. It blocks while too many responses or bytes
// are being examined.
func (a *asyncResponseExaminer) examineResponse(size int, examine func()) {
	a.mu.Lock()
	for len(a.runningResponses) > 0 && (len(a.runningResponses) >= maxConcurrentResponseExaminations || a.pendingMessageBytes+size > a.maxPendingMessageBytes) {
		a.pendingWorkChanged.Wait()
	}
	a.totalResponseCount++
	n := a.totalResponseCount
	a.runningResponses[n] = true
	a.pendingMessageBytes += size
	a.mu.Unlock()
	go func() {
		examine()
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.runningResponses, n)
		a.pendingMessageBytes -= size
		a.forwardNotificationsAfterEarlierResponses()
		a.pendingWorkChanged.Broadcast()
	}()
}

// forwardOrHoldServerNotification forwards a server notification in order: at once, or after the responses that came before it.
// It blocks while too many are held.
func (a *asyncResponseExaminer) forwardOrHoldServerNotification(size int, pass func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.heldServerNotifications) >= maxHeldServerNotifications || len(a.heldServerNotifications) > 0 && a.pendingMessageBytes+size > a.maxPendingMessageBytes {
		a.pendingWorkChanged.Wait()
	}
	a.heldServerNotifications = append(a.heldServerNotifications, heldServerNotification{a.totalResponseCount, size, pass})
	a.pendingMessageBytes += size
	a.forwardNotificationsAfterEarlierResponses()
	err := a.forwardError
	a.forwardError = nil
	return err
}

// forwardNotificationsAfterEarlierResponses forwards each held notification once all responses that
// came before the notification are forwarded. If another goroutine is already forwarding, that
// goroutine forwards them instead. The caller holds the lock a.mu, which is released while a
// message is forwarded.
func (a *asyncResponseExaminer) forwardNotificationsAfterEarlierResponses() {
	for !a.isForwardingServerNotifications && len(a.heldServerNotifications) > 0 {
		one := a.heldServerNotifications[0]
		for n := range a.runningResponses {
			if n <= one.afterResponseNumber {
				return
			}
		}
		a.heldServerNotifications = a.heldServerNotifications[1:]
		a.isForwardingServerNotifications = true
		a.mu.Unlock()
		err := one.forward()
		a.mu.Lock()
		a.isForwardingServerNotifications = false
		a.pendingMessageBytes -= one.size
		if a.forwardError == nil {
			a.forwardError = err
		}
		a.pendingWorkChanged.Broadcast()
	}
}

// waitUntilAllForwarded blocks until all responses and notifications are forwarded.
func (a *asyncResponseExaminer) waitUntilAllForwarded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.runningResponses) > 0 || len(a.heldServerNotifications) > 0 || a.isForwardingServerNotifications {
		a.pendingWorkChanged.Wait()
	}
}
