package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shieldcli/shield/internal/canonjson"
)

// NewRemote returns an endpoint for an HTTP server at a URL. token, if not "", is shield's bearer
// token for the server. Redirects are not followed, and proxy variables are ignored.
func NewRemote(opts Options, url, token string) *Endpoint {
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 64,
			MaxResponseHeaderBytes: 64 << 10, DisableCompression: true, ForceAttemptHTTP2: true,
		},
	}
	return newEndpoint(opts, &remote{url: url, token: token, client: client})
}

func newEndpoint(opts Options, b behind) *Endpoint {
	return &Endpoint{opts: New(opts).opts, catalog: newCatalog(), behind: b, sessions: map[string]*session{}}
}

type remote struct {
	url    string
	token  string
	client *http.Client
}

func (r *remote) most() int    { return maxSessions }
func (r *remote) end(*session) {}
func (r *remote) close()       { r.client.CloseIdleConnections() }

// passed are the client's HTTP headers that are forwarded to the server. Headers that describe the
// message are derived from the message.
var passed = []string{"Accept", "Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-Id"}

// A remoteWay sends the messages of one client exchange to an HTTP server.
type remoteWay struct {
	at      *remote
	x       *exchange
	ctx     context.Context
	g       *Gateway
	route   *route
	session bool
	asks    []byte // ID of the client's request; nil if the exchange has none
	pending sync.WaitGroup
	status  atomic.Int32 // HTTP status for a message that is not a request
}

func (r *remote) way(ctx context.Context, x *exchange, s *session, begins bool) *remoteWay {
	way := &remoteWay{at: r, x: x, ctx: ctx}
	way.status.Store(http.StatusAccepted)
	if s != nil {
		way.g, way.session = s.g, true
	} else {
		way.g = x.end.gateway(x.client, begins)
	}
	way.route = &route{client: x.stream, server: way, stream: x.stream}
	return way
}

func (r *remote) post(x *exchange, s *session, m *message) {
	ctx, over := x.lasting()
	defer over()
	way := r.way(ctx, x, s, m.method == "initialize")
	if m.isRequest() {
		way.asks = m.id
	}
	way.g.clientMessage(ctx, way.route, m)
	if !m.isRequest() {
		way.pending.Wait()
		x.w.WriteHeader(int(way.status.Load()))
		return
	}
	x.wait()
}

// put sends a message to the server, and handles its response as it arrives.
func (w *remoteWay) put(raw []byte, _ bool) bool {
	m, err := read(raw)
	if err != nil {
		return false
	}
	w.pending.Add(1)
	go func() {
		defer w.pending.Done()
		if err := w.send(m); err != nil {
			w.fail(m, err)
		}
	}()
	return true
}

// request returns an HTTP request to the server.
func (r *remote) request(ctx context.Context, method string, from http.Header, m *message) (*http.Request, error) {
	var body io.Reader
	if m != nil {
		body = bytes.NewReader(m.raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url, body)
	if err != nil {
		return nil, err
	}
	for _, name := range passed {
		if v := from.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if m == nil {
		return req, nil
	}
	req.Header.Set("Content-Type", "application/json")
	if from.Get("Mcp-Method") != "" && m.method != "" {
		req.Header.Set("Mcp-Method", m.method)
	}
	if name := aboutOf(m); from.Get("Mcp-Name") != "" && name != "" {
		req.Header.Set("Mcp-Name", encoded(name))
	}
	return req, nil
}

// send sends a message and handles the response.
func (w *remoteWay) send(m *message) error {
	req, err := w.at.request(w.ctx, http.MethodPost, w.x.req.Header, m)
	if err != nil {
		return err
	}
	if m.method == "tools/call" {
		if err := w.repeat(req, m); err != nil {
			return err
		}
	}
	resp, err := w.at.client.Do(req)
	if err != nil {
		return errUnreachable
	}
	defer resp.Body.Close()
	if !m.isRequest() {
		w.status.Store(int32(resp.StatusCode))
		return nil
	}
	asked := bytes.Equal(m.id, w.asks)
	if asked && m.method == "initialize" {
		if err := w.opened(resp.Header); err != nil {
			return err
		}
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case media == "text/event-stream" && resp.StatusCode == http.StatusOK:
		if asked {
			w.x.stream.begin()
		}
		resumable, err := w.events(resp.Body, asked)
		if resumable && asked && w.g.broken(m.id) {
			w.x.stream.finish(nil)
			return nil
		}
		return errors.Join(err, errBroken)
	case media != "application/json":
		return statusError(resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxFrame+1))
	if err != nil {
		return errBroken
	}
	if len(raw) > maxFrame {
		return errFrame
	}
	answer, err := readBody(raw)
	if err != nil {
		return err
	}
	if asked && resp.StatusCode >= 400 {
		w.x.stream.answerWith(gatewayStatus(resp.StatusCode))
	}
	if answer.fault != nil && answer.id == nil { // an error without an id can only refer to this request
		if answer, err = read(canonjson.AppendValue(nil, object{"jsonrpc": "2.0", "id": canonjson.Canonical(m.id), "error": answer.fault})); err != nil {
			return err
		}
	}
	if !bytes.Equal(answer.id, m.id) || answer.method != "" {
		return errors.New("the server's answer is neither JSON nor an event stream; check its url in mcp.servers")
	}
	return w.g.serverMessage(w.route, answer)
}

// repeat adds the headers that repeat arguments of a call to the server request.
func (w *remoteWay) repeat(req *http.Request, m *message) error {
	w.g.catalog.mu.Lock()
	t := w.g.catalog.listed[text(m.params, "name")]
	w.g.catalog.mu.Unlock()
	if t == nil {
		return nil
	}
	headers, err := argumentHeaders(w.x.req.Header, t, inner(m.params, "arguments"))
	if err != nil {
		return mismatchError{err}
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	return nil
}

// A mismatchError says that a header contradicts the message.
type mismatchError struct{ error }

// Reasons why a server has not responded.
var (
	errUnreachable = errors.New("the server cannot be reached; check its url in mcp.servers")
	errBroken      = errors.New("the server closed the connection before its answer was complete; try again")
)

// A statusError is the HTTP status of a server response that contains no message.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the server answers with HTTP status %d; check its url and token_file in mcp.servers", int(e))
}

// gatewayStatus returns the status for the client, given the server's. Authentication errors between
// shield and the server become 502.
func gatewayStatus(status int) int {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return http.StatusBadGateway
	}
	return status
}

// fail answers a message that the server did not answer with an error.
func (w *remoteWay) fail(m *message, err error) {
	status, code := http.StatusBadGateway, codeRefused
	var s statusError
	if errors.As(err, &s) && s >= 400 {
		status = gatewayStatus(int(s))
	}
	if errors.As(err, new(mismatchError)) {
		status, code = http.StatusBadRequest, codeMismatch
	}
	if !m.isRequest() {
		w.status.Store(int32(status))
		return
	}
	c := w.g.take(m.id)
	if c == nil { // already answered or cancelled
		w.route.over()
		return
	}
	defer w.g.over(c)
	if c.own != nil {
		c.own <- nil
		return
	}
	w.route.status(status)
	c.route.answer(failure(c.id, code, "shield: "+err.Error()))
}

// broken reports whether a request still waits for its response, which can arrive on another exchange.
// List requests are excepted, since the client repeats them.
func (g *Gateway) broken(id []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.calls[string(id)]
	return c != nil && c.listing == nil
}

// opened stores the session that a server has started in its response, if any.
func (w *remoteWay) opened(h http.Header) error {
	id := h.Get("Mcp-Session-Id")
	switch {
	case id == "":
		return nil
	case !fits(id) || len(h.Values("Mcp-Session-Id")) > 1:
		return errors.New("the server sent an invalid Mcp-Session-Id; check its url in mcp.servers")
	case !w.x.end.keep(&session{id: id, client: w.x.client, g: w.g}):
		return errors.New("too many sessions are open, or the server reused a session ID; end a session with DELETE")
	}
	w.x.stream.header("Mcp-Session-Id", id)
	return nil
}

// events handles the events of a response while the client reads it; asked says that the response is
// to a request of the client. resumable reports whether the client can request the rest.
func (w *remoteWay) events(body io.Reader, asked bool) (resumable bool, err error) {
	in := newEvents(body, maxFrame)
	for !w.route.stream.ended() {
		ev, err := in.next()
		if errors.Is(err, errFrame) {
			return resumable, err
		}
		if err != nil {
			return resumable, nil
		}
		if asked {
			w.x.stream.mark(ev)
			resumable = resumable || ev.id != "" && w.session
		}
		if len(ev.data) == 0 {
			continue
		}
		m, err := readBody(ev.data)
		if err != nil {
			if w.g.odd("dropped a message of the server: %v; update the server", err) {
				return false, err
			}
			continue
		}
		if err := w.g.serverMessage(w.route, m); err != nil {
			return false, err
		}
	}
	return resumable, nil
}

func (r *remote) listen(x *exchange, s *session) {
	ctx, over := x.lasting()
	defer over()
	way := r.way(ctx, x, s, false)
	req, err := r.request(ctx, http.MethodGet, x.req.Header, nil)
	if err != nil {
		refuseHTTP(x.w, http.StatusBadGateway, nil, codeRefused, err.Error())
		return
	}
	resp, err := r.client.Do(req)
	if err != nil {
		refuseHTTP(x.w, http.StatusBadGateway, nil, codeRefused, errUnreachable.Error())
		return
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "text/event-stream" || resp.StatusCode != http.StatusOK {
		status := max(resp.StatusCode, http.StatusBadRequest)
		refuseHTTP(x.w, gatewayStatus(status), nil, codeRefused, statusError(resp.StatusCode).Error())
		return
	}
	x.stream.begin()
	go func() {
		defer x.stream.finish(nil)
		if _, err := way.events(resp.Body, true); err != nil {
			x.end.forget(s)
		}
	}()
	x.wait()
}

func (r *remote) hangUp(x *exchange, s *session) {
	req, err := r.request(x.req.Context(), http.MethodDelete, x.req.Header, nil)
	if err == nil {
		var resp *http.Response
		if resp, err = r.client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode < 300 {
				x.end.forget(s)
			}
			x.w.WriteHeader(gatewayStatus(resp.StatusCode))
			return
		}
	}
	x.end.forget(s)
	refuseHTTP(x.w, http.StatusBadGateway, nil, codeRefused, errUnreachable.Error())
}
