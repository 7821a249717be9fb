package evaluate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// maxReplyTokens limits the length of a model's reply. Reasoning models use part of it before they answer.
const maxReplyTokens = 4096

// An openAI is a model behind an OpenAI-compatible endpoint.
type openAI struct {
	client *openai.Client
	model  string
	key    string // to redact it in messages

	capabilityStore ServiceCapabilityStore // may be nil
	dialectStoreKey string                 // key of the dialect in capabilityStore

	mu                  sync.Mutex
	hasLookedUpDialect  bool
	dialect             apiDialect // parameters that the service has not rejected so far
	lastAcceptedDialect apiDialect // last dialect with an answer, or the first guess
	dialectIsGuess      bool       // a parameter was dropped from dialect although no error named it
}

// NewProvider returns the provider for an endpoint. It reads the key and certificates but does not connect.
func NewProvider(ep Endpoint) (ModelProvider, error) {
	service, ok := modelAPIProviderByName(ep.Provider)
	if !ok {
		return nil, fmt.Errorf("evaluator: unknown provider %.40q; use openai, anthropic, google, ollama or custom", ep.Provider)
	}
	if ep.Model == "" {
		return nil, errors.New("evaluator: no model; set evaluator.model")
	}
	base, err := ep.validatedBaseURL(service)
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
	return &openAI{
		client: openai.NewClientWithConfig(config), model: ep.Model, key: key,
		capabilityStore: ep.CapabilityStore, dialectStoreKey: dialectKey(config.BaseURL, ep.Model),
		dialect: service.dialect, lastAcceptedDialect: service.dialect,
	}, nil
}

// Complete implements [ModelProvider].
func (o *openAI) Complete(ctx context.Context, p Prompt) (string, error) {
	r, err := o.CompleteWithMetadata(ctx, p)
	return r.Text, err
}

// CompleteWithMetadata implements [ModelProvider].
func (o *openAI) CompleteWithMetadata(ctx context.Context, p Prompt) (Reply, error) {
	for {
		d := o.currentDialect(ctx)
		resp, err := o.client.CreateChatCompletion(ctx, d.request(o.model, p))
		if err == nil {
			o.rememberDialect(ctx, d)
			r := Reply{Text: resp.Choices[0].Message.Content, SentWithoutSystemRole: d.noSystemRole} // extractChatCompletionText has checked that there is one choice
			r.Tokens.Prompt, r.Tokens.Completion = resp.Usage.PromptTokens, resp.Usage.CompletionTokens
			if more := resp.Usage.PromptTokensDetails; more != nil {
				r.Tokens.Cached = more.CachedTokens
			}
			return r, nil
		}
		next, parameter, why := d.withoutRefusedParameter(err)
		o.switchDialect(d, next, why)
		var status *HTTPStatusError
		switch {
		case parameter == "":
			return Reply{}, o.redactAPIKeyInError(err)
		case !errors.As(err, &status):
			// An error without an HTTP status comes from go-openai itself, which rejected a
			// parameter and sent nothing: repeat at once without the parameter, and do not count
			// this as an attempt.
		case why == parameterDropSuspectedCause && isTransient(err):
			return Reply{}, o.redactAPIKeyInError(err) // the service may only be busy: the caller waits before it tries the next format
		default:
			return Reply{}, &UnsupportedParameterError{Parameter: parameter, Err: o.redactAPIKeyInError(err)}
		}
	}
}

// How long a learned dialect is stored: dialectLearnedFromErrorTTL if the service's error named the
// unsupported parameter, dialectFoundByTryingTTL if shield found the dialect by trying formats.
const (
	dialectLearnedFromErrorTTL = 24 * time.Hour
	dialectFoundByTryingTTL    = time.Hour
)

// currentDialect returns the request parameters to use for the next request. The first call looks
// them up in the capability store.
func (o *openAI) currentDialect(ctx context.Context) apiDialect {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.capabilityStore != nil && !o.hasLookedUpDialect {
		if text, ok := o.capabilityStore.Recall(ctx, o.dialectStoreKey); ok {
			if d, ok := parseDialect(text); ok {
				o.dialect, o.lastAcceptedDialect = d, d
			}
		}
	}
	o.hasLookedUpDialect = true
	return o.dialect
}

// switchDialect makes to the dialect of later requests, after a request in the dialect from was rejected. It
// does nothing if another goroutine has already switched. With parameterDropNone, no parameter is left to drop: if
// parameters were dropped although no error named them, they were not the cause, and switchDialect returns to
// the last dialect that the service accepted.
func (o *openAI) switchDialect(from, to apiDialect, dropReason parameterDropReason) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.dialect != from: // another goroutine has switched already
	case dropReason == parameterDropNone && o.dialectIsGuess:
		o.dialect, o.dialectIsGuess = o.lastAcceptedDialect, false
	default:
		o.dialect = to
		o.dialectIsGuess = o.dialectIsGuess || dropReason == parameterDropSuspectedCause
	}
}

// rememberDialect stores that the service accepted a dialect.
func (o *openAI) rememberDialect(ctx context.Context, d apiDialect) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d == o.lastAcceptedDialect || d != o.dialect {
		return
	}
	o.lastAcceptedDialect = d
	if o.capabilityStore != nil {
		keep := dialectLearnedFromErrorTTL
		if o.dialectIsGuess {
			keep = dialectFoundByTryingTTL
		}
		o.capabilityStore.Remember(ctx, o.dialectStoreKey, d.String(), keep)
	}
	o.dialectIsGuess = false
}

// redactAPIKeyInError removes the key from an error: services often quote a rejected key.
func (o *openAI) redactAPIKeyInError(err error) error {
	err = withoutRequestURL(err)
	if o.key == "" || !strings.Contains(err.Error(), o.key) {
		return err
	}
	var status *HTTPStatusError
	if errors.As(err, &status) {
		copied := *status
		copied.Message = strings.ReplaceAll(copied.Message, o.key, "[key]")
		return &copied
	}
	return errors.New(strings.ReplaceAll(err.Error(), o.key, "[key]"))
}
