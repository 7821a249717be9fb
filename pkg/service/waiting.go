package service

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds of connections, of maxClients in all, that no client with a token uses: in the TLS handshake, in the
// headers of a request, without a token, or idle. Beyond them, such a connection is closed
// when it is impatience old. So they cannot take the place of clients.
const (
	maxWaiting           = 384
	maxWaitingPerAddress = 256
	impatience           = 2 * time.Second
)

// A waitingRoom knows the connections that wait.
type waitingRoom struct {
	mu        sync.Mutex
	guests    map[net.Conn]*guest
	all       int // of them that wait
	byAddress map[string]int
}

func newWaitingRoom() *waitingRoom {
	return &waitingRoom{guests: map[net.Conn]*guest{}, byAddress: map[string]int{}}
}

// A guest is a connection, with how many requests with a token it has under way.
type guest struct {
	room    *waitingRoom
	conn    net.Conn
	address string
	serves  int
	gone    bool
}

type guestKey struct{}

// enter begins to watch a connection. It is [http.Server.ConnContext].
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

// leave forgets a connection that has ended. It is [http.Server.ConnState].
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

// end takes a connection off the count. The room is locked.
func (g *guest) end() {
	delete(g.room.guests, g.conn)
	if !g.gone && g.serves == 0 {
		g.count(-1)
	}
	g.gone = true
}

// served counts the connection of a request as one of a client until the function that it
// returns is called.
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

// count counts a connection among those that wait, or no longer. The room is locked.
func (g *guest) count(n int) {
	g.room.all += n
	if g.room.byAddress[g.address] += n; g.room.byAddress[g.address] == 0 {
		delete(g.room.byAddress, g.address)
	}
}

// dismiss takes a connection off the count if it waits while too many do.
func (g *guest) dismiss() bool {
	g.room.mu.Lock()
	defer g.room.mu.Unlock()
	if g.gone || g.serves > 0 || g.room.all <= maxWaiting && g.room.byAddress[g.address] <= maxWaitingPerAddress {
		return false
	}
	g.end()
	return true
}

// watch closes a connection that waits for long while too many do.
func (g *guest) watch() {
	time.AfterFunc(impatience, func() {
		if g.dismiss() {
			_ = g.conn.Close() // its client takes that for an error
		}
	})
}
