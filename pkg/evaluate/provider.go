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
	System string // instructions
	User   string // the action, quoted
	Schema []byte // JSON schema that the reply should have
}

// A Provider asks a language model. It sends one request a call and neither
// waits nor tries again: the evaluator does, since each attempt takes a token
// of the rate limit. Goroutines may share a Provider.
type Provider interface {
	// Complete returns the text of the model's reply. An error that wraps
	// [*StatusError] says that the service answered, with a status other than
	// 200; one that wraps [*UnsupportedError] asks for the same call again.
	Complete(ctx context.Context, p Prompt) (string, error)
}

// A Reply is a model's answer and what is known of how it came about.
type Reply struct {
	Text       string
	OneMessage bool // the service has no system role: instructions and action were one message
	Tokens     Tokens
}

// Tokens are what an answer took, as the service counts them. What it does not say is 0.
type Tokens struct {
	Prompt  int // in all
	Cached  int // of these, that were not computed again
	Written int
}

// A Replier is a [Provider] that says more of an answer than its text.
type Replier interface {
	Provider
	Reply(ctx context.Context, p Prompt) (Reply, error)
}

// complete asks a provider.
func complete(ctx context.Context, by Provider, p Prompt) (Reply, error) {
	if r, ok := by.(Replier); ok {
		return r.Reply(ctx, p)
	}
	text, err := by.Complete(ctx, p)
	return Reply{Text: text}, err
}

// A StatusError is a reply whose status is not 200.
type StatusError struct {
	Status     int           // of HTTP
	Message    string        // what the service said, cut and cleaned
	RetryAfter time.Duration // how long the service asks to wait; 0 if it does not say
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("HTTP status %d", e.Status)
	if text := http.StatusText(e.Status); text != "" {
		s += " " + text
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// An UnsupportedError says that the service refused a parameter of the
// request, such as response_format, and that the provider will not send it
// again.
type UnsupportedError struct {
	Parameter string
	Err       error // the refusal
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("parameter %s refused: %v", e.Parameter, e.Err)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// isTransient reports whether trying again may help: the service is busy or
// broken. Everything else, a cut connection too, is final.
func isTransient(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (status.Status == http.StatusTooManyRequests || status.Status >= 500 && status.Status <= 599)
}

// isUnreachable reports whether an error says that the service could not be
// asked, for reasons that the payload cannot influence. If failing open was
// chosen, only this opens: a refusal of this very request (400, 413, 422, or
// 403 by a filter in between) or a reply that cannot be read could be brought
// about by the payload.
func isUnreachable(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		switch status.Status {
		case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusNotFound, http.StatusRequestTimeout:
			return true
		}
		return isTransient(err)
	}
	var netErr net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) || errors.Is(err, errCut)
}

// errCut says that the connection ended before the reply did.
var errCut = errors.New("the connection closed before the reply was complete; try again")
