package gateway

import (
	"context"
	"net/http"
	"time"
)

// An httpExchange is one HTTP request of a client and its response.
type httpExchange struct {
	endpoint   *MCPServerEndpoint
	clientName string
	req        *http.Request
	writer     http.ResponseWriter
	stream     *responseStream
}

// withExistingSession calls a function with the session of the exchange, nil if it has none. An unknown session is
// answered with 404.
func (x *httpExchange) withExistingSession(do func(*session)) {
	s, known := x.endpoint.findSession(x.req.Header, x.clientName)
	switch {
	case !known:
		refuseHTTP(x.writer, http.StatusNotFound, nil, codeInvalidRequest, "the session (Mcp-Session-Id) is unknown; send initialize again")
	case s == nil:
		do(nil)
	default:
		defer x.endpoint.endSessionExchange(s)
		do(s)
	}
}

func (x *httpExchange) handlePost(m *message) {
	x.withExistingSession(func(s *session) {
		if s != nil && m.method == "initialize" {
			refuseHTTP(x.writer, http.StatusBadRequest, m.id, codeInvalidRequest, "the session is already initialized; send initialize without Mcp-Session-Id")
			return
		}
		x.endpoint.backend.handlePost(x, s, m)
	})
}

func (x *httpExchange) handleGet() {
	x.withExistingSession(func(s *session) {
		if s == nil {
			x.writer.Header().Set("Allow", "POST")
			refuseHTTP(x.writer, http.StatusMethodNotAllowed, nil, codeInvalidRequest, "GET needs a session; send the header Mcp-Session-Id")
			return
		}
		x.endpoint.backend.handleGet(x, s)
	})
}

func (x *httpExchange) handleDelete() {
	x.withExistingSession(func(s *session) {
		if s == nil {
			refuseHTTP(x.writer, http.StatusBadRequest, nil, codeInvalidRequest, "DELETE needs a session; send the header Mcp-Session-Id")
			return
		}
		x.endpoint.backend.handleDelete(x, s)
	})
}

// waitForResponseOrDisconnect blocks until the response to the client is complete or the client has
// disconnected. After waitForResponseOrDisconnect returns, nothing more is written to the client.
func (x *httpExchange) waitForResponseOrDisconnect() {
	select {
	case <-x.stream.responseEnded:
	case <-x.req.Context().Done():
		x.stream.mu.Lock()
		x.stream.close()
		x.stream.mu.Unlock()
	}
}

// contextOutlivingExchange returns a context that ends when the client disconnects, or some time after the exchange
// ends.
func (x *httpExchange) contextOutlivingExchange() (ctx context.Context, exchangeEnded func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.req.Context()))
	stop := context.AfterFunc(x.req.Context(), cancel)
	return ctx, func() {
		if stop() {
			time.AfterFunc(answeredExchangeCloseGrace, cancel)
		}
	}
}
