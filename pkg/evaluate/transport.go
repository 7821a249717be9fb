package evaluate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/owner"
)

// maxResponseBodyBytes is the maximum length of a response body, in bytes.
const maxResponseBodyBytes = 64 << 10

// An httpDoer sends requests and returns only responses that [extractChatCompletionText] accepts: complete, with status
// 200 and at most maxResponseBodyBytes long. It implements go-openai's HTTPDoer.
type httpDoer struct{ client *http.Client }

// newDoer returns an HTTP client for an endpoint. It does not connect yet.
func newDoer(ep *Endpoint) (*httpDoer, error) {
	proxy, err := ep.proxyURL()
	if err != nil {
		return nil, err
	}
	roots, err := ep.trustedRootCAs()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small compressed body must not expand to a large one
		MaxResponseHeaderBytes: 64 << 10,
		// Data that a server sends after its answer must not be read as the next answer, nor be logged to
		// stderr by net/http.
		DisableKeepAlives:   true,
		TLSHandshakeTimeout: 10 * time.Second,
	}
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
	}
	return &httpDoer{&http.Client{
		Transport: t,
		// A redirect would send the prompt and key to an address that the user has not configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// trustedRootCAs returns the trusted root certificates; nil for the system's.
func (ep *Endpoint) trustedRootCAs() (*x509.CertPool, error) {
	if ep.CAFile == "" {
		return nil, nil
	}
	pem, _, err := owner.ReadRegularFile(ep.CAFile, 4<<20)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file: %s contains no PEM certificate; name the file of the CA", ep.CAFile)
	}
	return pool, nil
}

// Do sends a request and returns its response, read to the end.
func (d *httpDoer) Do(req *http.Request) (*http.Response, error) {
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, withoutRequestURL(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBodyBytes+1))
	if resp.StatusCode != http.StatusOK {
		// The part of the body that was read is only used for the message.
		return nil, &HTTPStatusError{Status: resp.StatusCode, Message: serviceErrorMessage(resp.StatusCode, body), RetryAfter: retryAfter(resp.Header)}
	}
	switch {
	case err != nil:
		return nil, withoutRequestURL(err)
	case len(body) > maxResponseBodyBytes:
		return nil, fmt.Errorf("the response is longer than %d bytes; check evaluator.base_url", maxResponseBodyBytes)
	}
	text, err := extractChatCompletionText(resp.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, err
	}
	if body, err = encodeChatCompletionBody(text, readTokenCounts(body)); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// withoutRequestURL removes the method and the URL from an error of the HTTP client: the caller
// knows both, and the URL may contain secrets. It returns errConnectionCut if the connection was
// closed.
func withoutRequestURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errConnectionCut
	}
	return err
}

// serviceErrorMessage returns the message in the body of an unsuccessful response, in the usual forms:
// {"error":{"message":…}}, {"error":"…"}, {"message":…}, {"detail":"…"}, a list of one of these; "" if it is not
// readable. For a redirect it returns advice.
func serviceErrorMessage(status int, body []byte) string {
	if status >= 300 && status <= 399 {
		return "redirects are not followed; set evaluator.base_url to the target"
	}
	v := jsontext.Value(body)
	if !v.IsValid() {
		return ""
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	for name := ""; ; {
		t, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		isName := false
		if kind, n := dec.StackIndex(dec.StackDepth()); kind == '{' && n%2 == 1 {
			isName = true
		}
		switch {
		case isName && t.Kind() == '"':
			name = t.String()
		case t.Kind() == '"' && (name == "message" || name == "error" || name == "detail"):
			return t.String()
		}
	}
}

// retryAfter returns how long a response asks to wait, at least 0. A date is compared with the response's own
// Date, so that the clocks need not agree.
func retryAfter(h http.Header) time.Duration {
	s := strings.TrimSpace(h.Get("Retry-After"))
	if s == "" {
		return 0
	}
	const most = 24 * time.Hour
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		if !(seconds > 0) {
			return 0
		}
		if seconds > most.Seconds() {
			return most
		}
		return time.Duration(seconds * float64(time.Second))
	}
	at, err := http.ParseTime(s)
	if err != nil {
		return 0
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(date), 0), most)
}
