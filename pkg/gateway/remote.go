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

// NewEndpointForHTTPServer returns an endpoint for an HTTP server at a URL. token, if not "", is shield's bearer
// token for the server. Redirects are not followed, and proxy variables are ignored.
func NewEndpointForHTTPServer(opts Options, url, token string) *MCPServerEndpoint {
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 64,
			MaxResponseHeaderBytes: 64 << 10, DisableCompression: true, ForceAttemptHTTP2: true,
		},
	}
	return newEndpoint(opts, &remoteServer{url: url, token: token, client: client})
}

func newEndpoint(opts Options, b serverBackend) *MCPServerEndpoint {
	return &MCPServerEndpoint{opts: New(opts).opts, sharedState: newSharedServerState(), backend: b, sessions: map[string]*session{}}
}

type remoteServer struct {
	url    string
	token  string
	client *http.Client
}

func (r *remoteServer) maxSessions() int    { return maxSessionsPerHTTPServer }
func (r *remoteServer) endSession(*session) {}
func (r *remoteServer) close()              { r.client.CloseIdleConnections() }

// headersForwardedToServer are the client's HTTP headers that are forwarded to the server. Headers that describe the
// message are derived from the message.
var headersForwardedToServer = []string{"Accept", "Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-Id"}

// A clientToRemoteServerRelay sends the messages of one client exchange to an HTTP server.
type clientToRemoteServerRelay struct {
	remote                         *remoteServer
	exchange                       *httpExchange
	ctx                            context.Context
	gateway                        *Gateway
	route                          *clientServerRoute
	isInExistingSession            bool
	clientRequestID                []byte // ID of the client's request; nil if the client sent no request
	pendingSends                   sync.WaitGroup
	httpStatusForNonRequestMessage atomic.Int32 // HTTP status for a message that is not a request
}

func (r *remoteServer) newRelay(ctx context.Context, x *httpExchange, s *session, beginsSession bool) *clientToRemoteServerRelay {
	way := &clientToRemoteServerRelay{remote: r, exchange: x, ctx: ctx}
	way.httpStatusForNonRequestMessage.Store(http.StatusAccepted)
	if s != nil {
		way.gateway, way.isInExistingSession = s.gateway, true
	} else {
		way.gateway = x.endpoint.gatewayFor(x.clientName, beginsSession)
	}
	way.route = &clientServerRoute{client: x.stream, server: way, stream: x.stream}
	return way
}

func (r *remoteServer) handlePost(x *httpExchange, s *session, m *message) {
	ctx, over := x.contextOutlivingExchange()
	defer over()
	way := r.newRelay(ctx, x, s, m.method == "initialize")
	if m.isRequest() {
		way.clientRequestID = m.id
	}
	way.gateway.handleClientMessage(ctx, way.route, m)
	if !m.isRequest() {
		way.pendingSends.Wait()
		x.writer.WriteHeader(int(way.httpStatusForNonRequestMessage.Load()))
		return
	}
	x.waitForResponseOrDisconnect()
}

// sendOrQueueFrame sends a message to the server in a new goroutine, which handles the response as it arrives,
// and answers the client with an error if sending fails. It reports false only if the message is invalid.
func (w *clientToRemoteServerRelay) sendOrQueueFrame(raw []byte, _ bool) bool {
	m, err := parseMessage(raw)
	if err != nil {
		return false
	}
	w.pendingSends.Add(1)
	go func() {
		defer w.pendingSends.Done()
		if err := w.send(m); err != nil {
			w.answerClientWithError(m, err)
		}
	}()
	return true
}

// newRequest returns an HTTP request to the server.
func (r *remoteServer) newRequest(ctx context.Context, method string, from http.Header, m *message) (*http.Request, error) {
	var body io.Reader
	if m != nil {
		body = bytes.NewReader(m.raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url, body)
	if err != nil {
		return nil, err
	}
	for _, name := range headersForwardedToServer {
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
	if name := mcpNameHeaderValue(m); from.Get("Mcp-Name") != "" && name != "" {
		req.Header.Set("Mcp-Name", encodeBase64HeaderValue(name))
	}
	return req, nil
}

// send sends a message and handles the response.
func (w *clientToRemoteServerRelay) send(m *message) error {
	req, err := w.remote.newRequest(w.ctx, http.MethodPost, w.exchange.req.Header, m)
	if err != nil {
		return err
	}
	if m.method == "tools/call" {
		if err := w.addArgumentHeaders(req, m); err != nil {
			return err
		}
	}
	resp, err := w.remote.client.Do(req)
	if err != nil {
		return errUnreachable
	}
	defer resp.Body.Close()
	if !m.isRequest() {
		w.httpStatusForNonRequestMessage.Store(int32(resp.StatusCode))
		return nil
	}
	asked := bytes.Equal(m.id, w.clientRequestID)
	if asked && m.method == "initialize" {
		if err := w.storeSessionFromResponseHeader(resp.Header); err != nil {
			return err
		}
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case media == "text/event-stream" && resp.StatusCode == http.StatusOK:
		if asked {
			w.exchange.stream.beginEvents()
		}
		resumable, err := w.relayEvents(resp.Body, asked)
		if resumable && asked && w.gateway.isRequestResumable(m.id) {
			w.exchange.stream.writeResponse(nil)
			return nil
		}
		return errors.Join(err, errIncompleteResponse)
	case media != "application/json":
		return statusError(resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxFrameBytes+1))
	if err != nil {
		return errIncompleteResponse
	}
	if len(raw) > maxFrameBytes {
		return errFrameTooLong
	}
	answer, err := parseBody(raw)
	if err != nil {
		return err
	}
	if asked && resp.StatusCode >= 400 {
		w.exchange.stream.setStatus(clientHTTPStatus(resp.StatusCode))
	}
	if answer.rpcError != nil && answer.id == nil { // an error without an id can only refer to this request
		if answer, err = parseMessage(canonjson.AppendValue(nil, object{"jsonrpc": "2.0", "id": canonjson.Canonical(m.id), "error": answer.rpcError})); err != nil {
			return err
		}
	}
	if !bytes.Equal(answer.id, m.id) || answer.method != "" {
		return errors.New("the server's answer is neither JSON nor an event stream; check its url in mcp.servers")
	}
	return w.gateway.handleServerMessage(w.route, answer)
}

// addArgumentHeaders adds the headers that repeat arguments of a call to the server request.
func (w *clientToRemoteServerRelay) addArgumentHeaders(req *http.Request, m *message) error {
	w.gateway.sharedState.mu.Lock()
	t := w.gateway.sharedState.tools[stringMember(m.params, "name")]
	w.gateway.sharedState.mu.Unlock()
	if t == nil {
		return nil
	}
	headers, err := verifiedArgumentHeaders(w.exchange.req.Header, t, objectMember(m.params, "arguments"))
	if err != nil {
		return headerArgumentMismatchError{err}
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	return nil
}

// A headerArgumentMismatchError says that an HTTP header of the client does not match the arguments of the tool
// call.
type headerArgumentMismatchError struct{ error }

// Reasons why a server has not responded.
var (
	errUnreachable        = errors.New("the server cannot be reached; check its url in mcp.servers")
	errIncompleteResponse = errors.New("the server closed the connection before its answer was complete; try again")
)

// A statusError is the HTTP status of a server response that contains no message.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the server answers with HTTP status %d; check its url and token_file in mcp.servers", int(e))
}

// clientHTTPStatus returns the status for the client, given the server's. Authentication errors between
// shield and the server become 502.
func clientHTTPStatus(serverStatus int) int {
	switch serverStatus {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return http.StatusBadGateway
	}
	return serverStatus
}

// answerClientWithError sends an error as the response to a message that the server has not answered.
func (w *clientToRemoteServerRelay) answerClientWithError(m *message, err error) {
	status, code := http.StatusBadGateway, codeInternalError
	var s statusError
	if errors.As(err, &s) && s >= 400 {
		status = clientHTTPStatus(int(s))
	}
	if errors.As(err, new(headerArgumentMismatchError)) {
		status, code = http.StatusBadRequest, codeHeaderMismatch
	}
	if !m.isRequest() {
		w.httpStatusForNonRequestMessage.Store(int32(status))
		return
	}
	c := w.gateway.removePendingCall(m.id)
	if c == nil { // already answered or cancelled
		w.route.endHTTPExchangeWithoutResponse()
		return
	}
	defer w.gateway.finishCallWithoutResponse(c)
	if c.serverResponseToGateway != nil {
		c.serverResponseToGateway <- nil
		return
	}
	w.route.setStatus(status)
	c.route.sendResponseToClient(errorResponse(c.id, code, "shield: "+err.Error()))
}

// isRequestResumable reports whether a request still waits for its response, which can arrive on another exchange.
// List requests are excepted, since the client repeats them.
func (g *Gateway) isRequestResumable(requestID []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.clientCalls[string(requestID)]
	return c != nil && c.listing == nil
}

// storeSessionFromResponseHeader stores the session that a server has started in its response, if any.
func (w *clientToRemoteServerRelay) storeSessionFromResponseHeader(responseHeader http.Header) error {
	id := responseHeader.Get("Mcp-Session-Id")
	switch {
	case id == "":
		return nil
	case !isValidSessionOrEventID(id) || len(responseHeader.Values("Mcp-Session-Id")) > 1:
		return errors.New("the server sent an invalid Mcp-Session-Id; check its url in mcp.servers")
	case !w.exchange.endpoint.tryStoreSession(&session{id: id, client: w.exchange.clientName, gateway: w.gateway}):
		return errors.New("too many sessions are open, or the server reused a session ID; end a session with DELETE")
	}
	w.exchange.stream.setHeader("Mcp-Session-Id", id)
	return nil
}

// relayEvents handles the events of a response while the client reads it; answersClientRequest says
// that the response is to a request of the client. resumable reports whether the client can request
// the rest.
func (w *clientToRemoteServerRelay) relayEvents(body io.Reader, answersClientRequest bool) (resumable bool, err error) {
	in := newEventReader(body, maxFrameBytes)
	for !w.route.stream.ended() {
		ev, err := in.next()
		if errors.Is(err, errFrameTooLong) {
			return resumable, err
		}
		if err != nil {
			return resumable, nil
		}
		if answersClientRequest {
			w.exchange.stream.forwardEventIDAndRetry(ev)
			resumable = resumable || ev.id != "" && w.isInExistingSession
		}
		if len(ev.data) == 0 {
			continue
		}
		m, err := parseBody(ev.data)
		if err != nil {
			if w.gateway.reportDroppedFrame("dropped a message of the server: %v; update the server", err) {
				return false, err
			}
			continue
		}
		if err := w.gateway.handleServerMessage(w.route, m); err != nil {
			return false, err
		}
	}
	return resumable, nil
}

func (r *remoteServer) handleGet(x *httpExchange, s *session) {
	ctx, over := x.contextOutlivingExchange()
	defer over()
	way := r.newRelay(ctx, x, s, false)
	req, err := r.newRequest(ctx, http.MethodGet, x.req.Header, nil)
	if err != nil {
		refuseHTTP(x.writer, http.StatusBadGateway, nil, codeInternalError, err.Error())
		return
	}
	resp, err := r.client.Do(req)
	if err != nil {
		refuseHTTP(x.writer, http.StatusBadGateway, nil, codeInternalError, errUnreachable.Error())
		return
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "text/event-stream" || resp.StatusCode != http.StatusOK {
		status := max(resp.StatusCode, http.StatusBadRequest)
		refuseHTTP(x.writer, clientHTTPStatus(status), nil, codeInternalError, statusError(resp.StatusCode).Error())
		return
	}
	x.stream.beginEvents()
	go func() {
		defer x.stream.writeResponse(nil)
		if _, err := way.relayEvents(resp.Body, true); err != nil {
			x.endpoint.dropSession(s)
		}
	}()
	x.waitForResponseOrDisconnect()
}

func (r *remoteServer) handleDelete(x *httpExchange, s *session) {
	req, err := r.newRequest(x.req.Context(), http.MethodDelete, x.req.Header, nil)
	if err == nil {
		var resp *http.Response
		if resp, err = r.client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode < 300 {
				x.endpoint.dropSession(s)
			}
			x.writer.WriteHeader(clientHTTPStatus(resp.StatusCode))
			return
		}
	}
	x.endpoint.dropSession(s)
	refuseHTTP(x.writer, http.StatusBadGateway, nil, codeInternalError, errUnreachable.Error())
}
