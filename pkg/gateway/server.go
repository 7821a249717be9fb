package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
)

// handleServerFrames handles the server's frames in order until they end. Results are examined concurrently;
// all are finished when it returns.
func (g *Gateway) handleServerFrames(r *clientServerRoute, in *frameReader) error {
	r.asyncExaminer = newAsyncResponseExaminer(g.queuedByteLimit)
	defer r.asyncExaminer.waitUntilAllForwarded()
	for {
		f, err := in.next()
		if err != nil && !errors.Is(err, errFrameTooLong) {
			return err
		}
		var m *message
		if err == nil {
			m, err = parseMessage(f.raw)
		}
		if err != nil {
			if c := g.removePendingCall(f.id); c != nil && f.id != nil {
				g.withholdResponse(c, err.Error())
				g.finishCallWithoutResponse(c)
			}
			if g.reportDroppedFrame("dropped a message of the server: %v; update the server", err) {
				return fmt.Errorf("the connection was closed: the server sent more than %d messages that are not valid MCP; update the server", maxDroppedFrames)
			}
			continue
		}
		if err := g.handleServerMessage(r, m); err != nil {
			return err
		}
	}
}

// handleServerMessage handles a message from the server on route r. It returns an error after too many
// invalid messages.
func (g *Gateway) handleServerMessage(r *clientServerRoute, m *message) error {
	var err error
	switch {
	case m.isRequest():
		err = g.handleServerRequest(r, m)
	case m.isJSONRPCNotification() && r.asyncExaminer != nil && !refersToPendingRequest(m.method):
		err = r.asyncExaminer.forwardOrHoldServerNotification(len(m.raw), func() error { return g.handleServerNotification(r, m) })
	case m.isJSONRPCNotification():
		err = g.handleServerNotification(r, m)
	default:
		err = g.handleServerResponse(r, m)
	}
	if err != nil && g.reportDroppedFrame("%v", err) {
		return fmt.Errorf("the connection was closed: the server sent more than %d messages that shield dropped; update the server", maxDroppedFrames)
	}
	return nil
}

// refersToPendingRequest reports whether a notification refers to a pending request, so that it does not have to wait
// for earlier responses.
func refersToPendingRequest(method string) bool {
	return method == "notifications/progress" || method == "notifications/cancelled"
}

// withholdResponse answers a client request with an error, since the server's response cannot be forwarded.
func (g *Gateway) withholdResponse(c *pendingCall, why string) {
	if c.serverResponseToGateway != nil {
		c.serverResponseToGateway <- nil
		return
	}
	reason := "shield: the server's answer is withheld: " + why
	if c.method == "tools/call" {
		c.route.sendResponseToClient(resultResponse(c.id, toolErrorResult(reason, c.stateless)))
		return
	}
	c.route.sendResponseToClient(errorResponse(c.id, codeInternalError, reason))
}

// handleServerResponse examines a response and forwards it, if the client has sent the request.
func (g *Gateway) handleServerResponse(r *clientServerRoute, m *message) error {
	c := g.removePendingCall(m.id)
	if m.id == nil || c == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.cancelledCalls[string(m.id)] {
			delete(g.cancelledCalls, string(m.id))
			return nil
		}
		return errors.New("dropped an answer of the server to a request that was never sent")
	}
	if r.asyncExaminer != nil && c.action != nil && g.opts.OnActionResult != nil {
		r.asyncExaminer.examineResponse(len(m.raw), func() { g.forwardResponse(r, c, m) })
		return nil
	}
	g.forwardResponse(r, c, m)
	return nil
}

// forwardResponse examines the response to a request and forwards it.
func (g *Gateway) forwardResponse(r *clientServerRoute, c *pendingCall, m *message) {
	defer g.finishCallWithoutResponse(c)
	if r.stream != nil && c.route.stream.ended() {
		c.route = r // the client has resumed an interrupted stream
	}
	if c.serverResponseToGateway != nil {
		c.serverResponseToGateway <- m
		return
	}
	if m.rpcError != nil {
		if why := g.errorResponseRefusalReason(m.rpcError); why != "" {
			g.withholdResponse(c, why)
			return
		}
		g.examineAndForwardResponse(c, m, "error", m.rpcError)
		return
	}
	result, ok := m.result.(object)
	if !ok {
		g.withholdResponse(c, "the result is not a JSON object; tell the user to update the server")
		return
	}
	if result["resultType"] == "input_required" || result["inputRequests"] != nil {
		if why := g.inputRequestsRefusalReason(c, result); why != "" {
			g.withholdResponse(c, why)
			return
		}
	}
	switch c.method {
	case "tools/list":
		g.answerToolList(c, m, result)
	case "initialize", "server/discover":
		g.answerInitialize(c, m, result)
	default:
		g.examineAndForwardResponse(c, m, "result", result)
	}
}

// examineAndForwardResponse forwards a response after its examination.
func (g *Gateway) examineAndForwardResponse(c *pendingCall, m *message, responseMemberName string, value object) {
	out, findings, changed := g.examineTexts(value, c)
	g.notifyFindings(c.method+" "+c.requestTarget, findings)
	if g.opts.OnActionResult != nil && c.action != nil {
		if err := g.opts.OnActionResult(context.Background(), c.action, value, findings); err != nil {
			g.withholdResponse(c, err.Error())
			return
		}
	}
	switch {
	case !changed:
		c.route.sendResponseToClient(m.raw)
	case out == nil:
		g.withholdResponse(c, "it contains "+findings.String())
	default:
		c.route.sendResponseToClient(replaceMember(m, responseMemberName, out))
	}
}

// replaceMember returns a message with one member replaced; the other members stay byte for byte.
func replaceMember(m *message, name string, value object) []byte {
	b := []byte{'{'}
	for i, member := range m.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(canonjson.AppendString(b, member.Name), ':')
		if member.Name == name {
			b = canonjson.AppendValue(b, value)
		} else {
			b = append(b, member.Raw...)
		}
	}
	return append(b, '}')
}

// handleServerRequest handles a server request to the client.
func (g *Gateway) handleServerRequest(r *clientServerRoute, m *message) error {
	why := ""
	switch m.method {
	case "ping", "roots/list":
	case "sampling/createMessage", "elicitation/create":
		why = g.serverRequestRefusalReason(m.method, m.params)
	default:
		why = "MCP clients have no method of that name"
	}
	raw := m.raw
	if why == "" && m.params != nil {
		out, findings, changed := g.examineTexts(m.params, nil)
		g.notifyFindings(m.method, findings)
		switch {
		case !changed:
		case out == nil:
			why = "it contains " + findings.String()
		default:
			raw = replaceMember(m, "params", out)
		}
	}
	g.mu.Lock()
	switch {
	case why != "":
	case g.openRequestIDsFromServer[string(m.id)]:
		why = "a request with this id is already pending; use a new id for each request"
	case len(g.openRequestIDsFromServer) >= maxPendingRequestsPerDirection:
		why = fmt.Sprintf("more than %d requests are pending; wait for answers before sending more", maxPendingRequestsPerDirection)
	default:
		g.openRequestIDsFromServer[string(m.id)] = true
	}
	g.mu.Unlock()
	if why == "" {
		if r.sendToClient(raw) {
			return nil
		}
		g.mu.Lock()
		delete(g.openRequestIDsFromServer, string(m.id))
		g.mu.Unlock()
		why = "no client is listening"
	}
	answer := errorResponse(m.id, codeUnknownMethod, "refused by shield: "+why)
	if m.method == "elicitation/create" {
		answer = resultResponse(m.id, object{"action": "decline"})
	}
	_ = r.sendToServer(answer) // ignore the error: the server does not read
	return fmt.Errorf("refused the server's request %s: %s", canonjson.Quote(m.method), why)
}

// handleServerNotification forwards a notification of the server to the client, after its texts were examined.
// An error says why the notification was dropped or withheld. If the client already knows that a list has
// changed, another notification of this change is dropped without an error.
func (g *Gateway) handleServerNotification(r *clientServerRoute, m *message) error {
	drop := ""
	switch m.method {
	case "notifications/progress":
		at := g.progressRoute(m.params)
		if at == nil {
			drop = "its progress token is unknown"
		} else if !at.stream.ended() {
			r = at
		}
	case "notifications/cancelled":
		id, ok := m.params["requestId"]
		key := string(canonicalID(canonjson.AppendValue(nil, id)))
		g.mu.Lock()
		if !ok || !g.openRequestIDsFromServer[key] {
			drop = "it cancels an unknown request"
		}
		delete(g.openRequestIDsFromServer, key)
		g.mu.Unlock()
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		if g.wasListChangeAnnounced(m.method) {
			return nil
		}
	default:
		if !strings.HasPrefix(m.method, "notifications/") {
			drop = "MCP has no notification of that name"
		}
	}
	if drop != "" {
		return fmt.Errorf("dropped the server's notification %q: %s", canonjson.Quote(m.method), drop)
	}
	out, findings, changed := g.examineTexts(m.params, nil)
	g.notifyFindings(m.method, findings)
	switch {
	case !changed:
		r.sendToClient(m.raw)
	case out == nil:
		return fmt.Errorf("withheld the server's notification %q, which contains %s; if you do not trust the server, remove it from the client", canonjson.Quote(m.method), findings)
	default:
		r.sendToClient(replaceMember(m, "params", out))
	}
	return nil
}

// wasListChangeAnnounced reports whether the client was already told that a list has changed and has not
// requested it since, and records that it is told.
func (g *Gateway) wasListChangeAnnounced(method string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := listNameOfMethod(method)
	known := g.changedListsAwaitingClientRequest[of]
	g.changedListsAwaitingClientRequest[of] = true
	return known
}

// recordListRequest records that the client requests a list.
func (g *Gateway) recordListRequest(method string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.changedListsAwaitingClientRequest, listNameOfMethod(method))
}

// listNameOfMethod returns which list a method concerns, such as "tools".
func listNameOfMethod(method string) string {
	of, _, _ := strings.Cut(strings.TrimPrefix(method, "notifications/"), "/")
	return of
}

// progressRoute returns the route of the client request whose progress token a notification has; nil if
// there is none.
func (g *Gateway) progressRoute(params object) *clientServerRoute {
	token, ok := params["progressToken"]
	if !ok {
		return nil
	}
	want := string(canonjson.AppendValue(nil, token))
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.clientCalls {
		if c.forwarded && c.progressToken == want {
			return c.route
		}
	}
	return nil
}
