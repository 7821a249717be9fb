package gateway

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
)

// serverRequestRefusalReason returns why a server request to the client is refused; "" if it is allowed.
// Sampling needs the user's permission; elicitation must not ask for secrets or for following a link
// to an untrusted host.
func (g *Gateway) serverRequestRefusalReason(method string, params object) string {
	g.mu.Lock()
	g.serverQuestionCount++
	over := g.serverQuestionCount > maxQuestionsFromServer
	g.mu.Unlock()
	if over {
		return fmt.Sprintf("the server sent more than %d requests to the user or the model on this connection; reconnect", maxQuestionsFromServer)
	}
	if method == "sampling/createMessage" {
		if !g.opts.AllowsSampling {
			return "the settings do not let servers use the client's model; to allow it, set mcp.sampling: allow"
		}
		return ""
	}
	if address, isLink := params["url"]; isLink || params["mode"] == "url" {
		address, _ := address.(string)
		return g.elicitationURLRefusalReason(address)
	}
	w := textWalker{examiner: secretRequestExaminer{}}
	w.examineValue("", "", nil, object{"message": params["message"], "requestedSchema": params["requestedSchema"]})
	if len(w.findings) > 0 {
		return "the server asks the user for a secret (" + w.findings[0].Kind + "); put the secret into the server's own settings"
	}
	return ""
}

// errorResponseRefusalReason returns why an error response is refused. Such a response asks the user to open
// links before the call can work. The result is "" if the links are allowed, or there are none.
func (g *Gateway) errorResponseRefusalReason(responseError object) string {
	all, _ := objectMember(responseError, "data")["elicitations"].([]any)
	for _, one := range all {
		params, _ := one.(object)
		if why := g.serverRequestRefusalReason("elicitation/create", params); why != "" {
			return why
		}
	}
	return ""
}

// elicitationURLRefusalReason returns why a server may not ask the user to open an address; "" if it may.
func (g *Gateway) elicitationURLRefusalReason(address string) string {
	canonical, host := effect.NormalizeURL(address)
	u, err := url.Parse(canonical)
	switch {
	case host == "" || err != nil:
		return "the server asks the user to open an invalid URL; update the server"
	case u.Scheme != "https":
		return "the server asks the user to open a URL without https; open it by hand if you trust it"
	case u.User != nil:
		return "the server asks the user to open a URL that contains a user name; open the site by hand"
	}
	addr := effect.ParseAddr(host)
	if !slices.ContainsFunc(g.opts.TrustedElicitationURLHosts, func(p effect.HostPattern) bool { return p.Match(host, addr) }) {
		return fmt.Sprintf("the server asks the user to open %s, which is not in trusted.hosts; add it there if you trust it", canonjson.Quote(host))
	}
	return ""
}

// A secretRequestExaminer looks for names of things that a server should not ask a person for, such as
// passwords.
type secretRequestExaminer struct{}

func (secretRequestExaminer) CleanTextAndFindings(s string) (string, []TextFinding) {
	name := requestedSecretKind(s)
	if name == "" && strings.ContainsFunc(s, isInvisible) {
		name = "text in invisible characters"
	}
	if name != "" {
		return s, []TextFinding{{Kind: name}}
	}
	return s, nil
}

// requestedSecretKind returns the kind of secret that a text asks for, for example "a password, key or token": the
// name of the first rule that matches the text; "" if none does. The text is matched with and without folding
// look-alike letters to Latin, since rules can contain letters of other scripts.
func requestedSecretKind(s string) string {
	name := matchedRuleName(askedRules[:], secretRequestPatterns(), normalizeWords(s))
	if name == "" {
		name = matchedRuleName(askedRules[:], secretRequestPatterns(), strings.ToLower(s))
	}
	return name
}

// normalizeWords returns the words of a text in lower case, with apiKey and api_key split into two words.
func normalizeWords(s string) string {
	var b strings.Builder
	lower := false
	for _, r := range decode.FoldUnicodeLookalikes(s) {
		if lower && 'A' <= r && r <= 'Z' {
			b.WriteByte(' ')
		}
		lower = 'a' <= r && r <= 'z'
		if r == '_' || r == '-' || r == '.' || r == '\'' || r == '’' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return normalizeTextForMatching(b.String())
}

// inputRequestsRefusalReason returns why the member inputRequests of a server's result is refused. It
// contains requests to the client, its model or its user. If the client may answer all of them, the reason is
// "", and their names are stored with the result's requestState.
func (g *Gateway) inputRequestsRefusalReason(c *pendingCall, result object) string {
	requests := objectMember(result, "inputRequests")
	for _, name := range sorted.Keys(requests) {
		request, _ := requests[name].(object)
		method := stringMember(request, "method")
		if method == "roots/list" {
			continue
		}
		if method != "sampling/createMessage" && method != "elicitation/create" {
			return fmt.Sprintf("the server asks the client for %q, which MCP does not allow here; update the server", canonjson.Quote(method))
		}
		if why := g.serverRequestRefusalReason(method, objectMember(request, "params")); why != "" {
			return why
		}
	}
	g.sharedState.storeUnansweredServerQuestions(c.requestStateKey(result), slices.Collect(maps.Keys(requests)))
	return ""
}

// requestStateKey returns the key for a requestState: it binds the state to the call for which the server sent
// it.
func (c *pendingCall) requestStateKey(paramsOrResult object) string {
	return c.requestDigest + hashParts(canonjson.AppendValue(nil, paramsOrResult["requestState"]))
}

// matchAnswersToServerQuestions reports whether the answers in a request belong to questions of the server. The server
// must have asked in a result for the same request of the same client, with the same requestState. It also
// returns true for a request that has neither answers nor a requestState.
//
// If removeAnswered is true, the questions are deleted, so that they can be answered only once. For
// tasks/update, only the questions that the request answers are deleted. For other methods, all questions with
// this requestState are deleted; without a requestState none are, because repeated answers cannot be
// distinguished.
func (g *Gateway) matchAnswersToServerQuestions(c *pendingCall, params object, removeAnswered bool) bool {
	answers, answered := params["inputResponses"]
	_, given := params["requestState"]
	if !answered && !given {
		return true
	}
	named, ok := answers.(object)
	task := c.method == "tasks/update"
	return (ok || !answered) && g.sharedState.matchUnansweredQuestions(c.requestStateKey(params), slices.Collect(maps.Keys(named)), removeAnswered && (given || task), task)
}
