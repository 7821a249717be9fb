package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"

	openai "github.com/sashabaranov/go-openai"
)

// maxTokens bounds what a model may write. Models that reason spend part of it
// before they answer.
const maxTokens = 4096

// A dialect is which optional parameters a service is sent.
type dialect struct {
	format      format
	limit       limit
	temperature bool // 0; models that reason insist on their own
}

// A format is how a reply is held to JSON.
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

// An openAI is a model behind an OpenAI-compatible endpoint.
type openAI struct {
	client *openai.Client
	model  string
	key    string // to keep it out of messages

	mu      sync.Mutex
	dialect dialect // what the service has not refused so far
}

// NewProvider returns the provider that an endpoint describes. It reads key
// and certificates but opens no connection.
func NewProvider(ep Endpoint) (Provider, error) {
	service, ok := serviceOf(ep.Provider)
	if !ok {
		return nil, fmt.Errorf("evaluator: unknown provider %.40q; use openai, anthropic, google, ollama or custom", ep.Provider)
	}
	if ep.Model == "" {
		return nil, errors.New("evaluator: no model; set evaluator.model")
	}
	base, err := ep.base(service)
	if err != nil {
		return nil, fmt.Errorf("evaluator: %w", err)
	}
	key, err := ep.key(service)
	if err != nil {
		return nil, fmt.Errorf("evaluator: %w", err)
	}
	d, err := newDoer(&ep)
	if err != nil {
		return nil, fmt.Errorf("evaluator: %w", err)
	}
	config := openai.DefaultConfig(key)
	config.BaseURL = strings.TrimRight(base.String(), "/")
	config.HTTPClient = d
	return &openAI{client: openai.NewClientWithConfig(config), model: ep.Model, key: key, dialect: service.dialect}, nil
}

// Complete implements [Provider].
func (o *openAI) Complete(ctx context.Context, p Prompt) (string, error) {
	for {
		o.mu.Lock()
		d := o.dialect
		o.mu.Unlock()
		resp, err := o.client.CreateChatCompletion(ctx, d.request(o.model, p))
		if err == nil {
			return content(resp)
		}
		next, parameter := d.without(err)
		if parameter == "" {
			return "", o.clean(err)
		}
		o.mu.Lock()
		if o.dialect == d {
			o.dialect = next
		}
		o.mu.Unlock()
		var status *StatusError
		if errors.As(err, &status) {
			return "", &UnsupportedError{Parameter: parameter, Err: o.clean(err)}
		}
		// go-openai itself refused: nothing was sent, so this was no attempt.
	}
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

// without returns the dialect that gives up what an error complains about, and
// the parameter's name; "" if the error complains about no parameter. Each
// step gives something up for good, so that there are at most five.
func (d dialect) without(err error) (dialect, string) {
	var status *StatusError
	refused := errors.As(err, &status) && (status.Status == http.StatusBadRequest || status.Status == http.StatusUnprocessableEntity)
	says := func(words ...string) bool {
		if !refused {
			return false
		}
		message := strings.ToLower(status.Message)
		for _, w := range words {
			if strings.Contains(message, w) {
				return true
			}
		}
		return false
	}
	switch {
	case d.format != formatNone && says("response_format", "json_schema", "json_object", "json schema", "response format", "structured output"):
		d.format--
		return d, "response_format"
	case d.temperature && (says("temperature") || errors.Is(err, openai.ErrReasoningModelLimitationsOther) || errors.Is(err, openai.ErrReasoningSamplingUnsupported)):
		d.temperature = false
		return d, "temperature"
	case d.limit == limitTokens && errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated):
		d.limit = limitCompletion
		return d, "max_tokens"
	case d.limit != limitNone && says("max_tokens", "max_completion_tokens"):
		// A service that is asked for the one and wants the other says so by name.
		if d.limit == limitTokens && says("max_completion_tokens") {
			d.limit = limitCompletion
			return d, "max_tokens"
		}
		d.limit = limitNone
		return d, "max_tokens"
	}
	return d, ""
}

// content returns the text of the one choice that was asked for. An empty
// text is a reply as well: a refusal, or a filter that the payload set off.
func content(resp openai.ChatCompletionResponse) (string, error) {
	if len(resp.Choices) != 1 {
		return "", fmt.Errorf("response has %d choices, expected 1", len(resp.Choices))
	}
	return resp.Choices[0].Message.Content, nil
}

// clean returns an error that does not hold the key: services like to quote
// the one they refuse.
func (o *openAI) clean(err error) error {
	var status *StatusError
	if o.key != "" && errors.As(err, &status) {
		copied := *status
		copied.Message = strings.ReplaceAll(copied.Message, o.key, "[key]")
		return &copied
	}
	return plain(err)
}
