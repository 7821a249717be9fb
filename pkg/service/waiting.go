package service

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits on connections that no authenticated client uses: in the TLS handshake, in the request
// headers, without a token, or idle. Above the limit, such a connection is closed after
// unauthenticatedConnTimeout, so that it cannot block authenticated clients.
const (
	maxUnauthenticatedConns           = 384
	maxUnauthenticatedConnsPerAddress = 256
	unauthenticatedConnTimeout        = 2 * time.Second
)

// A connTracker tracks the connections that no authenticated client uses.
type connTracker struct {
	mu                                sync.Mutex
	conns                             map[net.Conn]*trackedConn
	unauthenticatedConnCount          int // connections without a running authenticated request
	unauthenticatedConnCountByAddress map[string]int
}

func newConnTracker() *connTracker {
	return &connTracker{conns: map[net.Conn]*trackedConn{}, unauthenticatedConnCountByAddress: map[string]int{}}
}

// A trackedConn is a connection, with its number of running authenticated requests.
type trackedConn struct {
	tracker            *connTracker
	conn               net.Conn
	address            string
	activeRequests     int
	removedFromTracker bool
}

type trackedConnKey struct{}

// trackConn starts to track a connection. It is an [http.Server.ConnContext].
func (r *connTracker) trackConn(ctx context.Context, c net.Conn) context.Context {
	address, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		address = c.RemoteAddr().String()
	}
	g := &trackedConn{tracker: r, conn: c, address: address}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c] = g
	g.addToUnauthenticatedConnCounts(1)
	g.scheduleCloseIfUnauthenticated()
	return context.WithValue(ctx, trackedConnKey{}, g)
}

// untrackConn stops tracking a closed connection. It is an [http.Server.ConnState].
func (r *connTracker) untrackConn(c net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.conns[c]; g != nil {
		g.untrack()
	}
}

// untrack removes a connection from the count. The caller holds the lock.
func (g *trackedConn) untrack() {
	delete(g.tracker.conns, g.conn)
	if !g.removedFromTracker && g.activeRequests == 0 {
		g.addToUnauthenticatedConnCounts(-1)
	}
	g.removedFromTracker = true
}

// trackRequest counts a request's connection as authenticated until the returned function is called.
func trackRequest(r *http.Request) (done func()) {
	g, ok := r.Context().Value(trackedConnKey{}).(*trackedConn)
	if !ok { // connection is not tracked: a test calls the handler directly
		return func() {}
	}
	g.addActiveRequests(1)
	return func() { g.addActiveRequests(-1) }
}

func (g *trackedConn) addActiveRequests(n int) {
	g.tracker.mu.Lock()
	defer g.tracker.mu.Unlock()
	was := g.activeRequests > 0
	if g.activeRequests += n; was != (g.activeRequests > 0) && !g.removedFromTracker {
		g.addToUnauthenticatedConnCounts(-n)
		if n < 0 {
			g.scheduleCloseIfUnauthenticated()
		}
	}
}

// addToUnauthenticatedConnCounts adds n to the number of connections without a running
// authenticated request: to the total, and to the number for the connection's address. The caller
// holds the lock.
func (g *trackedConn) addToUnauthenticatedConnCounts(n int) {
	g.tracker.unauthenticatedConnCount += n
	if g.tracker.unauthenticatedConnCountByAddress[g.address] += n; g.tracker.unauthenticatedConnCountByAddress[g.address] == 0 {
		delete(g.tracker.unauthenticatedConnCountByAddress, g.address)
	}
}

// untrackIfTooManyUnauthenticated stops tracking a connection that waits while the number of waiting connections is
// over a limit. It reports whether it stopped.
func (g *trackedConn) untrackIfTooManyUnauthenticated() bool {
	g.tracker.mu.Lock()
	defer g.tracker.mu.Unlock()
	if g.removedFromTracker || g.activeRequests > 0 || g.tracker.unauthenticatedConnCount <= maxUnauthenticatedConns && g.tracker.unauthenticatedConnCountByAddress[g.address] <= maxUnauthenticatedConnsPerAddress {
		return false
	}
	g.untrack()
	return true
}

// scheduleCloseIfUnauthenticated closes the connection after unauthenticatedConnTimeout if it then has no
// running authenticated request and the number of connections in this state is over a limit.
func (g *trackedConn) scheduleCloseIfUnauthenticated() {
	time.AfterFunc(unauthenticatedConnTimeout, func() {
		if g.untrackIfTooManyUnauthenticated() {
			_ = g.conn.Close() // an error needs no report: the client gets a connection error
		}
	})
}
