package classify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/shieldcli/shield/pkg/effect"
)

const (
	sidecarTimeout        = 5 * time.Second
	maxSidecarIdleConns   = 8        // idle connections that are kept open
	maxSidecarTextBytes   = 64 << 10 // bytes
	maxSidecarAnswerBytes = 64 << 10 // bytes
)

// A SidecarClient asks a classifier model in another process over HTTP. Goroutines may share it.
//
// Shield sends GET /health once, before the first text, and then POST /classify with {"text":"type:
// payload"}. The answer must be exactly {"label":"INJECTION","confidence":0.97} or the same with
// SAFE. Anything else is an error, so that a broken service cannot make an action look safe.
type SidecarClient struct {
	client         *http.Client
	baseURL        *url.URL
	timeoutPerText time.Duration
	healthy        atomic.Bool
}

// SidecarOptions configure a [SidecarClient].
type SidecarOptions struct {
	TimeoutPerText time.Duration // per text, from connecting to the end of the answer; 0 means 5 s
}

// NewSidecarClient returns a client of the classifier at addr: an https URL, an http URL of this machine, or
// unix:/PATH for a socket that only its owner can open. It does not connect yet.
func NewSidecarClient(addr string, opts SidecarOptions) (*SidecarClient, error) {
	s := &SidecarClient{timeoutPerText: opts.TimeoutPerText}
	if s.timeoutPerText <= 0 {
		s.timeoutPerText = sidecarTimeout
	}
	t := &http.Transport{
		// No Proxy: the agent may control the environment.
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    s.timeoutPerText,
		DisableCompression:     true, // a small compressed answer must not expand to a large one
		MaxResponseHeaderBytes: 16 << 10,
		MaxIdleConns:           maxSidecarIdleConns,
		MaxIdleConnsPerHost:    maxSidecarIdleConns,
		IdleConnTimeout:        30 * time.Second,
	}
	socket, local := strings.CutPrefix(addr, "unix:")
	if local || strings.HasPrefix(addr, "/") {
		socket, err := validateAndCleanSocketPath(socket)
		if err != nil {
			return nil, fmt.Errorf("classifier.addr: %w", err)
		}
		s.baseURL = &url.URL{Scheme: "http", Host: "localhost", Path: "/"}
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, socket) }
	} else {
		base, err := sidecarURL(addr)
		if err != nil {
			return nil, fmt.Errorf("classifier.addr: %w", err)
		}
		s.baseURL = base
		if base.Scheme == "http" {
			t.DialContext = (&net.Dialer{Control: effect.RefuseNonLoopbackDial}).DialContext
		}
	}
	s.client = &http.Client{
		Transport: t,
		// A redirect could send the action to a host that the user has not configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// sidecarURL parses and checks the URL of a sidecar. Errors do not quote parts
// that may contain a password.
func sidecarURL(addr string) (*url.URL, error) {
	u, err := url.Parse(addr)
	if err != nil {
		return nil, errors.New("the address is not a URL; write http://127.0.0.1:PORT")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("the address has an unknown form; write https://HOST, http://127.0.0.1:PORT or unix:/PATH")
	case u.User != nil:
		return nil, errors.New("the URL must not contain a user or password; remove it")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("the URL must not contain a query or fragment; remove it")
	case u.Scheme == "http" && !effect.IsLoopbackHost(effect.CanonicalHost(u.Hostname())):
		return nil, fmt.Errorf("http to %.80q is not encrypted, others could read actions and forge answers; use https", u.Hostname())
	}
	return u, nil
}

// validateAndCleanSocketPath returns the cleaned absolute path of a socket. p is the path as configured, in the
// form /PATH or ///PATH; other forms are an error.
func validateAndCleanSocketPath(p string) (string, error) {
	if rest, ok := strings.CutPrefix(p, "//"); ok {
		p = rest // unix:///PATH
	}
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsRune(p, 0) {
		return "", fmt.Errorf("the socket path %.80q is not absolute; write it in full", p)
	}
	return path.Clean(p), nil
}

// Score implements [InjectionScorer].
func (s *SidecarClient) Score(ctx context.Context, text string) (InjectionScore, error) {
	if len(text) > maxSidecarTextBytes {
		return InjectionScore{}, fmt.Errorf("%w (%d bytes; the sidecar gets at most %d)", ErrTooLong, len(text), maxSidecarTextBytes)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeoutPerText)
	defer cancel()
	if !s.healthy.Load() {
		if err := s.CheckHealth(ctx); err != nil {
			return InjectionScore{}, err
		}
		s.healthy.Store(true)
	}
	question, err := json.Marshal(struct {
		Text string `json:"text"`
	}{text})
	if err != nil {
		return InjectionScore{}, fmt.Errorf("sidecar: %w", err)
	}
	resp, body, err := s.sendRequest(ctx, http.MethodPost, "classify", question)
	if err != nil {
		return InjectionScore{}, err
	}
	score, err := readAnswer(resp.Header.Get("Content-Type"), body)
	if err != nil {
		return InjectionScore{}, fmt.Errorf("sidecar: %w", err)
	}
	return score, nil
}

// CheckHealth asks the sidecar whether it is ready.
func (s *SidecarClient) CheckHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeoutPerText)
	defer cancel()
	_, _, err := s.sendRequest(ctx, http.MethodGet, "health", nil)
	return err
}

// sendRequest sends a request and returns a response of status 200 and its body.
func (s *SidecarClient) sendRequest(ctx context.Context, method, endpoint string, body []byte) (*http.Response, []byte, error) {
	fail := func(err error) (*http.Response, []byte, error) {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without method and URL, which the caller knows
		}
		return nil, nil, fmt.Errorf("sidecar: %s: %w", endpoint, err)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.baseURL.JoinPath(endpoint).String(), bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		// Repeating the request is harmless. This header is not sent; it makes the transport retry if the
		// sidecar has closed an idle connection.
		req.Header["Idempotency-Key"] = []string{}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxSidecarAnswerBytes+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return fail(fmt.Errorf("status %d, expected 200", resp.StatusCode))
	case err != nil:
		return fail(err)
	case len(answer) > maxSidecarAnswerBytes:
		return fail(fmt.Errorf("the classifier server's answer is longer than %d bytes; check classifier.addr", maxSidecarAnswerBytes))
	}
	return resp, answer, nil
}

// readAnswer reads {"label":…,"confidence":…}.
func readAnswer(contentType string, body []byte) (InjectionScore, error) {
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return InjectionScore{}, fmt.Errorf("the classifier server's answer has the type %.60q instead of application/json; check classifier.addr", contentType)
	}
	var a struct {
		Label      *string  `json:"label"`
		Confidence *float64 `json:"confidence"`
	}
	// An unknown member may be an error message next to the label SAFE.
	if err := json.Unmarshal(body, &a, json.RejectUnknownMembers(true)); err != nil {
		return InjectionScore{}, errors.New(`the classifier server's answer must be {"label":…,"confidence":…} without other members; check classifier.addr`)
	}
	switch {
	case a.Label == nil || a.Confidence == nil:
		return InjectionScore{}, errors.New("the classifier server's answer lacks label or confidence; see the log of that server")
	case *a.Label != "INJECTION" && *a.Label != "SAFE":
		return InjectionScore{}, fmt.Errorf("the classifier server's label %.40q is neither INJECTION nor SAFE; check classifier.addr", *a.Label)
	case !(*a.Confidence >= 0 && *a.Confidence <= 1):
		return InjectionScore{}, errors.New("the classifier server's confidence is not between 0 and 1; check classifier.addr")
	}
	return InjectionScore{HasInjectionLabel: *a.Label == "INJECTION", LabelConfidence: *a.Confidence}, nil
}
