package service

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/shieldcli/shield/internal/bearer"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Limits of HTTP.
const (
	maxConnections      = 512              // connections
	maxHeaderBytes      = 16 << 10         // bytes
	actionReadTimeout   = 5 * time.Minute  // pause of a client between its actions
	verdictWriteTimeout = 30 * time.Second // time for a client to read a verdict
)

// HTTPSServiceOptions configure a [HTTPSService].
type HTTPSServiceOptions struct {
	// Judge judges the actions that a client sends, and passes each verdict to out after it is logged;
	// more says that another verdict follows at once. An error that wraps ErrNotReady means that
	// nothing was read.
	Judge                func(ctx context.Context, client string, actions io.Reader, out func(v *verdict.Verdict, more bool) error) error
	ServiceStatusForJSON func() any // returns the response to GET /v1/status, encoded as JSON
	Metrics              *Metrics
	Clock                func() time.Time
}

// ErrNotReady is the error if the service cannot judge with its configuration.
var ErrNotReady = errors.New("the service cannot judge now; try again")

// An HTTPSService is the service for other machines: HTTP over TLS with bearer tokens.
// docs/openapi.yaml specifies it.
type HTTPSService struct {
	options         HTTPSServiceOptions
	credentials     atomic.Pointer[credentials]
	shutdownContext context.Context // ends when no more actions may be read
	stop            func()
}

type credentials struct {
	cert   *tls.Certificate
	tokens bearer.Tokens
}

// NewHTTPSService returns a service that refuses all requests until
// [HTTPSService.LoadCertificateAndTokens] is called.
func NewHTTPSService(o HTTPSServiceOptions) *HTTPSService {
	w := &HTTPSService{options: o}
	w.shutdownContext, w.stop = context.WithCancel(context.Background())
	return w
}

// LoadCertificateAndTokens reads certificate and tokens. On an error the previous ones stay in use.
func (w *HTTPSService) LoadCertificateAndTokens(s config.JudgingService) error {
	cert, err := bearer.LoadTLSCertificate(s.TLSCert, s.TLSKey)
	if err != nil {
		return fmt.Errorf("serve.%w", err)
	}
	tokens, err := bearer.LoadClientTokens(s.TokensFile, false)
	if err != nil {
		return fmt.Errorf("serve.tokens_file: %w", err)
	}
	w.credentials.Store(&credentials{cert, tokens})
	return nil
}

// Serve serves a listener until ctx ends, and then finishes the requests that were read.
func (w *HTTPSService) Serve(ctx context.Context, l net.Listener) error {
	room := newConnTracker()
	server := &http.Server{
		Handler:           w.Handler(),
		ConnContext:       room.trackConn,
		ConnState:         room.untrackConn,
		ReadHeaderTimeout: 5 * time.Second, // includes the TLS handshake
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(io.Discard, "", 0), // discards log lines, which unauthenticated clients could fill
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS13,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return w.credentials.Load().cert, nil },
		},
	}
	done := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		w.stop()
		done <- server.Shutdown(context.WithoutCancel(ctx))
	})()
	err := server.ServeTLS(netutil.LimitListener(l, maxConnections), "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return <-done
	}
	return fmt.Errorf("listen at %s: %w", l.Addr(), err)
}

// Handler returns the HTTP handler.
func (w *HTTPSService) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "ok\n") })
	mux.Handle("GET /metrics", w.requireToken(func(rw http.ResponseWriter, r *http.Request, _ string) { w.options.Metrics.ServeHTTP(rw, r) }))
	mux.Handle("GET /v1/status", w.requireToken(func(rw http.ResponseWriter, _ *http.Request, _ string) {
		writeJSON(rw, http.StatusOK, w.options.ServiceStatusForJSON())
	}))
	mux.Handle("POST /v1/actions", w.requireToken(w.handleActions))
	return mux
}

// writeJSON answers with JSON.
func writeJSON(rw http.ResponseWriter, status int, v any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Cache-Control", "no-store")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(v) // ignore the error: the client has disconnected
}

// refuse writes an error response. It is not a verdict, so nothing may be executed.
func (w *HTTPSService) refuse(rw http.ResponseWriter, status int, why string) {
	w.options.Metrics.countRefusedRequest(status)
	writeJSON(rw, status, map[string]string{"error": why})
}

// requireToken forwards requests with a valid token, with the client's name.
func (w *HTTPSService) requireToken(next func(rw http.ResponseWriter, r *http.Request, who string)) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		who, ok := w.credentials.Load().tokens.ClientName(r.Header)
		if !ok {
			rw.Header().Set("WWW-Authenticate", "Bearer")
			w.refuse(rw, http.StatusUnauthorized, "the token is missing or wrong; send the header Authorization: Bearer TOKEN")
			return
		}
		defer trackRequest(r)()
		next(rw, r, who)
	})
}

// handleActions judges the actions of a request and writes one verdict per line as soon as it is available.
// An incomplete response is aborted, which clients detect as an error.
func (w *HTTPSService) handleActions(rw http.ResponseWriter, r *http.Request, who string) {
	rc := http.NewResponseController(rw)
	_ = rc.EnableFullDuplex() // HTTP/2 does not need it
	// Shutdown aborts reading the body, which cancels the request's context; actions that were read
	// must still be judged.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(r.Context(), func() {
		if w.shutdownContext.Err() == nil {
			cancel()
		}
	})()
	defer context.AfterFunc(w.shutdownContext, func() { _ = rc.SetReadDeadline(w.options.Clock()) })()
	body := &actionBody{reader: r.Body, shutdown: w.shutdownContext, extendActionReadDeadline: func() { _ = rc.SetReadDeadline(w.options.Clock().Add(actionReadTimeout)) }}
	rw.Header().Set("Content-Type", "application/x-ndjson")
	rw.Header().Set("Cache-Control", "no-store")
	out := verdict.NewWriter(verdictWriter{rw, rc, w.options.Clock})
	n := 0
	err := w.options.Judge(ctx, who, body, func(v *verdict.Verdict, more bool) error {
		n++
		out.DefersFlushUntilNextVerdict = more
		w.options.Metrics.countVerdict(v)
		return out.Write(v)
	})
	switch {
	case errors.Is(err, ErrNotReady) && n == 0:
		w.refuse(rw, http.StatusInternalServerError, err.Error())
	case err != nil && n == 0 && ctx.Err() == nil:
		w.refuse(rw, http.StatusBadRequest, "the request body could not be read: "+err.Error()+"; send valid JSON Lines")
	case err != nil:
		panic(http.ErrAbortHandler)
	case n == 0:
		w.refuse(rw, http.StatusBadRequest, "the request contains no action; send JSON Lines")
	}
}

// An actionBody reads the actions that a client sends. It ends when the service does.
type actionBody struct {
	reader                   io.Reader
	shutdown                 context.Context
	extendActionReadDeadline func() // extends the client's read deadline
}

func (b *actionBody) Read(p []byte) (int, error) {
	b.extendActionReadDeadline()
	if b.shutdown.Err() != nil { // extendActionReadDeadline may have replaced the read deadline that the shutdown set
		return 0, io.EOF
	}
	n, err := b.reader.Read(p)
	if err != nil && b.shutdown.Err() != nil {
		err = io.EOF
	}
	return n, err
}

// A verdictWriter sends each verdict at once, and fails if the client does not read in time.
type verdictWriter struct {
	rw         http.ResponseWriter
	controller *http.ResponseController
	clock      func() time.Time
}

func (w verdictWriter) Write(p []byte) (int, error) {
	if err := w.controller.SetWriteDeadline(w.clock().Add(verdictWriteTimeout)); err != nil {
		return 0, err
	}
	n, err := w.rw.Write(p)
	if err == nil {
		err = w.controller.Flush()
	}
	return n, err
}
