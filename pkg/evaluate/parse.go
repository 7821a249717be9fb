package evaluate

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/verdict"
)

// maxReply is the greatest length of a model's reply, in bytes. A verdict
// takes some hundred.
const maxReply = 16 << 10

// maxReplyDepth is how deep unknown fields of a reply may nest.
const maxReplyDepth = 8

// errCanary says that a reply does not carry the canary in its field: the
// evaluator did not follow its instructions, and nothing it says counts.
var errCanary = errors.New("canary token missing from evaluator response -- possible evaluator injection")

// A decisionError is a well-formed reply, canary included, with a decision
// that is none of the three.
type decisionError string

func (e decisionError) Error() string { return fmt.Sprintf("unknown decision %.40q", string(e)) }

// An answer is what the evaluator said.
type answer struct {
	decision   verdict.Decision
	confidence float64 // 0.0–1.0
	reasoning  string
}

// replyFields are the fields of a reply. Their order is that of the schema.
var replyFields = [...]string{"decision", "confidence", "reasoning", "canary"}

// parseReply reads a model's reply to a request that carried canary. The
// canary comes first: while it is not found where it belongs, errCanary is
// returned, whatever else is wrong, except that a reply which does contain the
// canary but is no JSON object is a failure to parse.
func parseReply(reply, canary string) (answer, error) {
	fields, err := replyObject(reply)
	if err != nil {
		if !strings.Contains(reply, canary) {
			return answer{}, errCanary
		}
		return answer{}, err
	}
	if got := fields["canary"]; got.Kind() != '"' || !sameCanary(got.String(), canary) {
		return answer{}, errCanary
	}
	return readAnswer(fields)
}

// readAnswer reads the fields of a reply whose canary was right.
func readAnswer(fields map[string]jsontext.Token) (answer, error) {
	var a answer
	for _, name := range replyFields[:3] {
		if _, ok := fields[name]; !ok {
			return a, fmt.Errorf("field %q is missing", name)
		}
	}
	decision, confidence, reasoning := fields["decision"], fields["confidence"], fields["reasoning"]
	switch {
	case decision.Kind() != '"':
		return a, fmt.Errorf("decision: expected a string, found %s", decision.Kind())
	case confidence.Kind() != '0':
		return a, fmt.Errorf("confidence: expected a number, found %s", confidence.Kind())
	case reasoning.Kind() != '"':
		return a, fmt.Errorf("reasoning: expected a string, found %s", reasoning.Kind())
	}
	c, err := strconv.ParseFloat(confidence.String(), 64)
	if err != nil || !(c >= 0 && c <= 1) {
		return a, fmt.Errorf("confidence %.20q is outside 0.0 to 1.0", confidence.String())
	}
	a.confidence = c
	a.reasoning = reasoning.String()
	if err := a.decision.UnmarshalText([]byte(decision.String())); err != nil {
		return a, decisionError(decision.String())
	}
	return a, nil
}

// replyObject reads the one JSON object that a reply must be, code fences
// aside, and returns its scalar fields. Two objects, prose around the object,
// a name given twice, also in another case, and invalid UTF-8 are errors: each
// is a way to make two readers see two verdicts.
func replyObject(reply string) (map[string]jsontext.Token, error) {
	if len(reply) > maxReply {
		return nil, fmt.Errorf("reply of %d bytes, at most %d are read", len(reply), maxReply)
	}
	if !utf8.ValidString(reply) {
		return nil, errors.New("reply is not valid UTF-8")
	}
	text := unfence(reply)
	if text == "" || text[0] != '{' {
		return nil, errors.New("reply is not one JSON object")
	}
	dec := jsontext.NewDecoder(strings.NewReader(text))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	fields := make(map[string]jsontext.Token, len(replyFields))
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, syntax(err)
		}
		if err := readField(dec, name.String(), fields); err != nil {
			return nil, err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, syntax(err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return nil, errors.New("data after the JSON object")
	}
	return fields, nil
}

// readField reads the value of one field, keeping it if it is one of ours.
func readField(dec *jsontext.Decoder, name string, fields map[string]jsontext.Token) error {
	for _, known := range replyFields {
		if name != known && strings.EqualFold(name, known) {
			return fmt.Errorf("field %.40q differs from %q only in case", name, known)
		}
		if name == known {
			token, err := dec.ReadToken()
			if err != nil {
				return syntax(err)
			}
			if k := token.Kind(); k == '{' || k == '[' {
				return fmt.Errorf("%s: expected a plain value, found %s", name, k)
			}
			fields[known] = token.Clone()
			return nil
		}
	}
	for depth := dec.StackDepth(); ; {
		if _, err := dec.ReadToken(); err != nil {
			return syntax(err)
		}
		if dec.StackDepth() == depth {
			return nil
		}
		if dec.StackDepth() > depth+maxReplyDepth {
			return fmt.Errorf("field %.40q nests deeper than %d", name, maxReplyDepth)
		}
	}
}

// syntax takes the library's name off its errors.
func syntax(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("reply ends inside the JSON object")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "jsontext: "))
}

// unfence returns a reply without surrounding space and without the one
// Markdown code fence that models like to put around JSON.
func unfence(reply string) string {
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

// replySchema is the JSON schema of a reply, for providers that can hold a
// model to one. The reasoning comes before the decision, so that a model which
// writes in order decides after it has reasoned.
const replySchema = `{"type":"object","properties":{` +
	`"reasoning":{"type":"string"},` +
	`"decision":{"type":"string","enum":["ALLOW","BLOCK","ESCALATE"]},` +
	`"confidence":{"type":"number"},` +
	`"canary":{"type":"string"}},` +
	`"required":["reasoning","decision","confidence","canary"],"additionalProperties":false}`
