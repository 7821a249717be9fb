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
	maxLocalServerSessions = 64 // sessions, each with its own process
	maxPooledProcesses     = 8  // processes for requests without a session, busy and idle, each for one request at a time
)

// NewEndpointForStdioServer returns an endpoint for a server on standard input and output. start starts a process: one
// for each session, and up to maxPooledProcesses that are reused for requests without a session.
func NewEndpointForStdioServer(opts Options, start func() (*ServerProcess, error)) *MCPServerEndpoint {
	return newEndpoint(opts, &localServer{start: start, processSlots: make(chan struct{}, maxPooledProcesses)})
}

type localServer struct {
	start        func() (*ServerProcess, error)
	processSlots chan struct{} // limits the processes that serve requests without a session

	mu     sync.Mutex
	idle   []*localProcess
	busy   int // processes that serve a request without a session
	closed bool
}

// A localProcess is a server process with its gateway.
type localProcess struct {
	gateway     *Gateway
	clientName  string // the only client that uses the process
	process     *ServerProcess
	stdinQueue  *frameWriteQueue
	outputEnded chan struct{} // closed when the process sends no more messages

	mu                       sync.Mutex
	openExchangeStreams      []*responseStream // streams of open exchanges, in order of arrival
	unsolicitedMessageStream *responseStream   // receives messages that belong to no request; nil if no client listens
}

// startProcessFor starts a process for the client of an exchange.
func (l *localServer) startProcessFor(x *httpExchange, hasSession bool) (*localProcess, error) {
	p, err := l.start()
	if err != nil {
		return nil, err
	}
	g := x.endpoint.gatewayFor(x.clientName, hasSession)
	one := &localProcess{gateway: g, clientName: x.clientName, process: p, stdinQueue: newFrameWriteQueue(p.ToPeer, g.queuedByteLimit), outputEnded: make(chan struct{})}
	go func() {
		defer close(one.outputEnded)
		err := g.handleServerFrames(&clientServerRoute{client: one, server: one.stdinQueue}, newFrameReader(p.FromPeer, g.frameByteLimit))
		g.failPendingCalls()
		one.stdinQueue.close()
		_ = p.End(!errors.Is(err, io.EOF)) // kill it at once unless it ended by itself
	}()
	return one, nil
}

// stop ends the process.
func (p *localProcess) stop() {
	p.stdinQueue.close()
	<-p.outputEnded
}

// ended reports whether the process sends no more messages.
func (p *localProcess) ended() bool {
	select {
	case <-p.outputEnded:
		return true
	default:
		return false
	}
}

// sendOrQueueFrame sends a message that belongs to no request to the listening client, or else to the stream of the
// latest open request.
func (p *localProcess) sendOrQueueFrame(frameForClient []byte, waitIfQueueFull bool) bool {
	p.mu.Lock()
	to := p.unsolicitedMessageStream
	if to == nil && len(p.openExchangeStreams) > 0 {
		to = p.openExchangeStreams[len(p.openExchangeStreams)-1]
	}
	p.mu.Unlock()
	return to != nil && to.sendOrQueueFrame(frameForClient, waitIfQueueFull)
}

func (p *localProcess) addStream(s *responseStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openExchangeStreams = append(p.openExchangeStreams, s)
}

func (p *localProcess) removeStream(s *responseStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openExchangeStreams = slices.DeleteFunc(p.openExchangeStreams, func(other *responseStream) bool { return other == s })
	if p.unsolicitedMessageStream == s {
		p.unsolicitedMessageStream = nil
	}
}

// forwardClientMessage forwards one client message to the process.
func (p *localProcess) forwardClientMessage(x *httpExchange, m *message) {
	ctx, cancel := context.WithCancel(x.req.Context())
	defer cancel()
	r := &clientServerRoute{client: x.stream, server: p.stdinQueue, stream: x.stream}
	if !m.isRequest() {
		p.gateway.handleClientMessage(ctx, r, m)
		x.writer.WriteHeader(http.StatusAccepted)
		return
	}
	p.addStream(x.stream)
	defer p.removeStream(x.stream)
	p.gateway.handleClientMessage(ctx, r, m)
	x.waitForResponseOrDisconnect()
}

func (l *localServer) maxSessions() int { return maxLocalServerSessions }

func (l *localServer) endSession(s *session) { s.process.stop() }

func (l *localServer) handlePost(x *httpExchange, s *session, m *message) {
	if s != nil {
		s.process.forwardClientMessage(x, m)
		return
	}
	if m.method == "initialize" {
		one, err := l.startProcessFor(x, true)
		if err != nil {
			refuseHTTP(x.writer, http.StatusBadGateway, m.id, codeInternalError, err.Error())
			return
		}
		s = &session{id: newSessionID(), client: x.clientName, gateway: one.gateway, process: one, openExchanges: 1}
		if !x.endpoint.tryStoreSession(s) {
			one.stop()
			refuseHTTP(x.writer, http.StatusServiceUnavailable, m.id, codeInternalError, "too many sessions are open; end one with DELETE, or try again later")
			return
		}
		defer x.endpoint.endSessionExchange(s)
		go func() {
			<-one.outputEnded
			x.endpoint.dropSession(s)
		}()
		x.writer.Header().Set("Mcp-Session-Id", s.id)
		one.forwardClientMessage(x, m)
		return
	}
	if !m.isRequest() {
		x.writer.WriteHeader(http.StatusAccepted) // without a session, no request waits for a notification or response
		return
	}
	one, err := l.reuseOrStartProcess(x)
	if err != nil {
		refuseHTTP(x.writer, http.StatusServiceUnavailable, m.id, codeInternalError, err.Error())
		return
	}
	one.forwardClientMessage(x, m)
	l.returnProcessToPool(one)
}

// reuseOrStartProcess returns a process that no exchange uses and that served only this client; it starts one if
// needed.
func (l *localServer) reuseOrStartProcess(x *httpExchange) (*localProcess, error) {
	select {
	case l.processSlots <- struct{}{}:
	case <-x.req.Context().Done():
		return nil, x.req.Context().Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		<-l.processSlots
		return nil, errors.New("shield is ending; try again")
	}
	l.idle = slices.DeleteFunc(l.idle, (*localProcess).ended)
	for i, one := range l.idle {
		if one.clientName == x.clientName {
			l.idle = slices.Delete(l.idle, i, i+1)
			l.busy++
			return one, nil
		}
	}
	if len(l.idle)+l.busy >= maxPooledProcesses { // less than that are busy, and the idle processes belong to other clients
		go l.idle[0].stop()
		l.idle = slices.Delete(l.idle, 0, 1)
	}
	one, err := l.startProcessFor(x, false)
	if err != nil {
		<-l.processSlots
		return nil, err
	}
	l.busy++
	return one, nil
}

// returnProcessToPool returns a process to the pool, and ends it if requests are still open.
func (l *localServer) returnProcessToPool(one *localProcess) {
	defer func() { <-l.processSlots }()
	one.gateway.mu.Lock()
	busy := len(one.gateway.clientCalls) > 0 || len(one.gateway.openRequestIDsFromServer) > 0
	one.gateway.mu.Unlock()
	l.mu.Lock()
	l.busy--
	keep := !busy && !l.closed
	if keep {
		l.idle = append(l.idle, one)
	}
	l.mu.Unlock()
	if !keep {
		one.stop()
	}
}

func (l *localServer) close() {
	l.mu.Lock()
	idle := l.idle
	l.idle, l.closed = nil, true
	l.mu.Unlock()
	for _, one := range idle {
		one.stop()
	}
}

func (l *localServer) handleGet(x *httpExchange, s *session) {
	p := s.process
	p.mu.Lock()
	taken := p.unsolicitedMessageStream != nil
	if !taken {
		p.unsolicitedMessageStream = x.stream
	}
	p.mu.Unlock()
	if taken {
		refuseHTTP(x.writer, http.StatusConflict, nil, codeInvalidRequest, "a client already listens to this session; close its GET request first")
		return
	}
	defer p.removeStream(x.stream)
	x.stream.beginEvents()
	select {
	case <-p.outputEnded:
		x.stream.writeResponse(nil)
	case <-x.req.Context().Done():
	case <-x.stream.responseEnded:
	}
	x.waitForResponseOrDisconnect()
}

func (l *localServer) handleDelete(x *httpExchange, s *session) {
	x.endpoint.dropSession(s)
	x.writer.WriteHeader(http.StatusNoContent)
}
