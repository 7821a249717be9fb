package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
)

// fromServer handles the server's frames in order until they end. Results are examined concurrently;
// all are finished when it returns.
func (g *Gateway) fromServer(r *route, in *frames) error {
	r.aside = newAside(g.maxQueue)
	defer r.aside.wait()
	for {
		f, err := in.next()
		if err != nil && !errors.Is(err, errFrame) {
			return err
		}
		var m *message
		if err == nil {
			m, err = read(f.raw)
		}
		if err != nil {
			if c := g.take(f.id); c != nil && f.id != nil {
				g.refuse(c, err.Error())
				g.over(c)
			}
			if g.odd("dropped a message of the server: %v; update the server", err) {
				return fmt.Errorf("the connection was closed: the server sent more than %d messages that are not valid MCP; update the server", maxRefused)
			}
			continue
		}
		if err := g.serverMessage(r, m); err != nil {
			return err
		}
	}
}

// serverMessage handles a message from the server on route r. It returns an error after too many
// invalid messages.
func (g *Gateway) serverMessage(r *route, m *message) error {
	var err error
	switch {
	case m.isRequest():
		err = g.serverRequest(r, m)
	case m.isNotice() && r.aside != nil && !atOnce(m.method):
		err = r.aside.notice(len(m.raw), func() error { return g.serverNotice(r, m) })
	case m.isNotice():
		err = g.serverNotice(r, m)
	default:
		err = g.serverAnswer(r, m)
	}
	if err != nil && g.odd("%v", err) {
		return fmt.Errorf("the connection was closed: the server sent more than %d messages that shield dropped; update the server", maxRefused)
	}
	return nil
}

// atOnce reports whether a notification refers to a pending request, so that it does not have to wait
// for earlier responses.
func atOnce(method string) bool {
	return method == "notifications/progress" || method == "notifications/cancelled"
}

// refuse answers a client request with an error, since the server's response cannot be forwarded.
func (g *Gateway) refuse(c *call, why string) {
	if c.own != nil {
		c.own <- nil
		return
	}
	reason := "shield: the server's answer is withheld: " + why
	if c.method == "tools/call" {
		c.route.answer(success(c.id, toolError(reason, c.stateless)))
		return
	}
	c.route.answer(failure(c.id, codeRefused, reason))
}

// serverAnswer examines a response and forwards it, if the client has sent the request.
func (g *Gateway) serverAnswer(r *route, m *message) error {
	c := g.take(m.id)
	if m.id == nil || c == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.late[string(m.id)] {
			delete(g.late, string(m.id))
			return nil
		}
		return errors.New("dropped an answer of the server to a request that was never sent")
	}
	if r.aside != nil && c.action != nil && g.opts.Returned != nil {
		r.aside.answer(len(m.raw), func() { g.answered(r, c, m) })
		return nil
	}
	g.answered(r, c, m)
	return nil
}

// answered examines the response to a request and forwards it.
func (g *Gateway) answered(r *route, c *call, m *message) {
	defer g.over(c)
	if r.stream != nil && c.route.stream.ended() {
		c.route = r // the client has resumed an interrupted stream
	}
	if c.own != nil {
		c.own <- m
		return
	}
	if m.fault != nil {
		if why := g.linksOf(m.fault); why != "" {
			g.refuse(c, why)
			return
		}
		g.pass(c, m, "error", m.fault)
		return
	}
	result, ok := m.result.(object)
	if !ok {
		g.refuse(c, "its result is not a JSON object; tell the user to update the server")
		return
	}
	if result["resultType"] == "input_required" || result["inputRequests"] != nil {
		if why := g.inputs(c, result); why != "" {
			g.refuse(c, why)
			return
		}
	}
	switch c.method {
	case "tools/list":
		g.answerList(c, m, result)
	case "initialize", "server/discover":
		g.answerHello(c, m, result)
	default:
		g.pass(c, m, "result", result)
	}
}

// pass forwards a response after its examination.
func (g *Gateway) pass(c *call, m *message, name string, value object) {
	out, findings, changed := g.examined(value, c)
	g.found(c.method+" "+c.subject, findings)
	if g.opts.Returned != nil && c.action != nil {
		if err := g.opts.Returned(context.Background(), c.action, value, findings); err != nil {
			g.refuse(c, err.Error())
			return
		}
	}
	switch {
	case !changed:
		c.route.answer(m.raw)
	case out == nil:
		g.refuse(c, "it contains "+findings.String())
	default:
		c.route.answer(rebuilt(m, name, out))
	}
}

// rebuilt returns a message with one member replaced; the other members stay byte for byte.
func rebuilt(m *message, name string, value object) []byte {
	b := []byte{'{'}
	for i, member := range m.member {
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

// serverRequest handles a server request to the client.
func (g *Gateway) serverRequest(r *route, m *message) error {
	why := ""
	switch m.method {
	case "ping", "roots/list":
	case "sampling/createMessage", "elicitation/create":
		why = g.refuseServerRequest(m.method, m.params)
	default:
		why = "MCP clients have no method of that name"
	}
	raw := m.raw
	if why == "" && m.params != nil {
		out, findings, changed := g.examined(m.params, nil)
		g.found(m.method, findings)
		switch {
		case !changed:
		case out == nil:
			why = "it contains " + findings.String()
		default:
			raw = rebuilt(m, "params", out)
		}
	}
	g.mu.Lock()
	switch {
	case why != "":
	case g.asked[string(m.id)]:
		why = "a request with this id is already pending; use a new id for each request"
	case len(g.asked) >= maxPending:
		why = fmt.Sprintf("more than %d requests are pending; wait for answers before sending more", maxPending)
	default:
		g.asked[string(m.id)] = true
	}
	g.mu.Unlock()
	if why == "" {
		if r.tell(raw) {
			return nil
		}
		g.mu.Lock()
		delete(g.asked, string(m.id))
		g.mu.Unlock()
		why = "no client is listening"
	}
	answer := failure(m.id, codeUnknown, "refused by shield: "+why)
	if m.method == "elicitation/create" {
		answer = success(m.id, object{"action": "decline"})
	}
	_ = r.ask(answer) // ignore the error: the server does not read
	return fmt.Errorf("refused the server's request %s: %s", canonjson.Quote(m.method), why)
}

// serverNotice handles a notification from the server.
func (g *Gateway) serverNotice(r *route, m *message) error {
	drop := ""
	switch m.method {
	case "notifications/progress":
		at := g.progresses(m.params)
		if at == nil {
			drop = "its progress token is unknown"
		} else if !at.stream.ended() {
			r = at
		}
	case "notifications/cancelled":
		id, ok := m.params["requestId"]
		key := string(canonicalID(canonjson.AppendValue(nil, id)))
		g.mu.Lock()
		if !ok || !g.asked[key] {
			drop = "it cancels an unknown request"
		}
		delete(g.asked, key)
		g.mu.Unlock()
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		if g.knowsOfChange(m.method) {
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
	out, findings, changed := g.examined(m.params, nil)
	g.found(m.method, findings)
	switch {
	case !changed:
		r.tell(m.raw)
	case out == nil:
		return fmt.Errorf("withheld the server's notification %q: it contains %s", canonjson.Quote(m.method), findings)
	default:
		r.tell(rebuilt(m, "params", out))
	}
	return nil
}

// knowsOfChange reports whether the client was already told that a list has changed and has not
// requested it since, and records that it is told.
func (g *Gateway) knowsOfChange(method string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := listOf(method)
	known := g.changed[of]
	g.changed[of] = true
	return known
}

// asksFor records that the client requests a list.
func (g *Gateway) asksFor(method string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.changed, listOf(method))
}

// listOf returns which list a method concerns, such as "tools".
func listOf(method string) string {
	of, _, _ := strings.Cut(strings.TrimPrefix(method, "notifications/"), "/")
	return of
}

// progresses returns the route of the client request whose progress token a notification has; nil if
// there is none.
func (g *Gateway) progresses(params object) *route {
	token, ok := params["progressToken"]
	if !ok {
		return nil
	}
	want := string(canonjson.AppendValue(nil, token))
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.calls {
		if c.forwarded && c.token == want {
			return c.route
		}
	}
	return nil
}
