package gateway

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/canonjson"
)

// maxFrameJSONDepth is the maximum nesting of a frame, including the envelope.
const maxFrameJSONDepth = 64

// A message is a frame parsed as JSON-RPC: a request has an id and a method, a notification a method,
// a response an id and a result or an error.
type message struct {
	raw      []byte
	id       []byte // in canonical form
	method   string
	params   object
	result   any // the result in a response; nil if the response is an error
	rpcError object
	members  []canonjson.Member // members of the top-level JSON object
}

type object = map[string]any

func (m *message) isRequest() bool             { return m.method != "" && m.id != nil }
func (m *message) isJSONRPCNotification() bool { return m.method != "" && m.id == nil }

// errBatchMessage is the error for a JSON-RPC batch, which MCP does not allow.
var errBatchMessage = errors.New("the message is a batch, which MCP does not allow; send single messages")

// errLineBreak is the error for a message with a line break: some readers treat a carriage return as a
// line end, and the rest as a separate message.
var errLineBreak = errors.New("the message contains a line break; send it in one line")

// parseMessage parses a frame strictly: it rejects JSON that two parsers could interpret differently (such as
// duplicate keys), and members that JSON-RPC does not define.
func parseMessage(raw []byte) (*message, error) {
	if bytes.HasPrefix(bytes.TrimLeft(raw, " \t"), []byte("[")) {
		return nil, errBatchMessage
	}
	if bytes.ContainsAny(raw, "\r\n") {
		return nil, errLineBreak
	}
	m := &message{raw: raw}
	var err error
	if m.members, err = canonjson.ParseObjectMembers(nil, raw, maxFrameJSONDepth); err != nil {
		var e *canonjson.Error
		if errors.As(err, &e) && e.Field != "" && e.Kind != canonjson.ErrorKindTooDeep {
			return nil, fmt.Errorf("%s: %w", e.Field, err)
		}
		return nil, err
	}
	var version, hasResult, hasParams bool
	for _, member := range m.members {
		ok := true
		switch member.Name {
		case "jsonrpc":
			version = member.Value == "2.0"
			ok = version
		case "id":
			m.id = canonicalID(member.Raw)
			ok = m.id != nil || member.Value == nil
		case "method":
			m.method, ok = member.Value.(string)
			ok = ok && m.method != "" && len(m.method) <= 256
		case "params":
			m.params, ok = member.Value.(object)
			hasParams = true
		case "result":
			m.result, hasResult = member.Value, true
		case "error":
			m.rpcError, ok = member.Value.(object)
		default:
			return nil, fmt.Errorf("the JSON-RPC message has the unknown member %q", canonjson.Quote(member.Name))
		}
		if !ok {
			return nil, fmt.Errorf("the member %s has a value that JSON-RPC 2.0 does not allow", member.Name)
		}
	}
	answer := hasResult || m.rpcError != nil
	switch {
	case !version:
		return nil, errors.New(`"jsonrpc": "2.0" is missing`)
	case hasResult && m.rpcError != nil, answer && (m.method != "" || hasParams), !answer && m.method == "":
		return nil, errors.New("the message is neither a request nor an answer")
	case answer && m.id == nil && m.rpcError == nil:
		return nil, errors.New("the answer has no id")
	}
	return m, nil
}

// canonicalID returns a request id in canonical form: a quoted string or a whole number; nil for
// anything else.
func canonicalID(raw []byte) []byte {
	if len(raw) == 0 || len(raw) > maxRequestIDBytes || raw[0] != '"' && raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return nil
	}
	id, err := canonjson.Append(nil, raw, 1)
	if err != nil || id[0] != '"' && bytes.ContainsAny(id, ".eE") {
		return nil
	}
	return id
}

// stringMember returns the string of a member, or "".
func stringMember(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

// objectMember returns the value of an object's member if the value is an object; otherwise nil.
func objectMember(o object, name string) object {
	v, _ := o[name].(object)
	return v
}

// Error codes of JSON-RPC and MCP.
const (
	codeInvalidRequest = -32600
	codeUnknownMethod  = -32601
	codeInvalidParams  = -32602
	codeInternalError  = -32603 // the method exists and failed
)

// errorResponse returns an error as the answer to a request; id may be nil.
func errorResponse(id []byte, code int, reason string) []byte {
	if id == nil {
		id = []byte("null")
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = fmt.Appendf(b, `,"error":{"code":%d,"message":`, code)
	return append(canonjson.AppendString(b, reason), `}}`...)
}

// resultResponse returns a result as the answer to a request.
func resultResponse(id []byte, result any) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(b, `,"result":`...)
	return append(canonjson.AppendValue(b, result), '}')
}

// toolErrorResult returns a tool result that says why the tool did not run. The model can read it, unlike a
// protocol error.
func toolErrorResult(reason string, includesResultTypeMember bool) object {
	out := object{"content": []any{object{"type": "text", "text": reason}}, "isError": true}
	if includesResultTypeMember {
		out["resultType"] = "complete"
	}
	return out
}

// arrayElements returns the JSON text of each element of an array.
func arrayElements(raw []byte) ([][]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var out [][]byte
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		out = append(out, bytes.Clone(v))
	}
	return out, nil
}
