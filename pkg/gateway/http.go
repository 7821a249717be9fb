package gateway

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/bearer"
	"github.com/shieldcli/shield/internal/canonjson"
)

// Limits of a [HTTPFrontEnd] and of each of its servers.
const (
	maxRequestBodyBytes           = 4 << 20   // bytes of a message, as in the protocol's reference implementations
	maxInProgressRequestBodyBytes = 128 << 20 // bytes of all messages in progress
	maxConcurrentHTTPExchanges    = 512       // concurrent exchanges
	maxSessionsPerHTTPServer      = 1024      // maximum number of sessions of one HTTP server
	bodyReadTimeout               = 30 * time.Second
	answeredExchangeCloseGrace    = time.Second // time for a server to close an answered exchange
)

// codeHeaderMismatch is the error code for HTTP headers that contradict the message.
const codeHeaderMismatch = -32020

// An HTTPFrontEnd serves the clients of several MCP servers over the streamable HTTP transport. A
// server's address is /NAME. The client's credentials are not forwarded to the server.
type HTTPFrontEnd struct {
	Servers       map[string]*MCPServerEndpoint
	IsAllowedHost func(host string) bool // reports whether clients may use a host name or address (without port) for this machine
	Tokens        bearer.Tokens          // bearer tokens, of which clients must send one; nil requires none
	Clock         func() time.Time

	mu                sync.Mutex
	reservedBodyBytes int
	openExchanges     int
}

// IsLoopbackHost reports whether a host is localhost or a loopback address. Other names are refused to
// prevent DNS rebinding.
func IsLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// ServeHTTP answers one request.
func (f *HTTPFrontEnd) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	host := hostOf(req.Host)
	client, authorized := f.clientName(req)
	origin := req.Header.Values("Origin")
	switch {
	case !f.IsAllowedHost(host):
		refuseHTTP(w, http.StatusForbidden, nil, codeInvalidRequest, "the Host header names another server; use an address that shield mcp serve prints")
		return
	case len(origin) > 1 || len(origin) == 1 && !f.isOwnOrigin(origin[0]):
		refuseHTTP(w, http.StatusForbidden, nil, codeInvalidRequest, "the Origin header names another site; web pages of other origins cannot call this server, so use an MCP client")
		return
	case !authorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuseHTTP(w, http.StatusUnauthorized, nil, codeInvalidRequest, "the token is missing or wrong; send the header Authorization: Bearer TOKEN")
		return
	}
	e := f.Servers[strings.Trim(req.URL.Path, "/")]
	if e == nil || req.URL.RawQuery != "" {
		refuseHTTP(w, http.StatusNotFound, nil, codeInvalidRequest, "no server has this address; use http://ADDRESS/NAME with a NAME of mcp.servers")
		return
	}
	for name, values := range req.Header {
		if len(values) > 1 && (strings.HasPrefix(name, "Mcp-") || name == "Last-Event-Id" || name == "Content-Type") {
			refuseHTTP(w, http.StatusBadRequest, nil, codeHeaderMismatch, "the header "+canonjson.Quote(name)+" occurs twice; send it once")
			return
		}
	}
	if !f.tryReserveCapacity(0) {
		refuseHTTP(w, http.StatusServiceUnavailable, nil, codeInternalError, "too many requests are in progress; try again later")
		return
	}
	defer f.releaseCapacity(0)
	x := &httpExchange{endpoint: e, clientName: client, req: req, stream: newResponseStream(w, f.Clock), writer: w}
	switch req.Method {
	case http.MethodPost:
		f.post(x)
	case http.MethodGet:
		x.handleGet()
	case http.MethodDelete:
		x.handleDelete()
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		refuseHTTP(w, http.StatusMethodNotAllowed, nil, codeInvalidRequest, "the HTTP method is not supported; use POST, GET or DELETE")
	}
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// isOwnOrigin reports whether a web page of an origin may call this server: its host must be a name of
// this machine.
func (f *HTTPFrontEnd) isOwnOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && f.IsAllowedHost(u.Hostname())
}

// clientName returns the name of the client that sent a request: the name of its token or, if tokens have
// no names or are not required, its address.
func (f *HTTPFrontEnd) clientName(req *http.Request) (name string, authorized bool) {
	if f.Tokens != nil {
		if name, authorized = f.Tokens.ClientName(req.Header); name != "" || !authorized {
			return name, authorized
		}
	}
	return hostOf(req.RemoteAddr), true
}

// tryReserveCapacity reserves one exchange if bytesOrZeroForExchange is 0, and otherwise
// that many bytes for the body of a request. It returns false if that would exceed [maxConcurrentHTTPExchanges]
// or [maxInProgressRequestBodyBytes].
func (f *HTTPFrontEnd) tryReserveCapacity(bytesOrZeroForExchange int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytesOrZeroForExchange > 0 {
		if f.reservedBodyBytes+bytesOrZeroForExchange > maxInProgressRequestBodyBytes {
			return false
		}
		f.reservedBodyBytes += bytesOrZeroForExchange
		return true
	}
	if f.openExchanges >= maxConcurrentHTTPExchanges {
		return false
	}
	f.openExchanges++
	return true
}

func (f *HTTPFrontEnd) releaseCapacity(bytesOrZeroForExchange int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytesOrZeroForExchange > 0 {
		f.reservedBodyBytes -= bytesOrZeroForExchange
		return
	}
	f.openExchanges--
}

// post handles a client's POST request.
func (f *HTTPFrontEnd) post(x *httpExchange) {
	refuse := func(status, code int, id []byte, why string) { refuseHTTP(x.writer, status, id, code, why) }
	media, params, err := mime.ParseMediaType(x.req.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") || x.req.Header.Get("Content-Encoding") != "" {
		refuse(http.StatusUnsupportedMediaType, codeInvalidRequest, nil, "the Content-Type is not supported; send application/json in UTF-8")
		return
	}
	room := maxRequestBodyBytes
	if n := x.req.ContentLength; n >= 0 && n < maxRequestBodyBytes {
		room = int(n) + 1
	}
	if !f.tryReserveCapacity(room) {
		refuse(http.StatusServiceUnavailable, codeInternalError, nil, "too many messages are in progress; try again later")
		return
	}
	defer f.releaseCapacity(room)
	_ = x.stream.controller.SetReadDeadline(f.Clock().Add(bodyReadTimeout))
	raw, err := io.ReadAll(http.MaxBytesReader(x.writer, x.req.Body, maxRequestBodyBytes))
	_ = x.stream.controller.SetReadDeadline(time.Time{})
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		refuse(http.StatusRequestEntityTooLarge, codeInvalidRequest, nil, errFrameTooLong.Error())
		return
	case err != nil:
		refuse(http.StatusBadRequest, codeInvalidRequest, nil, "the message is incomplete; send the whole body")
		return
	}
	m, err := parseBody(raw)
	if err != nil {
		refuse(http.StatusBadRequest, codeInvalidRequest, nil, err.Error())
		return
	}
	if why := mcpHeaderMismatchReason(x.req.Header, m); why != "" {
		refuse(http.StatusBadRequest, codeHeaderMismatch, m.id, why)
		return
	}
	x.handlePost(m)
}

// parseBody reads a message that can span several lines, and returns it as one line.
func parseBody(raw []byte) (*message, error) {
	if bytes.ContainsAny(raw, "\r\n") {
		v := jsontext.Value(bytes.TrimSpace(raw))
		if err := v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
			return nil, errors.New("not JSON")
		}
		raw = v
	}
	return parseMessage(raw)
}

// mcpHeaderMismatchReason returns how HTTP headers contradict their message; "" if they match. No decision depends on
// a header.
func mcpHeaderMismatchReason(header http.Header, m *message) string {
	version := stringMember(objectMember(m.params, "_meta"), "io.modelcontextprotocol/protocolVersion")
	for _, one := range []struct{ header, want string }{
		{"Mcp-Method", m.method}, {"Mcp-Name", mcpNameHeaderValue(m)}, {"Mcp-Protocol-Version", version},
	} {
		said, ok := decodeBase64HeaderValue(header.Get(one.header))
		if header.Values(one.header) == nil || one.header == "Mcp-Protocol-Version" && version == "" {
			continue
		}
		if !ok || said == "" || said != one.want {
			return "the header " + one.header + " does not match the message; send the value that is in the message"
		}
	}
	return ""
}

// mcpNameHeaderValue returns the name, URI or task ID that a message refers to, which the HTTP header Mcp-Name
// must repeat; "" for other methods.
func mcpNameHeaderValue(m *message) string {
	of, _, _ := strings.Cut(m.method, "/")
	switch of {
	case "tools", "prompts":
		return stringMember(m.params, "name")
	case "resources":
		return stringMember(m.params, "uri")
	case "tasks":
		return stringMember(m.params, "taskId")
	}
	return ""
}

// verifiedArgumentHeaders returns the HTTP headers that repeat arguments of a call, for the parameters whose
// schema has x-mcp-header. Only headers that the client sent are returned. It returns an error if such a header
// does not match its argument, or if the argument is missing; headers without such a parameter are ignored.
func verifiedArgumentHeaders(requestHeader http.Header, t *tool, arguments object) (map[string]string, error) {
	out := map[string]string{}
	for name, schema := range objectMember(objectMember(t.parsedDefinition, "inputSchema"), "properties") {
		schema, _ := schema.(object)
		header := http.CanonicalHeaderKey("Mcp-Param-" + stringMember(schema, "x-mcp-header"))
		if stringMember(schema, "x-mcp-header") == "" || requestHeader.Values(header) == nil {
			continue
		}
		want, isText := arguments[name].(string)
		if !isText {
			want = string(canonjson.AppendValue(nil, arguments[name]))
		}
		said, ok := decodeBase64HeaderValue(requestHeader.Get(header))
		if !ok || arguments[name] == nil || said != want {
			return nil, fmt.Errorf("the header %s does not match the message; send the value that is in the message", header)
		}
		out[header] = requestHeader.Get(header)
	}
	return out, nil
}

// decodeBase64HeaderValue returns the decoded value of a header. The protocol allows a value to be encoded as
// =?base64?…?=; other values are returned unchanged. It returns false if the base64 is invalid.
func decodeBase64HeaderValue(s string) (string, bool) {
	rest, encoded := strings.CutPrefix(s, "=?base64?")
	if !encoded {
		return s, true
	}
	rest, whole := strings.CutSuffix(rest, "?=")
	if !whole {
		return s, true
	}
	plain, err := base64.StdEncoding.DecodeString(rest)
	return string(plain), err == nil
}

// encodeBase64HeaderValue returns a text as the value of a header.
func encodeBase64HeaderValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?")
	for i := range len(s) {
		plain = plain && s[i] >= 0x20 && s[i] < 0x7f
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// refuseHTTP answers an exchange with an error.
func refuseHTTP(w http.ResponseWriter, status int, id []byte, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(errorResponse(id, code, "shield: "+why))
}

// An MCPServerEndpoint is one MCP server behind an [HTTPFrontEnd].
type MCPServerEndpoint struct {
	opts        Options
	sharedState *serverStateAcrossConnections
	backend     serverBackend

	mu                sync.Mutex
	sessions          map[string]*session
	sessionUseCounter uint64
}

// A serverBackend connects an HTTP endpoint to its MCP server, for example by a local process. Each
// handle method writes the HTTP response of the exchange x.
type serverBackend interface {
	handlePost(x *httpExchange, s *session, m *message)
	handleGet(x *httpExchange, s *session)
	handleDelete(x *httpExchange, s *session)
	endSession(s *session) // ends a session that is dropped
	maxSessions() int      // maximum number of sessions
	close()
}

// A session is the state of the exchanges with the same Mcp-Session-Id.
type session struct {
	id                    string
	client                string // name of the client that began the session; other clients cannot use the session
	gateway               *Gateway
	process               *localProcess // process of a server on standard input and output
	openExchanges         int           // number of open exchanges
	lastUseSequenceNumber uint64        // sequence number of the last use
}

// Close ends the processes and sessions of the endpoint.
func (e *MCPServerEndpoint) Close() {
	e.mu.Lock()
	all := e.sessions
	e.sessions = map[string]*session{}
	e.mu.Unlock()
	var ends sync.WaitGroup
	for _, s := range all {
		ends.Go(func() { e.backend.endSession(s) })
	}
	e.backend.close()
	ends.Wait()
}

// gatewayFor returns a gateway for a client: for one connection, or for requests without a session.
func (e *MCPServerEndpoint) gatewayFor(client string, hasSession bool) *Gateway {
	opts := e.opts
	if opts.JudgeFor != nil {
		connection := ""
		if hasSession {
			connection = newSessionID() // not the server's own session ID, which is a credential and must not be logged
		}
		opts.Judge, opts.SessionID = opts.JudgeFor(client, connection)
	}
	return newGateway(opts, e.sharedState)
}

// findSession returns the session that a client's request names, or nil if it names none. It reports false
// if the session is unknown or another client's.
func (e *MCPServerEndpoint) findSession(h http.Header, client string) (*session, bool) {
	if h.Values("Mcp-Session-Id") == nil {
		return nil, true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sessions[h.Get("Mcp-Session-Id")]
	if s == nil || s.client != client {
		return nil, false
	}
	e.sessionUseCounter++
	s.openExchanges, s.lastUseSequenceNumber = s.openExchanges+1, e.sessionUseCounter
	return s, true
}

// endSessionExchange records that an exchange of a session has ended.
func (e *MCPServerEndpoint) endSessionExchange(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.openExchanges--
}

// tryStoreSession stores a session. If there are too many, it replaces the least recently used one that is not
// in use. It reports false if all are in use, or if a session with the same ID is stored.
func (e *MCPServerEndpoint) tryStoreSession(s *session) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[s.id] != nil {
		return false
	}
	if len(e.sessions) >= e.backend.maxSessions() {
		var oldest *session
		for _, other := range e.sessions {
			if other.openExchanges == 0 && (oldest == nil || other.lastUseSequenceNumber < oldest.lastUseSequenceNumber) {
				oldest = other
			}
		}
		if oldest == nil {
			return false
		}
		delete(e.sessions, oldest.id)
		go e.backend.endSession(oldest)
	}
	e.sessionUseCounter++
	s.lastUseSequenceNumber = e.sessionUseCounter
	e.sessions[s.id] = s
	return true
}

// dropSession removes and ends a session.
func (e *MCPServerEndpoint) dropSession(s *session) {
	e.mu.Lock()
	known := e.sessions[s.id] == s
	if known {
		delete(e.sessions, s.id)
	}
	e.mu.Unlock()
	if known {
		e.backend.endSession(s)
	}
}

// newSessionID returns a new random ID for a session or a connection.
func newSessionID() string { return rand.Text() }
