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

// maxBody is the greatest length of a response body, in bytes.
const maxBody = 64 << 10

// A httpDoer sends requests and returns only what [readEnvelope] accepts as an
// answer: of responses with status 200, whole, at most maxBody long. It
// implements go-openai's HTTPDoer.
type httpDoer struct{ client *http.Client }

// newDoer returns a doer for an endpoint. It opens no connection.
func newDoer(ep *Endpoint) (*httpDoer, error) {
	proxy, err := ep.proxyURL()
	if err != nil {
		return nil, err
	}
	roots, err := ep.roots()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small body must not become a large one
		MaxResponseHeaderBytes: 64 << 10,
		// What a server sends after its answer must not be taken for the next one,
		// nor be written to stderr by net/http.
		DisableKeepAlives:   true,
		TLSHandshakeTimeout: 10 * time.Second,
	}
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
	}
	return &httpDoer{&http.Client{
		Transport: t,
		// A redirect would send prompt and key to a place that no one configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// roots returns the certificates to trust; nil for the system's.
func (ep *Endpoint) roots() (*x509.CertPool, error) {
	if ep.CAFile == "" {
		return nil, nil
	}
	pem, _, err := owner.ReadFile(ep.CAFile, 4<<20)
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
		return nil, plain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if resp.StatusCode != http.StatusOK {
		// What of the body could be read only explains the status.
		return nil, &StatusError{Status: resp.StatusCode, Message: failure(resp.StatusCode, body), RetryAfter: retryAfter(resp.Header)}
	}
	switch {
	case err != nil:
		return nil, plain(err)
	case len(body) > maxBody:
		return nil, fmt.Errorf("the response is longer than %d bytes; check evaluator.base_url", maxBody)
	}
	text, err := readEnvelope(resp.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, err
	}
	if body, err = envelope(text, tokens(body)); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// plain takes method and URL off an error of the HTTP client, which say
// nothing new and may hold more than should be shown, and names a connection
// that was cut.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// failure returns what the body of an unsuccessful response says, in the forms
// in use: {"error":{"message":…}}, {"error":"…"}, {"message":…}, a list of
// one of these, or nothing readable.
func failure(status int, body []byte) string {
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

// retryAfter returns how long a response asks to wait, at least 0. A date is
// measured from the response's own, so that the clocks need not agree.
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
