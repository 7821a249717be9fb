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

	memory    ServiceCapabilityStore // may be nil
	memoryKey string                 // key of the dialect in memory

	mu                 sync.Mutex
	triedDialectRecall bool
	dialect            dialect // parameters that the service has not rejected so far
	provenDialect      dialect // last dialect with an answer, or the first guess
	dialectIsGuess     bool    // dialect follows from an error that did not name a parameter
}

// NewProvider returns the provider for an endpoint. It reads the key and certificates but does not connect.
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
	return &openAI{
		client: openai.NewClientWithConfig(config), model: ep.Model, key: key,
		memory: ep.SupportedParameterStore, memoryKey: dialectKey(config.BaseURL, ep.Model),
		dialect: service.dialect, provenDialect: service.dialect,
	}, nil
}

// Complete implements [Provider].
func (o *openAI) Complete(ctx context.Context, p Prompt) (string, error) {
	r, err := o.Reply(ctx, p)
	return r.Text, err
}

// Reply implements [ProviderWithMetadata].
func (o *openAI) Reply(ctx context.Context, p Prompt) (Reply, error) {
	for {
		d := o.currentDialect(ctx)
		resp, err := o.client.CreateChatCompletion(ctx, d.request(o.model, p))
		if err == nil {
			o.rememberDialect(ctx, d)
			r := Reply{Text: resp.Choices[0].Message.Content, NoSystemRole: d.noSystemRole} // readEnvelope has checked that there is one choice
			r.Tokens.Prompt, r.Tokens.Completion = resp.Usage.PromptTokens, resp.Usage.CompletionTokens
			if more := resp.Usage.PromptTokensDetails; more != nil {
				r.Tokens.Cached = more.CachedTokens
			}
			return r, nil
		}
		next, parameter, why := d.withoutRefusedParameter(err)
		o.nextDialect(d, next, why)
		var status *StatusError
		switch {
		case parameter == "":
			return Reply{}, o.redactAPIKeyInError(err)
		case !errors.As(err, &status):
			// An error that is no StatusError comes from go-openai itself: nothing was sent, so
			// this attempt does not count.
		case why == dropReasonSuspectedFromError && isTransient(err):
			return Reply{}, o.redactAPIKeyInError(err) // the service may only be busy: wait before trying the next format
		default:
			return Reply{}, &UnsupportedError{Parameter: parameter, Err: o.redactAPIKeyInError(err)}
		}
	}
}

// How long a learned dialect is stored: dialectLearnedFromErrorTTL if the service's error named the
// unsupported parameter, dialectFoundByTryingTTL if shield found the dialect by trying formats.
const (
	dialectLearnedFromErrorTTL = 24 * time.Hour
	dialectFoundByTryingTTL    = time.Hour
)

// currentDialect returns the dialect for the next request, after looking for one in the memory.
func (o *openAI) currentDialect(ctx context.Context) dialect {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.memory != nil && !o.triedDialectRecall {
		if text, ok := o.memory.Recall(ctx, o.memoryKey); ok {
			if d, ok := parseDialect(text); ok {
				o.dialect, o.provenDialect = d, d
			}
		}
	}
	o.triedDialectRecall = true
	return o.dialect
}

// nextDialect switches from a rejected dialect to the next. If every format was rejected without being named,
// the format is not the cause.
func (o *openAI) nextDialect(from, to dialect, why parameterDropReason) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.dialect != from: // another goroutine has switched already
	case why == dropReasonNone && o.dialectIsGuess:
		o.dialect, o.dialectIsGuess = o.provenDialect, false
	default:
		o.dialect = to
		o.dialectIsGuess = o.dialectIsGuess || why == dropReasonSuspectedFromError
	}
}

// rememberDialect stores that the service accepted a dialect.
func (o *openAI) rememberDialect(ctx context.Context, d dialect) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d == o.provenDialect || d != o.dialect {
		return
	}
	o.provenDialect = d
	if o.memory != nil {
		keep := dialectLearnedFromErrorTTL
		if o.dialectIsGuess {
			keep = dialectFoundByTryingTTL
		}
		o.memory.Remember(ctx, o.memoryKey, d.String(), keep)
	}
	o.dialectIsGuess = false
}

// redactAPIKeyInError removes the key from an error: services often quote a rejected key.
func (o *openAI) redactAPIKeyInError(err error) error {
	err = withoutRequestURL(err)
	if o.key == "" || !strings.Contains(err.Error(), o.key) {
		return err
	}
	var status *StatusError
	if errors.As(err, &status) {
		copied := *status
		copied.Message = strings.ReplaceAll(copied.Message, o.key, "[key]")
		return &copied
	}
	return errors.New(strings.ReplaceAll(err.Error(), o.key, "[key]"))
}
