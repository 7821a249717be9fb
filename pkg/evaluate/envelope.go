package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/canonjson"
)

// maxResponseJSONDepth is the maximum nesting of a response. Log probabilities have the deepest nesting in use.
const maxResponseJSONDepth = 16

// extractChatCompletionText returns the text of the single answer in the body of a chat completion response. Keys must be
// spelled exactly as documented, and a duplicate key, even in another case, is an error at any level: lax and
// strict parsers would read different values. Additional data (usage, timings, the model's reasoning) is
// ignored. It returns an error if anything says that the answer is not valid: an error, a refusal, a tool
// call, or a finish reason other than completion.
func extractChatCompletionText(contentType string, body []byte) (string, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return "", fmt.Errorf("the response has the type %.60q instead of application/json; check evaluator.base_url", contentType)
	}
	value, err := canonjson.ParseValue(body, maxResponseJSONDepth)
	if err != nil {
		return "", fmt.Errorf("the response is not one well-formed JSON object: %w", err)
	}
	response, ok := value.(map[string]any)
	if !ok {
		return "", errors.New("the response is not one JSON object")
	}
	if err := checkResponseHasNoError(response); err != nil {
		return "", err
	}
	choices, ok := response["choices"].([]any)
	if !ok {
		return "", errors.New("the response has no list of choices")
	}
	if len(choices) != 1 {
		return "", fmt.Errorf("the response has %d choices instead of 1", len(choices))
	}
	choice, ok := choices[0].(map[string]any)
	if !ok {
		return "", errors.New("the response has a choice that is not an object")
	}
	if err := checkResponseHasNoError(choice); err != nil {
		return "", err
	}
	message, ok := choice["message"].(map[string]any)
	if !ok {
		return "", errors.New("the response has a choice without a message")
	}
	if err := checkResponseHasNoError(message); err != nil {
		return "", err
	}
	text, err := readChoice(choice, message)
	if err != nil {
		return "", answerFormatError{err}
	}
	return text, nil
}

// An answerFormatError says that the model answered in the wrong form: its answer is truncated or is not text.
type answerFormatError struct{ error }

// readChoice returns the text of a choice, or an error if it is not an answer.
func readChoice(choice, message map[string]any) (string, error) {
	if reason, ok := choice["finish_reason"].(string); !ok || reason != "stop" {
		return "", fmt.Errorf("the answer ended with %s, expected \"stop\"", describeJSONValueForError(choice["finish_reason"]))
	}
	if role, ok := message["role"].(string); !ok || role != "assistant" {
		return "", fmt.Errorf("the answer's role is %s, expected \"assistant\"", describeJSONValueForError(message["role"]))
	}
	for _, other := range [...]struct{ field, what string }{
		{"refusal", "the model refused to answer; ask the user, or use another model"},
		{"tool_calls", "the model called a tool instead of answering; use another model (evaluator.model)"},
		{"function_call", "the model called a function instead of answering; use another model (evaluator.model)"},
	} {
		if !isNilOrEmpty(message[other.field]) {
			return "", errors.New(other.what)
		}
	}
	text, ok := message["content"].(string)
	if !ok {
		return "", errors.New("the content of the model's answer is not a string")
	}
	return text, nil
}

// checkResponseHasNoError returns an error if an object has an error beside its content.
func checkResponseHasNoError(response map[string]any) error {
	if isNilOrEmpty(response["error"]) {
		return nil
	}
	said, _ := response["error"].(string)
	if object, ok := response["error"].(map[string]any); ok {
		said, _ = object["message"].(string)
	}
	if said == "" {
		return errors.New("the response contains an error")
	}
	return fmt.Errorf("the response contains an error: %s", said)
}

// isNilOrEmpty reports whether a field counts as missing.
func isNilOrEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}

// describeJSONValueForError describes a JSON value of a response for an error message: at most 20 characters of
// a string, in quotes, "nothing" for null or a missing value, and "no text" for other values.
func describeJSONValueForError(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return fmt.Sprintf("%.20q", v)
	}
	return "no text"
}

// readTokenCounts returns the token counts of a response. Counts that cannot be parsed are 0, since no decision
// depends on them.
func readTokenCounts(body []byte) (t Tokens) {
	value, err := canonjson.ParseValue(body, maxResponseJSONDepth)
	response, _ := value.(map[string]any)
	usage, _ := response["usage"].(map[string]any)
	if err != nil || usage == nil {
		return t
	}
	count := func(in map[string]any, name string) int {
		number, _ := in[name].(jsontext.Value)
		n, err := strconv.Atoi(string(number))
		if err != nil || n < 0 || n > 1<<30 {
			return 0
		}
		return n
	}
	details, _ := usage["prompt_tokens_details"].(map[string]any)
	t.Prompt, t.Cached, t.Completion = count(usage, "prompt_tokens"), count(details, "cached_tokens"), count(usage, "completion_tokens")
	return t
}

// encodeChatCompletionBody returns the body of a response with only a text and its token counts, in the form that go-openai
// parses.
func encodeChatCompletionBody(text string, tokens Tokens) ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	type choice struct {
		Message message `json:"message"`
	}
	return json.Marshal(map[string]any{
		"choices": []choice{{message{"assistant", text}}},
		"usage": map[string]any{
			"prompt_tokens": tokens.Prompt, "completion_tokens": tokens.Completion, "prompt_tokens_details": map[string]int{"cached_tokens": tokens.Cached},
		},
	})
}
