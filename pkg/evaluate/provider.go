package evaluate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A Prompt is one question to a language model.
type Prompt struct {
	System      string // instructions
	User        string // the action, quoted
	ReplySchema []byte // JSON schema that the reply should have
}

// A ModelProvider sends prompts to a language model. Each call sends one request, without waiting
// or retrying: the evaluator retries, because each attempt takes a rate token. Goroutines may share
// a ModelProvider.
type ModelProvider interface {
	// Complete returns the text of the model's reply. An error that wraps [*HTTPStatusError] means a response
	// with a status other than 200; after one that wraps [*UnsupportedParameterError] the caller should repeat the
	// call.
	Complete(ctx context.Context, p Prompt) (string, error)
}

// A Reply is a model's answer with metadata.
type Reply struct {
	Text                  string
	SentWithoutSystemRole bool // the service has no system role: instructions and action were one message
	Tokens                Tokens
}

// Tokens are the token counts of an answer as reported by the service; 0 if not reported.
type Tokens struct {
	Prompt     int // all tokens of the prompt
	Cached     int // the part of Prompt that was in the service's cache
	Completion int
}

// A ModelProviderWithReplyMetadata is a [ModelProvider] that also returns metadata of a reply.
type ModelProviderWithReplyMetadata interface {
	ModelProvider
	CompleteWithMetadata(ctx context.Context, p Prompt) (Reply, error)
}

// sendPrompt sends a prompt to a provider.
func sendPrompt(ctx context.Context, provider ModelProvider, p Prompt) (Reply, error) {
	if r, ok := provider.(ModelProviderWithReplyMetadata); ok {
		return r.CompleteWithMetadata(ctx, p)
	}
	text, err := provider.Complete(ctx, p)
	return Reply{Text: text}, err
}

// An HTTPStatusError reports a response whose status is not 200.
type HTTPStatusError struct {
	Status     int           // HTTP status
	Message    string        // message of the service, truncated and cleaned
	RetryAfter time.Duration // waiting time that the service asks for; 0 if none
}

func (e *HTTPStatusError) Error() string {
	s := fmt.Sprintf("HTTP status %d", e.Status)
	if text := http.StatusText(e.Status); text != "" {
		s += " " + text
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// An UnsupportedParameterError says that the service rejected a parameter of the request, such as
// response_format. The provider drops it, or sends a simpler value, in the next request.
type UnsupportedParameterError struct {
	Parameter string
	Err       error // the refusal
}

func (e *UnsupportedParameterError) Error() string {
	return fmt.Sprintf("parameter %s refused: %v", e.Parameter, e.Err)
}

func (e *UnsupportedParameterError) Unwrap() error { return e.Err }

// isTransient reports whether a retry may help: the service is busy or broken. All other errors, including a
// closed connection, are final.
func isTransient(err error) bool {
	var status *HTTPStatusError
	return errors.As(err, &status) && (status.Status == http.StatusTooManyRequests || status.Status >= 500 && status.Status <= 599)
}

// isUnreachable reports whether an error says that the service could not be asked, for reasons that the
// payload cannot influence. Only these errors can fail open: a rejection of this request (400, 413, 422, or
// 403 from a filter) or a reply that cannot be parsed could be provoked by the payload.
func isUnreachable(err error) bool {
	var status *HTTPStatusError
	if errors.As(err, &status) {
		switch status.Status {
		case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusNotFound, http.StatusRequestTimeout:
			return true
		}
		return isTransient(err)
	}
	var netErr net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) || errors.Is(err, errConnectionCut)
}

// errConnectionCut says that the connection ended before the reply did.
var errConnectionCut = errors.New("the connection closed before the reply was complete; try again")
