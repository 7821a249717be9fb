package evaluate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// A dialect is which optional parameters a service is sent.
type dialect struct {
	format      format
	limit       limit
	temperature bool // 0; models that reason insist on their own
	oneMessage  bool // instructions and action in one message: the service has no system role
}

// A format is how a service is told to reply in JSON.
type format uint8

const (
	formatNone   format = iota
	formatObject        // response_format json_object
	formatSchema        // response_format json_schema
)

// A limit is the name of the parameter that bounds the reply.
type limit uint8

const (
	limitNone limit = iota
	limitTokens
	limitCompletion
)

// The names of formats and limits, as they are remembered and shown.
var (
	formatNames = [...]string{formatNone: "none", formatObject: "json_object", formatSchema: "json_schema"}
	limitNames  = [...]string{limitNone: "none", limitTokens: "max_tokens", limitCompletion: "max_completion_tokens"}
)

// String returns a dialect as [parseDialect] reads it.
func (d dialect) String() string {
	temperature := "none"
	if d.temperature {
		temperature = "temperature"
	}
	roles := ""
	if d.oneMessage {
		roles = " one-message"
	}
	return formatNames[d.format] + " " + limitNames[d.limit] + " " + temperature + roles
}

// parseDialect reads what [dialect.String] wrote.
func parseDialect(text string) (dialect, bool) {
	for f := range formatNames {
		for l := range limitNames {
			for bits := range 4 {
				if d := (dialect{format(f), limit(l), bits&1 != 0, bits&2 != 0}); d.String() == text {
					return d, true
				}
			}
		}
	}
	return dialect{}, false
}

// A Memory keeps what was found out about services, so that the next process
// need not ask again. Goroutines share it.
type Memory interface {
	// Recall returns what is kept under a key and has not expired.
	Recall(ctx context.Context, key string) (text string, ok bool)

	// Remember keeps a short text under a key for a time. Failing to do so only
	// costs further attempts.
	Remember(ctx context.Context, key, text string, keep time.Duration)
}

// dialectKey returns what the dialect of a model at an address is kept under.
func dialectKey(baseURL, model string) string {
	sum := sha256.Sum256([]byte(baseURL + "\n" + model))
	return "dialect:" + hex.EncodeToString(sum[:])
}

// LearnedForm returns the form of answer that the language model of an endpoint
// was found to understand beside the one that it is asked for first:
// "json_schema", "json_object" or "none". It is "" while nothing is known, which
// is so for services that understand the first.
func LearnedForm(ctx context.Context, ep Endpoint) string {
	service, ok := serviceOf(ep.Provider)
	if !ok || ep.Memory == nil {
		return ""
	}
	base, err := ep.base(service)
	if err != nil {
		return ""
	}
	text, _ := ep.Memory.Recall(ctx, dialectKey(strings.TrimRight(base.String(), "/"), ep.Model))
	if d, ok := parseDialect(text); ok {
		return formatNames[d.format]
	}
	return ""
}

// request returns the request for a prompt in this dialect.
func (d dialect) request(model string, p Prompt) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{
		Model: model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: p.System},
			{Role: openai.ChatMessageRoleUser, Content: p.User},
		},
	}
	if d.oneMessage {
		r.Messages = []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: p.System + "\n" + p.User}}
	}
	if d.temperature {
		// go-openai leaves out a zero, which would mean the service's default of 1.
		r.Temperature = math.SmallestNonzeroFloat32
	}
	switch d.limit {
	case limitNone:
	case limitTokens:
		//lint:ignore SA1019 some services know no other
		r.MaxTokens = maxTokens
	case limitCompletion:
		r.MaxCompletionTokens = maxTokens
	}
	switch {
	case d.format == formatSchema && len(p.Schema) > 0:
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "verdict", Schema: json.RawMessage(p.Schema), Strict: true},
		}
	case d.format != formatNone:
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	}
	return r
}

// A dropReason is why a parameter is given up.
type dropReason uint8

const (
	none             dropReason = iota
	errorNamesIt                // the error names it
	mayBeUnsupported            // it may be what the service does not understand
)

// without returns the dialect that gives up what an error complains about, and
// the parameter's name; "" if there is nothing to give up. Each step gives
// something up for good, so that there are at most six.
//
// Services tell in many ways that they do not understand a form of answer: some
// answer 400 or 422 and say so, some 500 with a trace of their validation, some
// say nothing that could be read. An error that names no parameter is therefore
// treated as one about the form, as long as there is a simpler one.
func (d dialect) without(err error) (dialect, string, dropReason) {
	var status *StatusError
	refused, message := false, ""
	if errors.As(err, &status) {
		switch status.Status {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented:
			refused, message = true, strings.ToLower(status.Message)
		}
	}
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(message, w) })
	}
	switch {
	case !d.oneMessage && refused && (says("system role", "system message", "system prompt", "developer instruction", "roles must alternate") || says("role") && says("system")):
		d.oneMessage = true
		return d, "system role", errorNamesIt
	case d.format != formatNone && says("response_format", "json_schema", "json_object", "json schema", "response format", "structured output"):
		d.format--
		return d, "response_format", errorNamesIt
	case d.temperature && (says("temperature") || errors.Is(err, openai.ErrReasoningModelLimitationsOther) || errors.Is(err, openai.ErrReasoningSamplingUnsupported)):
		d.temperature = false
		return d, "temperature", errorNamesIt
	case d.limit == limitTokens && errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated):
		d.limit = limitCompletion
		return d, "max_tokens", errorNamesIt
	case d.limit != limitNone && says("max_tokens", "max_completion_tokens"):
		// A service that wants the other of the two says so by name.
		if d.limit == limitTokens && says("max_completion_tokens") {
			d.limit = limitCompletion
			return d, "max_tokens", errorNamesIt
		}
		d.limit = limitNone
		return d, "max_tokens", errorNamesIt
	case d.format != formatNone && refused && status.Status != http.StatusNotFound: // 404 usually means a wrong address or model
		d.format--
		return d, "response_format", mayBeUnsupported
	}
	return d, "", none
}
