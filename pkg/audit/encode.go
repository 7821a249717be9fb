package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/verdict"
)

// encodeJSON returns the entry as one line of JSON without the opening brace, Seq and PreviousLineHash. Fields
// are in the order of the struct. Characters that are invisible or control a terminal are escaped.
func (e *Entry) encodeJSON() []byte {
	room := encodeBuffers.Get().(*[]byte)
	b := (*room)[:0]
	b = append(e.Time.UTC().AppendFormat(append(b, `"time":"`...), time.RFC3339Nano), '"')
	b = appendText(append(b, `,"kind":`...), e.Kind)
	b = appendNonEmptyText(b, `,"id":`, e.ActionID)
	b = appendNumber(b, `,"line":`, int64(e.ActionInputLineNumber))
	b = appendNonEmptyText(b, `,"session":`, e.Session)
	b = appendNonEmptyText(b, `,"type":`, e.ActionType)
	b = appendNonEmptyText(b, `,"cwd":`, e.CWD)
	if e.Decision != verdict.NoDecision {
		b = appendText(append(b, `,"decision":`...), e.Decision.String())
	}
	b = strconv.AppendInt(append(b, `,"tier":`...), int64(e.Tier), 10)
	b = appendConfidence(append(b, `,"confidence":`...), e.Confidence)
	b = appendNonEmptyText(b, `,"rule":`, e.Rule)
	b = appendNonEmptyText(b, `,"reasoning":`, e.Reasoning)
	b = appendNonEmptyText(b, `,"ref":`, e.RefusalRef)
	b = appendJSONMemberIf(b, `,"degraded":true`, e.IsAllowedDespiteFailure)
	b = appendNonEmptyText(b, `,"error":`, e.Error)
	b = appendNonEmptyText(b, `,"action_hash":`, e.ActionHash)
	if e.Payload != nil {
		b, _ = appendValue(append(b, `,"payload":`...), e.Payload) // cannot fail: limitPayloadSize has encoded the payload as JSON
	}
	for i := range e.Trail {
		if i == 0 {
			b = append(b, `,"trail":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendStep(b, &e.Trail[i])
		if i == len(e.Trail)-1 {
			b = append(b, ']')
		}
	}
	b = appendNonEmptyText(b, `,"channel":`, e.AnswerChannel)
	b = appendNonEmptyText(b, `,"by":`, e.AnsweredBy)
	if f := &e.Fingerprints; *f != (PolicyAndModelFingerprints{}) {
		b = appendObject(b, `,"fingerprints":`, func(b []byte) []byte {
			b = appendNonEmptyText(b, `,"policy":`, f.Policy)
			b = appendNonEmptyText(b, `,"rules":`, f.Rules)
			b = appendNonEmptyText(b, `,"model":`, f.Model)
			b = appendNonEmptyText(b, `,"config":`, f.Config)
			return appendNonEmptyText(b, `,"prompt":`, f.Prompt)
		})
	}
	b = strconv.AppendInt(append(b, `,"latency_us":`...), e.VerdictLatencyMicroseconds, 10)
	if c := &e.Caller; *c != (Caller{}) {
		b = appendObject(b, `,"caller":`, func(b []byte) []byte {
			b = appendNonEmptyText(b, `,"command":`, c.ShieldSubcommand)
			b = appendNonEmptyText(b, `,"server":`, c.MCPServerName)
			b = appendNonEmptyText(b, `,"user":`, c.User)
			b = appendNumber(b, `,"pid":`, int64(c.PID))
			return appendNumber(b, `,"parent":`, int64(c.ParentPID))
		})
	}
	if r := e.Recovery; r != nil {
		b = appendObject(b, `,"recovery":`, func(b []byte) []byte {
			b = appendText(append(b, `,"reason":`...), r.Reason)
			b = appendNumber(b, `,"bytes":`, r.RemovedBytes)
			b = appendNonEmptyText(b, `,"sha256":`, r.DamagedDataSHA256)
			if b = appendNonEmptyText(b, `,"file":`, r.MovedLogPath); r.LastIntactSeq != nil {
				b = strconv.AppendUint(append(b, `,"after":`...), *r.LastIntactSeq, 10)
			}
			return b
		})
	}
	b = append(b, '}')
	line := bytes.Clone(b)
	if *room = b; cap(b) <= maxLineBytes { // a large buffer would never be freed
		encodeBuffers.Put(room)
	}
	return line
}

// encodeBuffers are reusable buffers for encoded entries.
var encodeBuffers = sync.Pool{New: func() any { return new([]byte) }}

func appendStep(b []byte, s *verdict.TierStep) []byte {
	b = strconv.AppendInt(append(b, `{"tier":`...), int64(s.Tier), 10)
	b = appendText(append(b, `,"source":`...), s.JudgeName)
	b = appendText(append(b, `,"decision":`...), s.Decision.String())
	b = appendConfidence(append(b, `,"confidence":`...), s.Confidence)
	b = appendNonEmptyText(b, `,"rule":`, s.Rule)
	b = appendJSONMemberIf(b, `,"allows":true`, s.AllowedPendingHigherTier)
	b = appendNonEmptyText(b, `,"reasoning":`, s.Reasoning)
	b = appendNonEmptyText(b, `,"error":`, s.ErrorCode)
	return append(appendNumber(b, `,"latency_us":`, s.LatencyMicroseconds), '}')
}

// appendObject appends an object; members appends each member with a leading comma.
func appendObject(b []byte, name string, members func([]byte) []byte) []byte {
	b = append(b, name...)
	at := len(b)
	b = append(members(b), '}')
	if len(b) == at+1 { // the object has no members
		return append(b[:at], "{}"...)
	}
	b[at] = '{'
	return b
}

func appendNonEmptyText(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendText(append(b, name...), s)
}

func appendNumber(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, name...), n, 10)
}

func appendJSONMemberIf(b []byte, jsonMember string, condition bool) []byte {
	if condition {
		b = append(b, jsonMember...)
	}
	return b
}

// appendConfidence appends a number in its shortest form; NaN and infinity become 0.
func appendConfidence(b []byte, c float64) []byte {
	if math.IsNaN(c) || math.IsInf(c, 0) {
		return append(b, '0')
	}
	return jsontext.AppendFloat(b, c, 64)
}

// appendValue appends a decoded JSON value, fields in the order of their names.
func appendValue(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case string:
		return appendText(b, v), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case jsontext.Value:
		if v.Kind() == '0' { // numbers that were parsed from JSON
			return append(b, v...), nil
		}
	case json.RawMessage: // of [payload]
		return append(b, v...), nil
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, e); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		var few [16]string
		names := few[:0]
		for name := range v {
			names = append(names, name)
		}
		sorted.SortStrings(names)
		b = append(b, '{')
		for i, name := range names {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(append(appendText(b, name), ':'), v[name]); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	}
	out, err := json.Marshal(v)
	return append(b, escapeNonprinting(out)...), err
}

// appendText appends a JSON string with nonprinting characters escaped.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		r, n := rune(c), 1
		if c >= utf8.RuneSelf {
			if r, n = utf8.DecodeRuneInString(s[i:]); !isNonprinting(r, n) {
				i += n
				continue
			}
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = appendEscape(b, r)
		}
		i += n
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// appendEscape appends the JSON escape of a character.
func appendEscape(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	if r > 0xffff {
		r -= 0x10000
		b = appendEscape(b, 0xd800+r>>10)
		r = 0xdc00 + r&0x3ff
	}
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
