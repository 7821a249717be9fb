package service

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits on connections that no authenticated client uses: in the TLS handshake, in the request
// headers, without a token, or idle. Above the limit, such a connection is closed after impatience, so
// that it cannot block authenticated clients.
const (
	maxWaiting           = 384
	maxWaitingPerAddress = 256
	impatience           = 2 * time.Second
)

// A waitingRoom tracks the connections that no authenticated client uses.
type waitingRoom struct {
	mu        sync.Mutex
	guests    map[net.Conn]*guest
	all       int // number of waiting connections
	byAddress map[string]int
}

func newWaitingRoom() *waitingRoom {
	return &waitingRoom{guests: map[net.Conn]*guest{}, byAddress: map[string]int{}}
}

// A guest is a connection, with its number of running authenticated requests.
type guest struct {
	room    *waitingRoom
	conn    net.Conn
	address string
	serves  int
	gone    bool
}

type guestKey struct{}

// enter starts to track a connection. It is an [http.Server.ConnContext].
func (r *waitingRoom) enter(ctx context.Context, c net.Conn) context.Context {
	address, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		address = c.RemoteAddr().String()
	}
	g := &guest{room: r, conn: c, address: address}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guests[c] = g
	g.count(1)
	g.watch()
	return context.WithValue(ctx, guestKey{}, g)
}

// leave stops tracking a closed connection. It is an [http.Server.ConnState].
func (r *waitingRoom) leave(c net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.guests[c]; g != nil {
		g.end()
	}
}

// end removes a connection from the count. The caller holds the lock.
func (g *guest) end() {
	delete(g.room.guests, g.conn)
	if !g.gone && g.serves == 0 {
		g.count(-1)
	}
	g.gone = true
}

// served counts a request's connection as authenticated until the returned function is called.
func served(r *http.Request) (done func()) {
	g, ok := r.Context().Value(guestKey{}).(*guest)
	if !ok { // in a test of the handler
		return func() {}
	}
	g.serve(1)
	return func() { g.serve(-1) }
}

func (g *guest) serve(n int) {
	g.room.mu.Lock()
	defer g.room.mu.Unlock()
	was := g.serves > 0
	if g.serves += n; was != (g.serves > 0) && !g.gone {
		g.count(-n)
		if n < 0 {
			g.watch()
		}
	}
}

// count adds n to the number of waiting connections, in all and of the same address. The caller holds
// the lock.
func (g *guest) count(n int) {
	g.room.all += n
	if g.room.byAddress[g.address] += n; g.room.byAddress[g.address] == 0 {
		delete(g.room.byAddress, g.address)
	}
}

// dismiss removes a connection from the count if it waits while too many do, and reports whether it
// did.
func (g *guest) dismiss() bool {
	g.room.mu.Lock()
	defer g.room.mu.Unlock()
	if g.gone || g.serves > 0 || g.room.all <= maxWaiting && g.room.byAddress[g.address] <= maxWaitingPerAddress {
		return false
	}
	g.end()
	return true
}

// watch closes a connection that has waited too long while too many wait.
func (g *guest) watch() {
	time.AfterFunc(impatience, func() {
		if g.dismiss() {
			_ = g.conn.Close() // the client reports a connection error
		}
	})
}
