package action

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/canonjson"
)

// MaxJSONNestingDepth is the maximum number of nesting levels of a record, counting the
// record itself.
const MaxJSONNestingDepth = 64

// Maximum lengths of the fields other than the payload, in bytes.
const (
	maxTypeBytes = 256
	maxIDBytes   = 1024 // also the limit for the session ID
	maxCWDBytes  = 4096
)

// Parse parses one record. Its errors have type [*Error]. The Action keeps raw, which the caller must not
// change afterwards.
//
// For a record with a top-level key decision or seal, in any case, the error is [VerdictFieldInAction]. Other unknown
// keys are ignored.
func Parse(raw []byte) (*Action, error) {
	var few [8]canonjson.Member
	members, err := canonjson.ParseObjectMembers(few[:0], raw, MaxJSONNestingDepth)
	if err != nil {
		return nil, convertJSONError(err)
	}
	return FromMembers(raw, members)
}

// FromMembers is like [Parse] for a record whose members are already parsed.
func FromMembers(raw []byte, members []canonjson.Member) (*Action, error) {
	a := &Action{Raw: raw}
	var payload, kind any // as received
	hasPayload, hasType := false, false
	for _, m := range members {
		if strings.EqualFold(m.Name, "decision") || strings.EqualFold(m.Name, "seal") {
			return nil, &Error{Code: VerdictFieldInAction, Field: canonjson.Quote(m.Name), Err: errors.New("an action must not have this field; remove it")}
		}
	}
	for _, m := range members {
		var err error
		switch m.Name {
		case "type":
			kind, hasType = m.Value, true
			a.Type, err = memberText(m, maxTypeBytes)
			if err == nil && strings.TrimSpace(a.Type) == "" {
				err = invalidValueError("type", "empty")
			}
		case "payload":
			payload, hasPayload = m.Value, true
			var ok bool
			if a.Payload, ok = m.Value.(map[string]any); !ok {
				err = wrongTypeError("payload", "an object", m.Value)
			}
		case "id":
			a.ID, err = memberText(m, maxIDBytes)
		case "session":
			a.Session, err = memberText(m, maxIDBytes)
		case "cwd":
			a.CWD, err = memberText(m, maxCWDBytes)
			if err == nil && !isAbsolute(a.CWD) {
				err = invalidValueError("cwd", "expected an absolute path; write it in full")
			}
		case "min_tier":
			a.MinAllowTier, err = parseMinTier(m.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case !hasType:
		return nil, missingFieldError("type")
	case !hasPayload:
		return nil, missingFieldError("payload")
	}
	a.setHash(members, payload, kind)
	if err := a.canonicalizeTypeAndFields(); err != nil {
		return nil, err
	}
	if err := a.checkNUL(); err != nil {
		return nil, err
	}
	return a, nil
}

var hashBuffers = sync.Pool{New: func() any { return new([]byte) }}

// maxCanonicalizedRecordBytes is the maximum length of a record whose canonical form is stored: the memory for waiting
// actions is limited by the bytes of their records.
const maxCanonicalizedRecordBytes = 64 << 10

// setHash sets the action's hash, over the canonical JSON of type and payload, and stores the canonical form of
// the whole record, which contains the payload's.
func (a *Action) setHash(members []canonjson.Member, payload, actionType any) {
	buf := hashBuffers.Get().(*[]byte)
	b := append((*buf)[:0], `{"payload":`...)
	start := len(b)
	b = canonjson.AppendValue(b, payload)
	end := len(b)
	b = append(canonjson.AppendValue(append(b, `,"type":`...), actionType), '}')
	sum := sha256.Sum256(b)
	const prefix = "sha256:"
	var out [len(prefix) + 2*sha256.Size]byte
	copy(out[:], prefix)
	hex.Encode(out[len(prefix):], sum[:])
	a.TypeAndPayloadHash = string(out[:])
	if len(a.Raw) <= maxCanonicalizedRecordBytes {
		var few [8]canonjson.Member
		sorted := append(few[:0], members...)
		for i := range sorted {
			if sorted[i].Name == "payload" {
				sorted[i].Value = canonjson.Canonical(b[start:end])
			}
		}
		a.canonical = canonjson.AppendObject(make([]byte, 0, len(a.Raw)+16), sorted)
	}
	if *buf = b; cap(b) <= maxCanonicalizedRecordBytes { // do not keep a large buffer in the pool
		hashBuffers.Put(buf)
	}
}

func memberText(m canonjson.Member, limit int) (string, error) {
	s, ok := m.Value.(string)
	switch {
	case !ok:
		return "", wrongTypeError(m.Name, "a string", m.Value)
	case len(s) > limit:
		return "", &Error{Code: TooLarge, Field: m.Name, Err: fmt.Errorf("the value is longer than %d bytes; shorten it", limit)}
	case m.Name != "id" && strings.IndexByte(s, 0) >= 0:
		return "", invalidValueError(m.Name, "the value contains a NUL byte; remove it")
	}
	return s, nil
}

func parseMinTier(v any) (int, error) {
	lit, ok := v.(jsontext.Value)
	if !ok {
		return 0, wrongTypeError("min_tier", "a number", v)
	}
	var few [24]byte
	if s := canonjson.AppendValue(few[:0], lit); len(s) == 1 && s[0] >= '0' && s[0] <= '3' {
		return int(s[0] - '0'), nil
	}
	return 0, invalidValueError("min_tier", "expected 0, 1, 2 or 3")
}

// isAbsolute reports whether a path is absolute on any operating system: the agent may run on another one.
func isAbsolute(path string) bool {
	if path == "" {
		return false
	}
	if path[0] == '/' || strings.HasPrefix(path, `\\`) {
		return true
	}
	letter := path[0] | 0x20
	return len(path) >= 3 && 'a' <= letter && letter <= 'z' && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}

// convertJSONError converts an error of canonjson into an [*Error].
func convertJSONError(err error) error {
	var e *canonjson.Error
	if !errors.As(err, &e) {
		return &Error{Code: InvalidJSON, Err: err}
	}
	out := &Error{Code: InvalidJSON, Field: e.Field, Err: e.Err}
	switch e.Kind {
	case canonjson.ErrorKindSyntax:
	case canonjson.ErrorKindInvalidUTF8:
		out.Code = InvalidUTF8
	case canonjson.ErrorKindUnpairedSurrogate:
		out.Code = LoneSurrogate
	case canonjson.ErrorKindDuplicateName:
		out.Code = DuplicateKey
	case canonjson.ErrorKindTooDeep:
		out.Code = TooDeep
		out.Field = "" // a path of sixty names is no help in a message
	case canonjson.ErrorKindNotObject:
		out.Code = WrongType
	}
	return out
}

func missingFieldError(field string) error {
	return &Error{Code: MissingField, Field: field, Err: errors.New("missing")}
}

func invalidValueError(field, why string) error {
	return &Error{Code: InvalidValue, Field: field, Err: errors.New(why)}
}

func wrongTypeError(field, want string, got any) error {
	return &Error{Code: WrongType, Field: field, Err: fmt.Errorf("expected %s, found %s", want, jsonKind(got))}
}

func jsonKind(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case jsontext.Value:
		return "a number"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	default:
		return "null"
	}
}
