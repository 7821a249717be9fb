package gateway

import (
	"context"
	"net/http"
	"time"
)

// An exchange is one request of a client over HTTP.
type exchange struct {
	end    *Endpoint
	client string
	req    *http.Request
	w      http.ResponseWriter
	stream *stream
}

// in calls a function with the session of the exchange, nil if it has none. An unknown session is
// answered with 404.
func (x *exchange) in(do func(*session)) {
	s, known := x.end.session(x.req.Header, x.client)
	switch {
	case !known:
		refuseHTTP(x.w, http.StatusNotFound, nil, codeInvalid, "the session (Mcp-Session-Id) is unknown; send initialize again")
	case s == nil:
		do(nil)
	default:
		defer x.end.rest(s)
		do(s)
	}
}

func (x *exchange) post(m *message) {
	x.in(func(s *session) {
		if s != nil && m.method == "initialize" {
			refuseHTTP(x.w, http.StatusBadRequest, m.id, codeInvalid, "the session is already initialized; send initialize without Mcp-Session-Id")
			return
		}
		x.end.behind.post(x, s, m)
	})
}

func (x *exchange) listen() {
	x.in(func(s *session) {
		if s == nil {
			x.w.Header().Set("Allow", "POST")
			refuseHTTP(x.w, http.StatusMethodNotAllowed, nil, codeInvalid, "GET needs a session; send the header Mcp-Session-Id")
			return
		}
		x.end.behind.listen(x, s)
	})
}

func (x *exchange) hangUp() {
	x.in(func(s *session) {
		if s == nil {
			refuseHTTP(x.w, http.StatusBadRequest, nil, codeInvalid, "DELETE needs a session; send the header Mcp-Session-Id")
			return
		}
		x.end.behind.hangUp(x, s)
	})
}

// wait blocks until the exchange has its response or the client has disconnected. Nothing is written
// after it.
func (x *exchange) wait() {
	select {
	case <-x.stream.done:
	case <-x.req.Context().Done():
		x.stream.mu.Lock()
		x.stream.close()
		x.stream.mu.Unlock()
	}
}

// lasting returns a context that ends when the client disconnects, or some time after the exchange
// ends.
func (x *exchange) lasting() (ctx context.Context, over func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.req.Context()))
	stop := context.AfterFunc(x.req.Context(), cancel)
	return ctx, func() {
		if stop() {
			time.AfterFunc(endTime, cancel)
		}
	}
}
