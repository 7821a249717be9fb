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

// An apiDialect says which optional parameters are sent to a service.
type apiDialect struct {
	format           replyFormat
	replyLimit       replyLimitParameter
	sendsTemperature bool // send temperature 0; reasoning models only accept their default
	noSystemRole     bool // send instructions and action as one message: the service has no system role
}

// A replyFormat is the way in which a service is asked to reply in JSON.
type replyFormat uint8

const (
	replyFormatNone   replyFormat = iota
	replyFormatObject             // response_format json_object
	replyFormatSchema             // response_format json_schema
)

// A replyLimitParameter is the name of the request parameter that limits the length of the reply.
type replyLimitParameter uint8

const (
	replyLimitNone replyLimitParameter = iota
	replyLimitMaxTokens
	replyLimitMaxCompletionTokens
)

// Names of reply formats and reply limit parameters, as stored and as shown in messages.
var (
	formatNames              = [...]string{replyFormatNone: "none", replyFormatObject: "json_object", replyFormatSchema: "json_schema"}
	replyLimitParameterNames = [...]string{replyLimitNone: "none", replyLimitMaxTokens: "max_tokens", replyLimitMaxCompletionTokens: "max_completion_tokens"}
)

// String returns a dialect in the form that [parseDialect] reads.
func (d apiDialect) String() string {
	temperature := "none"
	if d.sendsTemperature {
		temperature = "temperature"
	}
	roles := ""
	if d.noSystemRole {
		roles = " one-message"
	}
	return formatNames[d.format] + " " + replyLimitParameterNames[d.replyLimit] + " " + temperature + roles
}

// parseDialect parses the result of [apiDialect.String].
func parseDialect(text string) (apiDialect, bool) {
	for f := range formatNames {
		for l := range replyLimitParameterNames {
			for bits := range 4 {
				if d := (apiDialect{replyFormat(f), replyLimitParameter(l), bits&1 != 0, bits&2 != 0}); d.String() == text {
					return d, true
				}
			}
		}
	}
	return apiDialect{}, false
}

// A ServiceCapabilityStore stores what shield learned about services, so that the next process need
// not learn it again. Goroutines share it.
type ServiceCapabilityStore interface {
	// Recall returns the text stored under a key, if it has not expired.
	Recall(ctx context.Context, key string) (text string, ok bool)

	// Remember stores a short text under a key for a duration. If it fails, the next process needs more
	// attempts.
	Remember(ctx context.Context, key, text string, keep time.Duration)
}

// dialectKey returns the key under which the dialect (supported parameters) of a model at an
// address is stored in the [ServiceCapabilityStore].
func dialectKey(baseURL, model string) string {
	sum := sha256.Sum256([]byte(baseURL + "\n" + model))
	return "dialect:" + hex.EncodeToString(sum[:])
}

// StoredReplyFormatName returns the reply format in the dialect that is stored for an endpoint's model:
// "json_schema", "json_object" or "none". A dialect is stored if it differs from the one that shield tries
// first, perhaps only in another parameter. It returns "" if no dialect is stored.
func StoredReplyFormatName(ctx context.Context, ep Endpoint) string {
	service, ok := modelAPIProviderByName(ep.Provider)
	if !ok || ep.CapabilityStore == nil {
		return ""
	}
	base, err := ep.validatedBaseURL(service)
	if err != nil {
		return ""
	}
	text, _ := ep.CapabilityStore.Recall(ctx, dialectKey(strings.TrimRight(base.String(), "/"), ep.Model))
	if d, ok := parseDialect(text); ok {
		return formatNames[d.format]
	}
	return ""
}

// request returns the request for a prompt in this dialect.
func (d apiDialect) request(model string, p Prompt) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{
		Model: model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: p.System},
			{Role: openai.ChatMessageRoleUser, Content: p.User},
		},
	}
	if d.noSystemRole {
		r.Messages = []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: p.System + "\n" + p.User}}
	}
	if d.sendsTemperature {
		// go-openai omits a zero, and the service would then use its default of 1.
		r.Temperature = math.SmallestNonzeroFloat32
	}
	switch d.replyLimit {
	case replyLimitNone:
	case replyLimitMaxTokens:
		//lint:ignore SA1019 some services know no other
		r.MaxTokens = maxReplyTokens
	case replyLimitMaxCompletionTokens:
		r.MaxCompletionTokens = maxReplyTokens
	}
	switch {
	case d.format == replyFormatSchema && len(p.ReplySchema) > 0:
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "verdict", Schema: json.RawMessage(p.ReplySchema), Strict: true},
		}
	case d.format != replyFormatNone:
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	}
	return r
}

// A parameterDropReason says why a parameter is dropped.
type parameterDropReason uint8

const (
	parameterDropNone           parameterDropReason = iota
	parameterDropNamedInError                       // the error names the parameter
	parameterDropSuspectedCause                     // the error names no parameter, but this parameter may be its cause
)

// withoutRefusedParameter returns the dialect without the parameter that an error complains about, and the
// parameter's name; "" if no parameter can be dropped. Parameters are never added again, so there are at most
// six steps.
//
// Services report an unsupported reply format in many ways: some with status 400 or 422 and a message, some with
// 500 and a stack trace, some without readable text. So an error with a status of 400, 422, 500 or 501 that
// names no parameter is treated as one about the format, as long as there is a simpler format.
func (d apiDialect) withoutRefusedParameter(err error) (apiDialect, string, parameterDropReason) {
	var status *HTTPStatusError
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
	case !d.noSystemRole && refused && (says("system role", "system message", "system prompt", "developer instruction", "roles must alternate") || says("role") && says("system")):
		d.noSystemRole = true
		return d, "system role", parameterDropNamedInError
	case d.format != replyFormatNone && says("response_format", "json_schema", "json_object", "json schema", "response format", "structured output"):
		d.format--
		return d, "response_format", parameterDropNamedInError
	case d.sendsTemperature && (says("temperature") || errors.Is(err, openai.ErrReasoningModelLimitationsOther) || errors.Is(err, openai.ErrReasoningSamplingUnsupported)):
		d.sendsTemperature = false
		return d, "temperature", parameterDropNamedInError
	case d.replyLimit == replyLimitMaxTokens && errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated):
		d.replyLimit = replyLimitMaxCompletionTokens
		return d, "max_tokens", parameterDropNamedInError
	case d.replyLimit != replyLimitNone && says("max_tokens", "max_completion_tokens"):
		// If the service's error names max_completion_tokens, the service expects that parameter
		// instead.
		if d.replyLimit == replyLimitMaxTokens && says("max_completion_tokens") {
			d.replyLimit = replyLimitMaxCompletionTokens
			return d, "max_tokens", parameterDropNamedInError
		}
		d.replyLimit = replyLimitNone
		return d, "max_tokens", parameterDropNamedInError
	case d.format != replyFormatNone && refused && status.Status != http.StatusNotFound: // 404 usually means a wrong address or model
		d.format--
		return d, "response_format", parameterDropSuspectedCause
	}
	return d, "", parameterDropNone
}
