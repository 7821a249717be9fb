package evaluate

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/verdict"
)

// resultPrompt is what the evaluator is told when it examines a result. It is
// compiled in, as [systemPrompt] is.
//
//go:embed result.txt
var resultPrompt string

// A result that does not fit into one question is read in parts that overlap, so
// that no sentence is cut. Each part is an evaluation of its own.
const (
	maxParts = 4
	overlap  = 4 << 10 // bytes
)

// Examine asks the model whether what a tool has returned is aimed at the agent
// that is going to read it. kind is the type of the action that it came of. ALLOW
// says that nothing was seen, ESCALATE that there may be something, and BLOCK that
// there is; a BLOCK with an error is a failure, and so is a degraded ALLOW.
// Credentials are taken out of what is sent.
func (e *Evaluator) Examine(ctx context.Context, kind string, result any) verdict.Verdict {
	v := e.examine(ctx, kind, result)
	v.Tier, v.NextTier = 2, 0
	v.PromptHash = promptHash(resultPrompt)
	return v
}

func (e *Evaluator) examine(ctx context.Context, kind string, result any) verdict.Verdict {
	if e.o.Provider == nil {
		v := e.unavailable()
		if v.Decision == verdict.Escalate { // no one is asked about results
			v = failureVerdict(v.Error, v.Reasoning)
		}
		return v
	}
	r := shownResult(result, e.o.Redactor)
	if e.o.CanaryToken != "" && slices.ContainsFunc(r.texts, func(text string) bool { return strings.Contains(text, e.o.CanaryToken) }) {
		return finalBlock("canary", "the result contains the configured canary token; ask the user to change evaluator.canary_token")
	}
	parts := r.parts()
	if len(parts) == 0 {
		return failureVerdict("unexamined", fmt.Sprintf("the result is longer than the %d bytes that the evaluator reads; read it in parts", maxParts*MaxPayload))
	}
	asking, cancel := context.WithTimeout(ctx, e.o.Timeout)
	defer cancel()
	v := verdict.Finding{Who: verdict.NoApproval, Confidence: 1}.Verdict(2)
	for i, part := range parts {
		x := &exchange{question: resultQuestion(kind, part, i, len(parts), e.o.Redactor)}
		one := e.examinePart(asking, ctx, x)
		if one.Decision != verdict.Allow || one.Degraded {
			return one
		}
		if one.Confidence <= v.Confidence {
			v = one
		}
	}
	return afterReading(v, append(r.texts, kind))
}

// examinePart returns what the evaluator says about a part. ctx is the caller's, and
// asking the same with less time.
func (e *Evaluator) examinePart(asking, ctx context.Context, x *exchange) verdict.Verdict {
	if err := e.ask(asking, x); err != nil {
		return e.failure(ctx, err, x.canaries)
	}
	return e.conclude(x)
}

// afterReading takes back an ALLOW that a model which obeys the result would give
// as well, or that it is not sure of.
func afterReading(v verdict.Verdict, texts []string) verdict.Verdict {
	rule := speechIn(texts)
	switch {
	case rule != nil:
		return verdict.Finding{Who: verdict.Person, Confidence: 0.85, Rule: rule.ID,
			Reasoning: fmt.Sprintf("prompt injection: the result contains text addressed to its reviewer (%s); tell the user", rule.Name)}.Verdict(2)
	case v.Confidence < 0.5:
		return verdict.Finding{Who: verdict.Person, Confidence: v.Confidence, Reasoning: "the evaluator is not sure that the result is safe, so ask the user: " + v.Reasoning}.Verdict(2)
	}
	return v
}

// resultQuestion puts part i of n of a quoted result before the evaluator.
func resultQuestion(kind string, part []byte, i, n int, r *redact.Redactor) *question {
	var b strings.Builder
	b.WriteString("Action type: " + quoteType(kind, r) + "\n")
	if n > 1 {
		fmt.Fprintf(&b, "Result, part %d of %d, which overlap: ", i+1, n)
	} else {
		b.WriteString("Result: ")
	}
	b.Write(part)
	b.WriteByte('\n')
	return &question{system: resultPrompt, asks: "Examine what this tool has returned:", text: b.String()}
}

// A resultExcerpt is a result as an evaluator is shown it: without credentials, and
// without what encodes a picture or a sound.
type resultExcerpt struct {
	texts  []string // names of members too
	quoted []byte   // nil if there is too much of it

	redactor *redact.Redactor
	left     int // bytes of text that may follow
}

func shownResult(result any, r *redact.Redactor) resultExcerpt {
	s := resultExcerpt{redactor: r, left: maxParts * (MaxPayload - overlap)}
	q := quoter{limit: s.left}
	value := s.value("", result, 0)
	q.value(value, 0)
	if s.left < 0 || q.overLimit() || bytes.Contains(q.buf, []byte("[redacted unexamined ")) {
		return resultExcerpt{}
	}
	eachText(value, func(text string) bool {
		s.texts = append(s.texts, text)
		return true
	})
	s.quoted = q.buf
	return s
}

// maxResultDepth is how deep a result may be nested.
const maxResultDepth = 128

// value returns a copy of a value as it is shown. The name of a member makes a
// credential of a single word only: a server that calls its orders a password is
// not to hide them.
func (s *resultExcerpt) value(name string, v any, depth int) any {
	if depth > maxResultDepth {
		s.left = -1
	}
	if s.left < 0 {
		return nil
	}
	switch v := v.(type) {
	case string:
		return s.string(name, v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = s.value(name, v[i], depth+1)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			shows := s.string("", k)
			if n := mediaBytes(k, v); n > 0 {
				object[shows] = fmt.Sprintf("[%d bytes of an image or audio file]", n)
			} else {
				object[shows] = s.value(k, v[k], depth+1)
			}
		}
		if len(object) < len(v) { // names that differ in credentials alone
			s.left = -1
		}
		return object
	}
	return v
}

// string returns a text without credentials, read in pieces that a redactor takes.
func (s *resultExcerpt) string(name, text string) string {
	if s.left -= len(text); s.left < 0 {
		return ""
	}
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if strings.ContainsAny(text, " \t\r\n") {
		name = ""
	}
	var b strings.Builder
	for len(text) > MaxPayload {
		piece := redact.Cut(text, MaxPayload)
		if line := strings.LastIndexByte(piece, '\n') + 1; line > 0 {
			piece = piece[:line]
		}
		b.WriteString(s.redactor.Named(name, piece))
		text = text[len(piece):]
	}
	b.WriteString(s.redactor.Named(name, text))
	return b.String()
}

// parts returns what is asked about one after the other.
func (s resultExcerpt) parts() (out [][]byte) {
	rest := s.quoted
	for len(rest) > MaxPayload {
		end := MaxPayload
		for !utf8.RuneStart(rest[end]) {
			end--
		}
		next := end - overlap
		for !utf8.RuneStart(rest[next]) {
			next--
		}
		out, rest = append(out, rest[:end]), rest[next:]
	}
	if len(rest) > 0 {
		out = append(out, rest)
	}
	return out
}

// mediaBytes returns how many bytes of a picture or a sound a member of an object
// holds, as MCP and the interfaces of models have it; 0 for anything else.
func mediaBytes(name string, in map[string]any) int {
	text, isText := in[name].(string)
	if name != "data" && name != "blob" || !isText {
		return 0
	}
	for _, field := range [...]string{"mimeType", "media_type"} {
		kind, _ := in[field].(string)
		if strings.HasPrefix(kind, "image/") || strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/") {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return 0
			}
			return len(b)
		}
	}
	return 0
}
