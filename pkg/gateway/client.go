package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
)

// handleClientFrames handles the client's frames in turn until they end.
func (g *Gateway) handleClientFrames(ctx context.Context, r *clientServerRoute, in *frameReader) error {
	for ctx.Err() == nil {
		f, err := in.next()
		if err != nil && !errors.Is(err, errFrameTooLong) {
			return err
		}
		var m *message
		if err == nil {
			m, err = parseMessage(f.raw)
		}
		if err != nil {
			r.sendResponseToClient(errorResponse(f.id, codeInvalidRequest, "shield: "+err.Error()))
			continue
		}
		g.handleClientMessage(ctx, r, m)
	}
	return ctx.Err()
}

// handleClientMessage handles a message from the client on route r.
func (g *Gateway) handleClientMessage(ctx context.Context, r *clientServerRoute, m *message) {
	switch {
	case m.isRequest():
		g.handleRequest(ctx, r, m)
	case m.isJSONRPCNotification():
		g.handleClientNotification(r, m)
	default:
		g.forwardClientResponse(r, m)
	}
}

// methodsRemovedInStatelessMCP are methods that the stateless version of the protocol no longer has.
var methodsRemovedInStatelessMCP = []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}

// handleRequest processes a request of the client, depending on its method: it forwards the request to the
// server, judges it in a new goroutine, or refuses it, for example if the method is unknown.
func (g *Gateway) handleRequest(ctx context.Context, r *clientServerRoute, m *message) {
	class := methodHandling(m.method)
	newer := usesStatelessProtocol(m.params)
	if newer && slices.Contains(methodsRemovedInStatelessMCP, m.method) {
		class = ""
	}
	if class == "" {
		if newer {
			r.setStatus(http.StatusNotFound)
		}
		r.sendResponseToClient(errorResponse(m.id, codeUnknownMethod, fmt.Sprintf("shield refused the method %q, which is not part of the MCP version that shield supports; tell the user to update shield", canonjson.Quote(m.method))))
		return
	}
	c := &pendingCall{route: r, id: m.id, method: m.method, progressToken: progressTokenOf(m.params), stateless: newer}
	ctx, c.cancel = context.WithTimeout(ctx, g.opts.JudgeTimeout)
	if class == "list" {
		c.listing = g.sharedState.beginToolListRequest(m.params)
	}
	if err := g.addCall(c); err != nil {
		c.cancel()
		g.finishCallWithoutResponse(c)
		r.sendResponseToClient(errorResponse(m.id, codeInvalidRequest, "shield: "+err.Error()))
		return
	}
	if class != "judge" {
		g.recordListRequest(m.method)
		c.cancel()
		g.forward(c, m.raw)
		return
	}
	g.judgements.Add(1)
	go func() {
		defer g.judgements.Done()
		defer c.cancel()
		select {
		case g.sharedState.judgeSlots <- struct{}{}:
			defer func() { <-g.sharedState.judgeSlots }()
		case <-ctx.Done():
		}
		g.judgeCall(ctx, c, m)
	}()
}

// addCall records a request that waits for its response.
func (g *Gateway) addCall(c *pendingCall) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.serverEndError != nil:
		return g.serverEndError
	case g.clientCalls[string(c.id)] != nil:
		return errors.New("a request with this id is already pending; use a new id for each request")
	case g.cancelledCalls[string(c.id)]:
		return errors.New("the id of a cancelled request was used again; use a new id for each request")
	case len(g.clientCalls) >= maxPendingRequestsPerDirection:
		return fmt.Errorf("more than %d requests are pending; wait for answers before sending more", maxPendingRequestsPerDirection)
	}
	g.clientCalls[string(c.id)] = c
	return nil
}

// removeUnsentCall removes a request that was not sent to the server, and reports whether the client still waits
// for it.
func (g *Gateway) removeUnsentCall(c *pendingCall) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clientCalls[string(c.id)] != c {
		return false
	}
	delete(g.clientCalls, string(c.id))
	return true
}

// forward sends a request's bytes to the server, unless the client has cancelled it.
func (g *Gateway) forward(c *pendingCall, raw []byte) {
	g.mu.Lock()
	waits := g.clientCalls[string(c.id)] == c
	c.forwarded = waits
	g.mu.Unlock()
	if !waits {
		return
	}
	if err := c.route.sendToServer(raw); err != nil && g.removePendingCall(c.id) != nil {
		g.finishCallWithoutResponse(c)
		c.route.sendResponseToClient(errorResponse(c.id, codeInternalError, "shield: "+err.Error()))
	}
}

// finishCallWithoutResponse records that a request is finished without a response.
func (g *Gateway) finishCallWithoutResponse(c *pendingCall) {
	if c.listing != nil {
		g.sharedState.endToolListRequest()
	}
}

// judgeCall decides whether a request may go to the server, and forwards or refuses it.
func (g *Gateway) judgeCall(ctx context.Context, c *pendingCall, m *message) {
	reason := g.requestRefusalReason(ctx, c, m)
	switch {
	case reason == "":
		g.forward(c, m.raw)
	case !g.removeUnsentCall(c): // cancelled: the client waits for no response
		c.route.endHTTPExchangeWithoutResponse()
	case c.answersUnaskedQuestion:
		c.route.sendResponseToClient(errorResponse(c.id, codeInvalidParams, reason))
	case c.method == "tools/call":
		c.route.sendResponseToClient(resultResponse(c.id, toolErrorResult(reason, c.stateless)))
	default:
		c.route.sendResponseToClient(errorResponse(c.id, codeInternalError, reason))
	}
}

// handleClientNotification handles a notification of the client.
func (g *Gateway) handleClientNotification(r *clientServerRoute, m *message) {
	switch {
	case m.method == "notifications/cancelled":
		id, ok := m.params["requestId"]
		if !ok {
			return
		}
		key := string(canonicalID(canonjson.AppendValue(nil, id)))
		g.mu.Lock()
		c := g.clientCalls[key]
		delete(g.clientCalls, key)
		if c != nil && c.forwarded && len(g.cancelledCalls) < maxPendingRequestsPerDirection {
			g.cancelledCalls[key] = true
		}
		g.mu.Unlock()
		if c == nil {
			return
		}
		g.finishCallWithoutResponse(c)
		c.route.endHTTPExchangeWithoutResponse()
		if c.cancel(); !c.forwarded {
			return // the request was not sent to the server
		}
	case !strings.HasPrefix(m.method, "notifications/"):
		g.notifyUser("dropped the client's notification %q: MCP has no notification of that name", canonjson.Quote(m.method))
		return
	}
	if err := r.sendToServer(m.raw); err != nil {
		g.reportDroppedFrame("dropped a notification of the client: %v; update the client", err)
	}
}

// forwardClientResponse forwards a client's response, if the server sent the request.
func (g *Gateway) forwardClientResponse(r *clientServerRoute, m *message) {
	g.mu.Lock()
	waits := m.id != nil && g.openRequestIDsFromServer[string(m.id)]
	delete(g.openRequestIDsFromServer, string(m.id))
	g.mu.Unlock()
	if !waits {
		g.notifyUser("dropped an answer of the client to a request that the server did not send")
		return
	}
	if err := r.sendToServer(m.raw); err != nil {
		g.reportDroppedFrame("dropped an answer of the client: %v; update the client", err)
	}
}
