package gateway

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/pkg/effect"
)

// refuseServerRequest says why a server may not ask for something; "" if it may: for the
// client's model only where a person has allowed it, and of a person neither
// secrets nor to follow a link to a place that is not trusted.
func (g *Gateway) refuseServerRequest(method string, params object) string {
	g.mu.Lock()
	g.unasked++
	over := g.unasked > maxUnasked
	g.mu.Unlock()
	if over {
		return fmt.Sprintf("the server sent more than %d requests to the user or the model on this connection; reconnect", maxUnasked)
	}
	if method == "sampling/createMessage" {
		if !g.opts.Sampling {
			return "the settings do not let servers use the client's model; to allow it, set mcp.sampling: allow"
		}
		return ""
	}
	if address, isLink := params["url"]; isLink || params["mode"] == "url" {
		address, _ := address.(string)
		return g.link(address)
	}
	w := walk{examiner: askExaminer{}}
	w.value("", "", nil, object{"message": params["message"], "requestedSchema": params["requestedSchema"]})
	if len(w.findings) > 0 {
		return "the server asks the user for a secret: " + w.findings[0].Kind
	}
	return ""
}

// linksOf says why what an error asks of a person first is refused; "" if it may be
// asked, or asks nothing: a call can fail because a person has to follow links before.
func (g *Gateway) linksOf(fault object) string {
	all, _ := inner(fault, "data")["elicitations"].([]any)
	for _, one := range all {
		params, _ := one.(object)
		if why := g.refuseServerRequest("elicitation/create", params); why != "" {
			return why
		}
	}
	return ""
}

// link says why a server may not send a person to an address.
func (g *Gateway) link(address string) string {
	canonical, host := effect.URL(address)
	u, err := url.Parse(canonical)
	switch {
	case host == "" || err != nil:
		return "the server asks the user to open an invalid URL"
	case u.Scheme != "https":
		return "the server asks the user to open a URL without https"
	case u.User != nil:
		return "the server asks the user to open a URL that contains a user name"
	}
	addr := effect.ParseAddr(host)
	if !slices.ContainsFunc(g.opts.Hosts, func(p effect.HostPattern) bool { return p.Match(host, addr) }) {
		return fmt.Sprintf("the server asks the user to open %s, which is not in trusted.hosts", canonjson.Quote(host))
	}
	return ""
}

// An askExaminer looks for words for what a server should not ask of a person.
type askExaminer struct{}

func (askExaminer) Examine(s string) (string, []Finding) {
	name := meansSecret(s)
	if name == "" && strings.ContainsFunc(s, unseen) {
		name = "text in invisible characters"
	}
	if name != "" {
		return s, []Finding{{Kind: name}}
	}
	return s, nil
}

// meansSecret returns the name of the rule that a text meets; "" if it meets none.
// Letters of other scripts are folded to Latin ones that look alike, so those count as
// they stand, too.
func meansSecret(s string) string {
	name := met(askedRules[:], asked(), words(s))
	if name == "" {
		name = met(askedRules[:], asked(), strings.ToLower(s))
	}
	return name
}

// words returns the words of a text in lower case, with names such as apiKey and
// api_key cut into theirs.
func words(s string) string {
	var b strings.Builder
	lower := false
	for _, r := range decode.Fold(s) {
		if lower && 'A' <= r && r <= 'Z' {
			b.WriteByte(' ')
		}
		lower = 'a' <= r && r <= 'z'
		if r == '_' || r == '-' || r == '.' || r == '\'' || r == '’' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return folded(b.String())
}

// inputs says why what a result asks the client for is refused; "" if it may be
// asked. The state that comes with it is then bound to the request.
func (g *Gateway) inputs(c *call, result object) string {
	requests := inner(result, "inputRequests")
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		request, _ := requests[name].(object)
		method := text(request, "method")
		if method == "roots/list" {
			continue
		}
		if method != "sampling/createMessage" && method != "elicitation/create" {
			return fmt.Sprintf("the server asks the client for %q, which MCP does not allow here", canonjson.Quote(method))
		}
		if why := g.refuseServerRequest(method, inner(request, "params")); why != "" {
			return why
		}
	}
	g.catalog.keep(c.state(result), slices.Collect(maps.Keys(requests)))
	return ""
}

// state names a state that the server has given: for what it was given, and to whom.
func (c *call) state(o object) string {
	return c.what + digest(canonjson.AppendValue(nil, o["requestState"]))
}

// wasAsked reports whether the server has asked, in answer to the same request of
// the same client, for what a request brings; true if it brings nothing. With use, a
// state is good for no second answer, and of a task, those questions that it leaves
// open can still be answered. Where the server gave no state, it does not tell one
// round from another itself, and the question stays open.
func (g *Gateway) wasAsked(c *call, params object, use bool) bool {
	answers, answered := params["inputResponses"]
	_, given := params["requestState"]
	if !answered && !given {
		return true
	}
	named, ok := answers.(object)
	task := c.method == "tasks/update"
	return (ok || !answered) && g.catalog.answers(c.state(params), slices.Collect(maps.Keys(named)), use && (given || task), task)
}
