package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
)

// Limits on the processes of one server.
const (
	maxLocal = 64 // sessions, each with its own process
	maxPool  = 8  // processes for requests without a session, each for one request at a time
)

// NewLocal returns an endpoint for a server on standard input and output. start starts a process: one
// for each session, and up to maxPool that are reused for requests without a session.
func NewLocal(opts Options, start func() (*Process, error)) *Endpoint {
	return newEndpoint(opts, &locals{start: start, room: make(chan struct{}, maxPool)})
}

type locals struct {
	start func() (*Process, error)
	room  chan struct{} // limits the processes that serve requests without a session

	mu   sync.Mutex
	idle []*local
	shut bool
}

// A local is a server process with its gateway.
type local struct {
	g       *Gateway
	client  string // the only client that uses the process
	process *Process
	in      *outbox
	dead    chan struct{} // closed when the process sends no more messages

	mu      sync.Mutex
	streams []*stream // streams of open exchanges, in order of arrival
	listens *stream   // receives messages that belong to no request; nil if no client listens
}

// run starts a process for the client of an exchange.
func (l *locals) run(x *exchange, connected bool) (*local, error) {
	p, err := l.start()
	if err != nil {
		return nil, err
	}
	g := x.end.gateway(x.client, connected)
	one := &local{g: g, client: x.client, process: p, in: newOutbox(p.In, g.maxQueue), dead: make(chan struct{})}
	go func() {
		defer close(one.dead)
		err := g.fromServer(&route{client: one, server: one.in}, newFrames(p.Out, g.maxFrame))
		g.answerAll()
		one.in.close()
		_ = p.End(!errors.Is(err, io.EOF)) // kill it at once unless it ended by itself
	}()
	return one, nil
}

// stop ends the process.
func (p *local) stop() {
	p.in.close()
	<-p.dead
}

// ended reports whether the process sends no more messages.
func (p *local) ended() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// put sends a message that belongs to no request to the listening client, or else to the stream of the
// latest open request.
func (p *local) put(raw []byte, wait bool) bool {
	p.mu.Lock()
	to := p.listens
	if to == nil && len(p.streams) > 0 {
		to = p.streams[len(p.streams)-1]
	}
	p.mu.Unlock()
	return to != nil && to.put(raw, wait)
}

func (p *local) begin(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams = append(p.streams, s)
}

func (p *local) over(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams = slices.DeleteFunc(p.streams, func(other *stream) bool { return other == s })
	if p.listens == s {
		p.listens = nil
	}
}

// handle forwards one client message to the process.
func (p *local) handle(x *exchange, m *message) {
	ctx, cancel := context.WithCancel(x.req.Context())
	defer cancel()
	r := &route{client: x.stream, server: p.in, stream: x.stream}
	if !m.isRequest() {
		p.g.clientMessage(ctx, r, m)
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	p.begin(x.stream)
	defer p.over(x.stream)
	p.g.clientMessage(ctx, r, m)
	x.wait()
}

func (l *locals) most() int { return maxLocal }

func (l *locals) end(s *session) { s.local.stop() }

func (l *locals) post(x *exchange, s *session, m *message) {
	if s != nil {
		s.local.handle(x, m)
		return
	}
	if m.method == "initialize" {
		one, err := l.run(x, true)
		if err != nil {
			refuseHTTP(x.w, http.StatusBadGateway, m.id, codeRefused, err.Error())
			return
		}
		s = &session{id: newID(), client: x.client, g: one.g, local: one, open: 1}
		if !x.end.keep(s) {
			one.stop()
			refuseHTTP(x.w, http.StatusServiceUnavailable, m.id, codeRefused, "too many sessions are open; end one with DELETE, or try again later")
			return
		}
		defer x.end.rest(s)
		go func() {
			<-one.dead
			x.end.forget(s)
		}()
		x.w.Header().Set("Mcp-Session-Id", s.id)
		one.handle(x, m)
		return
	}
	if !m.isRequest() {
		x.w.WriteHeader(http.StatusAccepted) // without a session, no request waits for a notification or response
		return
	}
	one, err := l.take(x)
	if err != nil {
		refuseHTTP(x.w, http.StatusServiceUnavailable, m.id, codeRefused, err.Error())
		return
	}
	one.handle(x, m)
	l.give(one)
}

// take returns a process that no exchange uses and that served only this client; it starts one if
// needed.
func (l *locals) take(x *exchange) (*local, error) {
	select {
	case l.room <- struct{}{}:
	case <-x.req.Context().Done():
		return nil, x.req.Context().Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		<-l.room
		return nil, errors.New("shield is ending; try again")
	}
	l.idle = slices.DeleteFunc(l.idle, (*local).ended)
	for i, one := range l.idle {
		if one.client == x.client {
			l.idle = slices.Delete(l.idle, i, i+1)
			return one, nil
		}
	}
	if len(l.idle) >= maxPool { // the idle processes belong to other clients
		go l.idle[0].stop()
		l.idle = slices.Delete(l.idle, 0, 1)
	}
	one, err := l.run(x, false)
	if err != nil {
		<-l.room
	}
	return one, err
}

// give returns a process to the pool, and ends it if requests are still open.
func (l *locals) give(one *local) {
	defer func() { <-l.room }()
	one.g.mu.Lock()
	busy := len(one.g.calls) > 0 || len(one.g.asked) > 0
	one.g.mu.Unlock()
	l.mu.Lock()
	keep := !busy && !l.shut
	if keep {
		l.idle = append(l.idle, one)
	}
	l.mu.Unlock()
	if !keep {
		one.stop()
	}
}

func (l *locals) close() {
	l.mu.Lock()
	idle := l.idle
	l.idle, l.shut = nil, true
	l.mu.Unlock()
	for _, one := range idle {
		one.stop()
	}
}

func (l *locals) listen(x *exchange, s *session) {
	p := s.local
	p.mu.Lock()
	taken := p.listens != nil
	if !taken {
		p.listens = x.stream
	}
	p.mu.Unlock()
	if taken {
		refuseHTTP(x.w, http.StatusConflict, nil, codeInvalid, "a client already listens to this session; close its GET request first")
		return
	}
	defer p.over(x.stream)
	x.stream.begin()
	select {
	case <-p.dead:
		x.stream.finish(nil)
	case <-x.req.Context().Done():
	case <-x.stream.done:
	}
	x.wait()
}

func (l *locals) hangUp(x *exchange, s *session) {
	x.end.forget(s)
	x.w.WriteHeader(http.StatusNoContent)
}
