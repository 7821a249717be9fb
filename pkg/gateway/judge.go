package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// requestRefusalReason judges a request and returns why it is refused; "" if it is allowed.
func (g *Gateway) requestRefusalReason(ctx context.Context, c *pendingCall, m *message) string {
	p, err := g.proposeAction(ctx, c, m)
	if err != nil {
		return "blocked by shield: " + err.Error()
	}
	if !g.matchAnswersToServerQuestions(c, m.params, false) {
		c.answersUnaskedQuestion = true
		return answerToUnaskedQuestionRefusal
	}
	a, err := action.Parse(p.actionRecord(m.id, g.opts.SessionID))
	if err != nil {
		return "blocked by shield: " + err.Error()
	}
	c.action = a
	if g.opts.Judge == nil {
		return "blocked by shield: internal error: no policy is loaded; run 'shield doctor'"
	}
	v := g.opts.Judge.Evaluate(ctx, a)
	if v.Decision == verdict.Allow && ctx.Err() != nil {
		v.Decision, v.Reasoning = verdict.Block, fmt.Sprintf("no verdict within %v; try again, or run 'shield doctor'", g.opts.JudgeTimeout)
	}
	if err := g.opts.CorpusRowRecorder.writeRow(g.opts.Server.Name, c, a, &v); err != nil && v.Decision == verdict.Allow {
		v.Decision, v.Reasoning = verdict.Block, "the file of --record cannot be written (check its folder): "+err.Error()
	}
	if v.Decision != verdict.Allow {
		return "blocked by shield: " + v.Reasoning
	}
	if !g.matchAnswersToServerQuestions(c, m.params, true) { // another request has answered the question meanwhile
		c.answersUnaskedQuestion = true
		return answerToUnaskedQuestionRefusal
	}
	return ""
}

// answerToUnaskedQuestionRefusal is the refusal of a request that answers a question which the server did not ask, or which
// was already answered.
const answerToUnaskedQuestionRefusal = "blocked by shield: the call contains an answer to a question that the server did not ask; call the tool without it"

// A proposedAction is the action that a request would perform.
type proposedAction struct {
	actionType       string // action type
	payload          object
	cwd              string
	minJudgementTier int
}

// actionRecord returns the proposal as the JSON record of an action.
func (p *proposedAction) actionRecord(id []byte, session string) []byte {
	rec := object{"type": p.actionType, "payload": p.payload, "id": strings.Trim(string(id), `"`)}
	if p.cwd != "" {
		rec["cwd"] = p.cwd
	}
	if session != "" {
		rec["session"] = session
	}
	b := canonjson.AppendValue(nil, rec)
	if p.minJudgementTier > 0 {
		b = fmt.Appendf(b[:len(b)-1], `,"min_tier":%d}`, p.minJudgementTier)
	}
	return b
}

// proposeAction returns the action that a request would perform. It stores in c the tool, prompt,
// resource or task that the request names.
func (g *Gateway) proposeAction(ctx context.Context, c *pendingCall, m *message) (*proposedAction, error) {
	if err := checkParameterNamesAllowed(m); err != nil {
		return nil, err
	}
	arguments := object{}
	if v, given := m.params["arguments"]; given {
		var ok bool
		if arguments, ok = v.(object); !ok {
			return nil, errors.New("arguments: the value is not a JSON object; send an object")
		}
	}
	p := &proposedAction{cwd: g.opts.WorkingDir}
	switch m.method {
	case "tools/call":
		c.requestTarget = stringMember(m.params, "name")
		g.loadToolList(ctx, c.route, m.params)
		t, kind, why := g.callableTool(c.requestTarget)
		if why != "" {
			return nil, errors.New(why)
		}
		c.hasOutputSchema = t.parsedDefinition["outputSchema"] != nil
		if why := schemaViolation(objectMember(t.parsedDefinition, "inputSchema"), arguments); why != "" {
			return nil, errors.New(why)
		}
		if err := g.fillActionFromToolCall(p, t, kind, arguments); err != nil {
			return nil, err
		}
	case "resources/read", "resources/subscribe":
		c.requestTarget = stringMember(m.params, "uri")
		if err := setResourceReadAction(p, c.requestTarget); err != nil {
			return nil, err
		}
	case "prompts/get":
		c.requestTarget = stringMember(m.params, "name")
		p.actionType = g.serverSpecificActionType("get_prompt")
		p.payload = object{"prompt": c.requestTarget, "arguments": arguments}
	case "completion/complete":
		c.requestTarget = stringMember(objectMember(m.params, "ref"), "name") + stringMember(objectMember(m.params, "ref"), "uri")
		p.actionType = g.serverSpecificActionType("suggest_completion")
		p.payload = object{"argument": m.params["argument"], "context": m.params["context"]}
	case "tasks/get", "tasks/result", "tasks/update":
		c.requestTarget = stringMember(m.params, "taskId")
		p.actionType = g.serverSpecificActionType("get_task")
		p.payload = object{"task": c.requestTarget, "answers": m.params["inputResponses"]}
		c.hasOutputSchema = true // the results are those of a tool with an output schema
	default:
		return nil, fmt.Errorf("shield cannot judge the method %s; do not use it", m.method)
	}
	if c.requestTarget == "" {
		return nil, fmt.Errorf("the request %s has no name, URI or task; set one", m.method)
	}
	about := m.method
	if strings.HasPrefix(about, "tasks/") { // the same digest for all task methods: tasks/update answers questions from results of the others
		about = "tasks"
	}
	c.requestDigest = hashParts(about, g.opts.SessionID, c.requestTarget, canonjson.AppendValue(nil, arguments))
	return p, nil
}

// allowedParameterNamesByMethod are the parameters that judged requests can have. Unknown parameters are refused, since they
// were not judged.
var allowedParameterNamesByMethod = map[string][]string{
	"tools/call":          {"name", "arguments", "_meta", "task", "inputResponses", "requestState"},
	"resources/read":      {"uri", "_meta", "inputResponses", "requestState"},
	"resources/subscribe": {"uri", "_meta"},
	"prompts/get":         {"name", "arguments", "_meta", "inputResponses", "requestState"},
	"completion/complete": {"ref", "argument", "context", "_meta"},
	"tasks/get":           {"taskId", "_meta"},
	"tasks/result":        {"taskId", "_meta"},
	"tasks/update":        {"taskId", "_meta", "inputResponses", "requestState"},
}

func checkParameterNamesAllowed(m *message) error {
	for _, name := range sorted.Keys(m.params) {
		if !slices.Contains(allowedParameterNamesByMethod[m.method], name) {
			return fmt.Errorf("%s has no parameter %q; leave it out", m.method, canonjson.Quote(name))
		}
	}
	return nil
}

// serverSpecificActionType returns the action type for a tool or resource that only this server has.
func (g *Gateway) serverSpecificActionType(toolOrResourceName string) string {
	return "mcp__" + g.opts.Server.Name + "__" + toolOrResourceName
}

// setResourceReadAction fills in the action of reading a URI. A custom scheme names a server's own object or a
// file: its path is judged as a file, so that protected files stay protected.
func setResourceReadAction(p *proposedAction, uri string) error {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" {
		return errors.New("uri: expected a URL with a scheme, such as https://HOST/PATH")
	}
	switch u.Scheme {
	case "http", "https":
		p.actionType, p.payload = "http_request", object{"url": uri, "method": "GET"}
		return nil
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return errors.New("uri: the file URL names another machine; use file:///PATH")
		}
	}
	path := u.Path
	switch {
	case u.Opaque != "":
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return errors.New("uri: the URL is not valid; correct it")
		}
	case u.Scheme != "file":
		path = u.Host + path
	}
	rest, err := url.PathUnescape(u.RawQuery + "#" + u.Fragment)
	switch {
	case err != nil || strings.ContainsRune(path, 0):
		return errors.New("uri: the URL is not valid; correct it")
	case strings.Contains(rest, ".."): // a server can interpret it as a path
		return errors.New("uri: the URL contains .. after ? or #; write it without")
	case path == "":
		path = "."
	}
	p.actionType, p.payload = "read_file", object{"path": path, "resource": uri}
	return nil
}

// hashParts returns a SHA-256 over some texts, each prefixed with its length.
func hashParts(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			fmt.Fprintf(h, "%d:%s", len(p), p)
		case []byte:
			fmt.Fprintf(h, "%d:%s", len(p), p)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
