package approve

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/redact"
)

// A chatBot is a client of a chat service. Its errors do not contain the token.
type chatBot struct {
	client         *http.Client
	baseURL        string        // URL of the service
	requestTimeout time.Duration // time limit of one request
	token          string
}

// Limits of a bot's requests and answers.
const (
	maxBotAPIResponseBytes    = 1 << 20 // bytes
	chatServiceRequestTimeout = 5 * time.Second
	maxRetryPause             = 30 * time.Second // between attempts to reach the service
	messageEditTimeout        = time.Second      // time to update the message of a question
)

// newBotClient returns a client that follows no redirect: the token is in the request.
// It has no proxy of the environment, which may be the agent's.
func newBotClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    chatServiceRequestTimeout,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 64 << 10,
			MaxConnsPerHost:        16,
			IdleConnTimeout:        time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A botTokenFormat describes the token of a chat bot: the setting that names the token's file, a
// regular expression that the token matches, and an example.
type botTokenFormat struct {
	settingName, pattern, example string
}

// readToken reads the token from a file. Its errors do not contain the token.
func (t botTokenFormat) readToken(file string) (string, error) {
	if file == "" {
		return "", fmt.Errorf("no bot is configured; set %s to a file with the token of the bot", t.settingName)
	}
	text, err := owner.ReadSecret(file, 4<<10)
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.settingName, err)
	}
	if !regexp.MustCompile(t.pattern).MatchString(text) {
		return "", fmt.Errorf("%s: the file %s does not contain a bot token, such as %s; write the token into this file", t.settingName, file, t.example)
	}
	return text, nil
}

// A chatServiceCall is a request to a service.
type chatServiceCall struct {
	operationDescription string // name of the call, for errors
	method               string
	path                 string
	header               http.Header
	formBody             url.Values // form fields of the request body; nil: the body is not a form
	jsonBody             any        // value that is sent as JSON; nil: none
}

// A rateLimitError is the error of a service that limits requests (rate limit).
type rateLimitError struct {
	callName   string
	retryAfter time.Duration
}

func (e *rateLimitError) Error() string {
	return fmt.Sprintf("%s failed: the chat service limits the rate; wait %s", e.callName, e.retryAfter)
}

// send sends a request and returns the service's answer.
func (b *chatBot) send(ctx context.Context, timeout time.Duration, c chatServiceCall) (status int, data []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body []byte
	kind := "application/json"
	switch {
	case c.formBody != nil:
		body, kind = []byte(c.formBody.Encode()), "application/x-www-form-urlencoded"
	case c.jsonBody != nil:
		if body, err = json.Marshal(c.jsonBody); err != nil {
			return 0, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, c.method, b.baseURL+c.path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("the URL of the service is invalid; correct the settings of the channel")
	}
	for key, values := range c.header {
		req.Header[key] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", c.operationDescription, withoutURL(err))
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, maxBotAPIResponseBytes+1))
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", c.operationDescription, withoutURL(err))
	case len(data) > maxBotAPIResponseBytes:
		err = fmt.Errorf("%s: the answer of the chat service is longer than %d bytes; check the address in the settings", c.operationDescription, maxBotAPIResponseBytes)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		err = fmt.Errorf("%s: the service sent a redirect, which shield does not follow; check the proxy and the URL", c.operationDescription)
	case resp.StatusCode == http.StatusTooManyRequests:
		err = &rateLimitError{c.operationDescription, retryAfter(resp.Header)}
	}
	return resp.StatusCode, data, err
}

// retryAfter returns how long to wait before the next request to a service, by its Retry-After
// header.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || !(n > 0) {
		n = 1
	}
	return time.Duration(min(n, time.Hour.Seconds()) * float64(time.Second)).Round(time.Millisecond)
}

// withoutURL returns an error without the URL, which may hold the token.
func withoutURL(err error) error {
	var wrapped *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the chat service did not answer in time; check the network and the proxy")
	case errors.As(err, &wrapped):
		return wrapped.Err
	}
	return err
}

// withoutToken returns a text of the service on one line, without the token.
func (b *chatBot) withoutToken(text string) string {
	return escapedSingleLineText(strings.ReplaceAll(text, b.token, "[token]"), 200)
}

// buttonLabel returns the text of a button or reaction for a choice.
func buttonLabel(choice string) string {
	switch choice {
	case choiceDeny:
		return "Deny"
	case choiceOnce:
		return "Approve once"
	case choiceAdvanceApproval:
		return "Approve actions of this kind for this session"
	default:
		return "Approve for 10 minutes"
	}
}

// choiceOutcomeText returns the text that replaces a question after a choice.
func choiceOutcomeText(choice string) string {
	switch choice {
	case choiceDeny:
		return "Denied"
	case choiceOnce:
		return "Approved once"
	case choiceRemember:
		return "Approved for 10 minutes"
	case choiceAdvanceApproval:
		return "Actions of this kind approved for this session"
	case choiceToolReadOnly, choiceToolChangesWorkspace, choiceToolChangesOutsideWorkspace:
		return "Approved once, and the tool " + ToolClassDescriptions[classOfChoice(choice)] + ":"
	case choiceToolForbidden:
		return "Denied, and the tool must not be used again:"
	default:
		return "Not counted"
	}
}

// possibleAnswerChoices returns the answers that a person can choose for a question: first denial,
// then the approvals from the narrowest to the broadest. An action that is not shown in full can
// only be denied.
func possibleAnswerChoices(r *Request, isWholeActionShown bool) []string {
	list := []string{choiceDeny}
	if isWholeActionShown {
		list = append(list, choiceOnce)
	}
	if isWholeActionShown && r.OffersTimedApproval {
		list = append(list, choiceRemember)
	}
	if isWholeActionShown && r.AdvanceApprovalScope != "" {
		list = append(list, choiceAdvanceApproval)
	}
	return list
}

// questionText returns the question as plain text, and whether the text shows the whole action. It
// cuts the text to maxBytes, and then adds a note that the question can only be denied.
func questionText(r *Request, maxBytes int) (text string, isWholeActionShown bool) {
	var out strings.Builder
	out.WriteString(r.Summary + "\n")
	isWholeActionShown = !r.IsPayloadTruncated
	if r.AdvanceApprovalScope != "" {
		out.WriteString("\nThis kind: " + r.AdvanceApprovalScope + "\n")
	}
	for _, f := range r.Payload {
		fmt.Fprintf(&out, "\n%s:\n%s\n", f.Name, f.Value)
	}
	if r.CWD != "" {
		out.WriteString("\nin " + r.CWD)
	}
	if r.AskingProgramDescription != "" {
		out.WriteString("\nasked by " + r.AskingProgramDescription)
	}
	text = strings.TrimSpace(out.String())
	if len(text) > maxBytes {
		text, isWholeActionShown = redact.TruncateBytes(text, maxBytes), false
	}
	if !isWholeActionShown {
		text += "\n\n… the rest is not shown, so this can only be denied here."
	}
	return text, isWholeActionShown
}

// answerAndFinalMessageText returns the final text of a question's message, and the answer.
func answerAndFinalMessageText(g pageOrChatAnswer, err error) (Answer, string, error) {
	if err != nil {
		return Answer{}, "No longer waiting: answered on another channel, or not answered in time.", err
	}
	a, err := g.answer()
	return a, choiceOutcomeText(g.Choice) + " by " + g.By + ".", err
}

// sleepContext waits for a span, or until ctx ends.
func sleepContext(ctx context.Context, span time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(span):
	}
}
