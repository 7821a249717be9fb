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

// fromClient handles the client's frames in turn until they end.
func (g *Gateway) fromClient(ctx context.Context, r *route, in *frames) error {
	for ctx.Err() == nil {
		f, err := in.next()
		if err != nil && !errors.Is(err, errFrame) {
			return err
		}
		var m *message
		if err == nil {
			m, err = read(f.raw)
		}
		if err != nil {
			r.answer(failure(f.id, codeInvalid, "shield: "+err.Error()))
			continue
		}
		g.clientMessage(ctx, r, m)
	}
	return ctx.Err()
}

// clientMessage handles a message from the client on route r.
func (g *Gateway) clientMessage(ctx context.Context, r *route, m *message) {
	switch {
	case m.isRequest():
		g.request(ctx, r, m)
	case m.isNotice():
		g.clientNotice(r, m)
	default:
		g.clientAnswer(r, m)
	}
}

// removed are methods that the stateless version of the protocol no longer has.
var removed = []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}

// request handles a request of the client.
func (g *Gateway) request(ctx context.Context, r *route, m *message) {
	class := methodClass(m.method)
	newer := stateless(m.params)
	if newer && slices.Contains(removed, m.method) {
		class = ""
	}
	if class == "" {
		if newer {
			r.status(http.StatusNotFound)
		}
		r.answer(failure(m.id, codeUnknown, fmt.Sprintf("shield refused the method %q: it is not part of the MCP version that shield supports", canonjson.Quote(m.method))))
		return
	}
	c := &call{route: r, id: m.id, method: m.method, token: tokenOf(m.params), stateless: newer}
	ctx, c.cancel = context.WithTimeout(ctx, g.opts.Timeout)
	if class == "list" {
		c.listing = g.catalog.begin(m.params)
	}
	if err := g.enter(c); err != nil {
		c.cancel()
		g.over(c)
		r.answer(failure(m.id, codeInvalid, "shield: "+err.Error()))
		return
	}
	if class != "judge" {
		g.asksFor(m.method)
		c.cancel()
		g.forward(c, m.raw)
		return
	}
	g.judging.Add(1)
	go func() {
		defer g.judging.Done()
		defer c.cancel()
		select {
		case g.catalog.slots <- struct{}{}:
			defer func() { <-g.catalog.slots }()
		case <-ctx.Done():
		}
		g.judge(ctx, c, m)
	}()
}

// enter records a request that waits for its response.
func (g *Gateway) enter(c *call) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.noAnswer != nil:
		return g.noAnswer
	case g.calls[string(c.id)] != nil:
		return errors.New("a request with this id is already pending; use a new id for each request")
	case g.late[string(c.id)]:
		return errors.New("the id of a cancelled request was used again; use a new id for each request")
	case len(g.calls) >= maxPending:
		return fmt.Errorf("more than %d requests are pending; wait for answers before sending more", maxPending)
	}
	g.calls[string(c.id)] = c
	return nil
}

// leave removes a request that was not sent to the server, and reports whether the client still waits
// for it.
func (g *Gateway) leave(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[string(c.id)] != c {
		return false
	}
	delete(g.calls, string(c.id))
	return true
}

// forward sends a request's bytes to the server, unless the client has cancelled it.
func (g *Gateway) forward(c *call, raw []byte) {
	g.mu.Lock()
	waits := g.calls[string(c.id)] == c
	c.forwarded = waits
	g.mu.Unlock()
	if !waits {
		return
	}
	if err := c.route.ask(raw); err != nil && g.take(c.id) != nil {
		g.over(c)
		c.route.answer(failure(c.id, codeRefused, "shield: "+err.Error()))
	}
}

// over records that a request is finished without a response.
func (g *Gateway) over(c *call) {
	if c.listing != nil {
		g.catalog.end()
	}
}

// judge decides whether a request may go to the server, and forwards or refuses it.
func (g *Gateway) judge(ctx context.Context, c *call, m *message) {
	reason := g.refusal(ctx, c, m)
	switch {
	case reason == "":
		g.forward(c, m.raw)
	case !g.leave(c): // cancelled: the client waits for no response
		c.route.over()
	case c.misplaced:
		c.route.answer(failure(c.id, codeParams, reason))
	case c.method == "tools/call":
		c.route.answer(success(c.id, toolError(reason, c.stateless)))
	default:
		c.route.answer(failure(c.id, codeRefused, reason))
	}
}

// clientNotice handles a notification of the client.
func (g *Gateway) clientNotice(r *route, m *message) {
	switch {
	case m.method == "notifications/cancelled":
		id, ok := m.params["requestId"]
		if !ok {
			return
		}
		key := string(canonicalID(canonjson.AppendValue(nil, id)))
		g.mu.Lock()
		c := g.calls[key]
		delete(g.calls, key)
		if c != nil && c.forwarded && len(g.late) < maxPending {
			g.late[key] = true
		}
		g.mu.Unlock()
		if c == nil {
			return
		}
		g.over(c)
		c.route.over()
		if c.cancel(); !c.forwarded {
			return // the request was not sent to the server
		}
	case !strings.HasPrefix(m.method, "notifications/"):
		g.notify("dropped the client's notification %q: MCP has no notification of that name", canonjson.Quote(m.method))
		return
	}
	if err := r.ask(m.raw); err != nil {
		g.odd("dropped a notification of the client: %v; update the client", err)
	}
}

// clientAnswer forwards a client's response, if the server sent the request.
func (g *Gateway) clientAnswer(r *route, m *message) {
	g.mu.Lock()
	waits := m.id != nil && g.asked[string(m.id)]
	delete(g.asked, string(m.id))
	g.mu.Unlock()
	if !waits {
		g.notify("dropped an answer of the client to a request that the server did not send")
		return
	}
	if err := r.ask(m.raw); err != nil {
		g.odd("dropped an answer of the client: %v; update the client", err)
	}
}
