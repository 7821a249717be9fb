package verdict

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// timeFormat is RFC 3339 in UTC, with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z"

// AppendJSON appends the verdict as one line of JSON, without the newline, with the fields in the order of the
// struct. Control characters and invisible characters are escaped, also in Action, whose value stays the same.
//
// A decision other than ALLOW, ESCALATE or BLOCK is written as BLOCK. Action, and the raw JSON in the steps of
// Trail (what each tier said), must be valid JSON.
func (v *Verdict) AppendJSON(dst []byte) []byte {
	return v.append(dst, compactStyle)
}

// MarshalJSON implements [encoding/json.Marshaler].
func (v *Verdict) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// A jsonStyle selects how the parts of a verdict are written.
type jsonStyle struct {
	appendString  func(dst []byte, s string) []byte
	appendRawJSON func(dst, raw []byte) []byte
}

var compactStyle = jsonStyle{appendString: appendJSONString, appendRawJSON: appendCompact}

func (v *Verdict) append(dst []byte, f jsonStyle) []byte {
	dst = append(dst, '{')
	if v.ActionID != "" {
		dst = append(f.appendString(append(dst, `"id":`...), v.ActionID), ',')
	}
	dst = strconv.AppendInt(append(dst, `"line":`...), int64(v.Line), 10)
	dst = append(append(append(dst, `,"decision":"`...), v.Decision.jsonOutputName()...), '"')
	dst = strconv.AppendInt(append(dst, `,"tier":`...), int64(v.Tier), 10)
	dst = appendConfidence(append(dst, `,"confidence":`...), v.Confidence)
	dst = f.appendString(append(dst, `,"reasoning":`...), v.Reasoning)
	dst = f.appendStringUnlessEmpty(dst, `,"rule":`, v.Rule)
	dst = f.appendStringUnlessEmpty(dst, `,"ref":`, v.RefusalRef)
	if v.NextTier != 0 {
		dst = strconv.AppendInt(append(dst, `,"next_tier":`...), int64(v.NextTier), 10)
	}
	if v.IsAllowedDespiteFailure {
		dst = append(dst, `,"degraded":true`...)
	}
	dst = f.appendStringUnlessEmpty(dst, `,"error":`, v.ErrorCode)
	dst = f.appendStringListUnlessEmpty(dst, `,"conditions":`, v.AllowConditions)
	dst = f.appendStringUnlessEmpty(dst, `,"undo":`, v.BackupSetID)
	dst = f.appendStringUnlessEmpty(dst, `,"prompt_hash":`, v.EvaluatorPromptHash)
	dst = f.appendStringUnlessEmpty(dst, `,"action_hash":`, v.ActionHash)
	dst = appendTime(append(dst, `,"evaluated_at":`...), v.JudgedAt)
	dst = appendTime(append(dst, `,"expires_at":`...), v.Expires)
	if len(v.Trail) > 0 {
		dst = append(dst, `,"trail":[`...)
		for i := range v.Trail {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.Trail[i].append(dst, f)
		}
		dst = append(dst, ']')
	}
	dst = f.appendRawJSONUnlessEmpty(dst, `,"action":`, v.Action)
	dst = f.appendStringUnlessEmpty(dst, `,"seal":`, v.Seal)
	return append(dst, '}')
}

func (s *TierStep) append(dst []byte, f jsonStyle) []byte {
	dst = strconv.AppendInt(append(dst, `{"tier":`...), int64(s.Tier), 10)
	dst = f.appendString(append(dst, `,"source":`...), s.JudgeName)
	dst = append(append(append(dst, `,"decision":"`...), s.Decision.jsonOutputName()...), '"')
	dst = appendConfidence(append(dst, `,"confidence":`...), s.Confidence)
	dst = f.appendStringUnlessEmpty(dst, `,"rule":`, s.Rule)
	if s.AllowedPendingHigherTier {
		dst = append(dst, `,"allows":true`...)
	}
	dst = f.appendStringUnlessEmpty(dst, `,"reasoning":`, s.Reasoning)
	dst = f.appendStringUnlessEmpty(dst, `,"error":`, s.ErrorCode)
	if s.LatencyMicroseconds != 0 {
		dst = strconv.AppendInt(append(dst, `,"latency_us":`...), s.LatencyMicroseconds, 10)
	}
	dst = f.appendRawJSONUnlessEmpty(dst, `,"effects":`, s.Effects)
	dst = f.appendRawJSONUnlessEmpty(dst, `,"views":`, s.JudgedActionTextVariants)
	dst = f.appendRawJSONUnlessEmpty(dst, `,"session":`, s.SessionDataForNextProcess)
	return append(dst, '}')
}

func (f jsonStyle) appendStringUnlessEmpty(dst []byte, name, s string) []byte {
	if s == "" {
		return dst
	}
	return f.appendString(append(dst, name...), s)
}

func (f jsonStyle) appendStringListUnlessEmpty(dst []byte, name string, list []string) []byte {
	for i, s := range list {
		if i == 0 {
			dst = append(append(dst, name...), '[')
		} else {
			dst = append(dst, ',')
		}
		dst = f.appendString(dst, s)
	}
	if len(list) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

func (f jsonStyle) appendRawJSONUnlessEmpty(dst []byte, name string, raw []byte) []byte {
	if len(raw) == 0 {
		return dst
	}
	return f.appendRawJSON(append(dst, name...), raw)
}

// jsonOutputName returns the decision's name in the output.
func (d Decision) jsonOutputName() string {
	if d == Allow || d == Escalate {
		return d.String()
	}
	return "BLOCK"
}

// appendTime appends a time in timeFormat. Package time has a fast path only for whole seconds.
func appendTime(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(append(dst, '"'), time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(dst[:len(dst)-len("Z")], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"')
}

// appendConfidence appends a number in its shortest form; NaN and infinities
// become 0.
func appendConfidence(dst []byte, c float64) []byte {
	if math.IsNaN(c) || math.IsInf(c, 0) || c == 0 {
		return append(dst, '0')
	}
	return jsontext.AppendFloat(dst, c, 64)
}

const hexDigits = "0123456789abcdef"

// appendJSONString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < 0x7F {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, rune(c))
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[start:i]...), "\uFFFD"...)
			start = i + size
		case isInvisible(r):
			dst = appendEscape(append(dst, s[start:i]...), r)
			start = i + size
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if r > 0xFFFF {
		r -= 0x10000
		dst = appendEscape(dst, 0xD800+r>>10)
		r = 0xDC00 + r&0x3FF
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// isInvisible reports whether a terminal would interpret r, or display other text because of it: control,
// zero-width and bidirectional characters, line separators, tags.
func isInvisible(r rune) bool {
	switch {
	case r < 0x7F:
		return r < ' '
	case r <= 0x9F, r == 0xAD, r == 0x61C, r == 0x180E, r == 0xFEFF:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x2028 && r <= 0x202E, r >= 0x2060 && r <= 0x206F:
		return true
	default:
		return r >= 0xFFF9 && r <= 0xFFFB || r >= 0xE0000 && r <= 0xE0FFF
	}
}

// appendCompact appends raw, which must be valid JSON, on one line and without white space between tokens.
// Strings and numbers stay unchanged, except that invisible characters are escaped.
func appendCompact(dst, raw []byte) []byte {
	start := 0
	inString := false
	for i := 0; i < len(raw); {
		c := raw[i]
		switch {
		case c >= 0x7F:
			r, size := rune(c), 1
			if c >= utf8.RuneSelf {
				r, size = utf8.DecodeRune(raw[i:])
			}
			if isInvisible(r) {
				dst = appendEscape(append(dst, raw[start:i]...), r)
				start = i + size
			}
			i += size
			continue
		case c == '"':
			inString = !inString
		case c == '\\':
			i++ // an escaped character does not end the string
		case c <= ' ' && !inString:
			dst = append(dst, raw[start:i]...)
			start = i + 1
		}
		i++
	}
	return append(dst, raw[min(start, len(raw)):]...)
}
