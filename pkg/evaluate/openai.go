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

// maxTokens bounds what a model may write. Models that reason spend part of it
// before they answer.
const maxTokens = 4096

// An openAI is a model behind an OpenAI-compatible endpoint.
type openAI struct {
	client *openai.Client
	model  string
	key    string // to keep it out of messages

	memory Memory // may be nil
	place  string // what the memory keeps the dialect under

	mu       sync.Mutex
	recalled bool
	dialect  dialect // what the service has not refused so far
	known    dialect // what it has answered to, or the first guess
	guessed  bool    // dialect follows from a refusal that did not say why
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
	return &openAI{
		client: openai.NewClientWithConfig(config), model: ep.Model, key: key,
		memory: ep.Memory, place: dialectKey(config.BaseURL, ep.Model),
		dialect: service.dialect, known: service.dialect,
	}, nil
}

// Complete implements [Provider].
func (o *openAI) Complete(ctx context.Context, p Prompt) (string, error) {
	r, err := o.Reply(ctx, p)
	return r.Text, err
}

// Reply implements [Replier].
func (o *openAI) Reply(ctx context.Context, p Prompt) (Reply, error) {
	for {
		d := o.currentDialect(ctx)
		resp, err := o.client.CreateChatCompletion(ctx, d.request(o.model, p))
		if err == nil {
			o.rememberDialect(ctx, d)
			r := Reply{Text: resp.Choices[0].Message.Content, OneMessage: d.oneMessage} // see envelope
			r.Tokens.Prompt, r.Tokens.Written = resp.Usage.PromptTokens, resp.Usage.CompletionTokens
			if more := resp.Usage.PromptTokensDetails; more != nil {
				r.Tokens.Cached = more.CachedTokens
			}
			return r, nil
		}
		next, parameter, why := d.without(err)
		o.nextDialect(d, next, why)
		var status *StatusError
		switch {
		case parameter == "":
			return Reply{}, o.clean(err)
		case !errors.As(err, &status):
			// go-openai itself refused: nothing was sent, so this was not an attempt.
		case why == mayBeUnsupported && isTransient(err):
			return Reply{}, o.clean(err) // the service may only be busy: wait before the next form is tried
		default:
			return Reply{}, &UnsupportedError{Parameter: parameter, Err: o.clean(err)}
		}
	}
}

// How long a dialect is remembered that was found out: by what the service
// said, and by trying.
const (
	toldFor    = 24 * time.Hour
	guessedFor = time.Hour
)

// currentDialect returns the dialect to ask in, after a look at what was found out
// before.
func (o *openAI) currentDialect(ctx context.Context) dialect {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.memory != nil && !o.recalled {
		if text, ok := o.memory.Recall(ctx, o.place); ok {
			if d, ok := parseDialect(text); ok {
				o.dialect, o.known = d, d
			}
		}
	}
	o.recalled = true
	return o.dialect
}

// nextDialect goes from a dialect that was refused to the next. If every form of
// answer was refused without naming it, the form is not the problem.
func (o *openAI) nextDialect(from, to dialect, why dropReason) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.dialect != from: // another goroutine was first
	case why == none && o.guessed:
		o.dialect, o.guessed = o.known, false
	default:
		o.dialect = to
		o.guessed = o.guessed || why == mayBeUnsupported
	}
}

// rememberDialect notes that the service answered to a dialect.
func (o *openAI) rememberDialect(ctx context.Context, d dialect) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d == o.known || d != o.dialect {
		return
	}
	o.known = d
	if o.memory != nil {
		keep := toldFor
		if o.guessed {
			keep = guessedFor
		}
		o.memory.Remember(ctx, o.place, d.String(), keep)
	}
	o.guessed = false
}

// clean returns an error without the key: services often quote the key that they
// refuse.
func (o *openAI) clean(err error) error {
	err = plain(err)
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
