package evaluate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/pkg/verdict"
)

// maxReplyBytes is the maximum length of a model's reply, in bytes. A verdict needs a few hundred.
const maxReplyBytes = 16 << 10

// maxReplyDepth is the maximum nesting of a reply; a good reply has one level.
const maxReplyDepth = 4

// These errors make the evaluator itself untrustworthy: it did not follow its instructions, so its whole
// reply is ignored.
var (
	errCanaryMissing = errors.New("canary token missing from evaluator response -- possible evaluator injection; do not retry, and tell the user")
	errCanaryLeaked  = errors.New("canary token in the wrong field of evaluator response -- possible evaluator injection; do not retry, and tell the user")
)

// An unknownDecisionError is the error for a well-formed reply that has the right canary, but a decision that
// shield does not know. Its value is this decision.
type unknownDecisionError string

func (e unknownDecisionError) Error() string { return fmt.Sprintf("unknown decision %.40q", string(e)) }

// An answer is the evaluator's parsed reply.
type answer struct {
	decision   verdict.Decision
	confidence float64 // 0.0–1.0
	reasoning  string
}

// replyFields are the fields of a reply: all are required, in any order, and no others are accepted.
var replyFields = [...]string{"reasoning", "decision", "confidence", "canary"}

// parseReply parses a model's reply to a request with a canary. A reply that is not a JSON object
// gives a parse error if it contains the canary, and errCanaryMissing if it does not. An object without
// the canary in its canary field gives errCanaryMissing. If another field contains the canary, or that of
// an older attempt, in any spelling, the error is errCanaryLeaked.
func parseReply(reply, canary string, olderCanaries ...string) (answer, error) {
	fields, err := replyObject(reply)
	if err != nil {
		if !strings.Contains(withoutThoughts(reply), canary) {
			return answer{}, errCanaryMissing
		}
		return answer{}, err
	}
	if got, ok := fields["canary"].(string); !ok || !sameCanary(got, canary) {
		return answer{}, errCanaryMissing
	}
	for name, value := range fields {
		text, ok := value.(string)
		if ok && name != "canary" && slices.ContainsFunc(append(olderCanaries, canary), func(c string) bool { return containsCanaryInAnyForm(text, c) }) {
			return answer{}, errCanaryLeaked
		}
	}
	return readAnswer(fields)
}

// readAnswer parses the fields of a reply whose canary is right.
func readAnswer(fields map[string]any) (answer, error) {
	var a answer
	for name := range fields {
		if !slices.Contains(replyFields[:], name) {
			return a, fmt.Errorf("unknown field %q", canonjson.Quote(name))
		}
	}
	for _, name := range replyFields {
		if _, ok := fields[name]; !ok {
			return a, fmt.Errorf("the model's reply lacks the field %q", name)
		}
	}
	decision, ok := fields["decision"].(string)
	if !ok {
		return a, errors.New("the decision in the model's reply is not a string")
	}
	number, ok := fields["confidence"].(jsontext.Value)
	if !ok {
		return a, errors.New("the confidence in the model's reply is not a number")
	}
	if a.reasoning, ok = fields["reasoning"].(string); !ok {
		return a, errors.New("the reasoning in the model's reply is not a string")
	}
	c, err := strconv.ParseFloat(string(number), 64)
	if err != nil || !(c >= 0 && c <= 1) {
		return a, fmt.Errorf("the model's confidence %.20q is outside 0.0 to 1.0", string(number))
	}
	a.confidence = c
	if err := a.decision.UnmarshalText(upperASCII(decision)); err != nil {
		return a, unknownDecisionError(decision)
	}
	return a, nil
}

// upperASCII returns a decision with its ASCII letters in upper case.
func upperASCII(decision string) []byte {
	b := []byte(decision)
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return b
}

// replyObject parses the single JSON object that a reply must be, apart from a code fence. Two objects, text
// around the object, a duplicate name, even in another case, and invalid UTF-8 are errors: each could make
// two parsers see different verdicts.
func replyObject(reply string) (map[string]any, error) {
	reply = withoutThoughts(reply)
	if len(reply) > maxReplyBytes {
		return nil, fmt.Errorf("the model's reply has %d bytes, more than the limit of %d", len(reply), maxReplyBytes)
	}
	value, err := canonjson.ParseValue([]byte(withoutCodeFence(reply)), maxReplyDepth)
	if err != nil {
		return nil, fmt.Errorf("the model's reply is not one well-formed JSON object: %w", err)
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the model's reply is JSON, but not an object")
	}
	return fields, nil
}

// withoutThoughts returns the text after the thoughts that reasoning models write before an answer: only text
// after the last end marker counts.
func withoutThoughts(reply string) string {
	const end = "</think>"
	if i := strings.LastIndex(reply, end); i >= 0 {
		return reply[i+len(end):]
	}
	return reply
}

// withoutCodeFence removes surrounding space and one Markdown code fence, which models like to put around
// JSON.
func withoutCodeFence(reply string) string {
	text := strings.TrimSpace(reply)
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	inner, ok = strings.CutSuffix(inner, "```")
	if !ok {
		return text
	}
	first, rest, ok := strings.Cut(inner, "\n")
	if lang := strings.TrimSpace(first); ok && (lang == "" || strings.EqualFold(lang, "json")) {
		return strings.TrimSpace(rest)
	}
	return text
}

// replySchema is the JSON schema of a reply, for providers that can enforce one. The reasoning precedes the
// decision, so that the model reasons before it decides.
const replySchema = `{"type":"object","properties":{` +
	`"reasoning":{"type":"string"},` +
	`"decision":{"type":"string","enum":["ALLOW","BLOCK","ESCALATE"]},` +
	`"confidence":{"type":"number"},` +
	`"canary":{"type":"string"}},` +
	`"required":["reasoning","decision","confidence","canary"],"additionalProperties":false}`
