// Package telemetry sends judged actions to an OpenTelemetry collector by OTLP over HTTP: a span for
// each action with child spans for the answers, and counts. It sends no text of an action, and never
// blocks: data that the collector does not accept in time is dropped and counted.
//
// Attributes are those of OpenTelemetry's conventions for generative AI, version 1.41.0, and
// shield's own.
package telemetry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Limits of queued and sent data.
const (
	maxQueuedActions      = 2048             // actions in the queue; further ones are dropped
	maxActionsPerRequest  = 256              // actions in a request
	spanExportInterval    = 5 * time.Second  // spans
	metricsExportInterval = 30 * time.Second // metrics
)

// OpenTelemetrySchemaURL is the URL of the semantic conventions' version.
const OpenTelemetrySchemaURL = "https://opentelemetry.io/schemas/1.41.0"

// An Action is one judged action.
type Action struct {
	Type      string // as the agent named it
	Start     time.Time
	Latency   time.Duration
	Decision  string
	Tier      int
	Rule      string
	ErrorCode string // error code
	Steps     []Step // in order
}

// A Step is the answer of one judge of a tier.
type Step struct {
	JudgeName string
	Tier      int
	Decision  string
	Rule      string
	ErrorCode string
	Latency   time.Duration
}

// Options configure an [Exporter].
type Options struct {
	CollectorURL          string         // URL of the collector, without the paths /v1/traces and /v1/metrics
	ShieldVersion         string         // of shield
	Roots                 *x509.CertPool // trusted instead of the system's certificates; may be nil
	Clock                 func() time.Time
	NotifyCollectorStatus func(text string) // receives a notice when the collector stops answering, and when it answers again
}

// An Exporter sends observed actions. It is safe for concurrent use.
type Exporter struct {
	opts      Options
	client    *http.Client
	queue     chan Action
	startedAt time.Time

	mu     sync.Mutex
	counts metricCounts

	collectorFailing bool // used only by the sending goroutine

	// requestTimeout limits one request to the collector, and shutdownTimeout the sending of unsent
	// data at shutdown.
	requestTimeout, shutdownTimeout time.Duration
}

// CheckCollectorURL returns an error unless a URL is https, or http on this machine.
func CheckCollectorURL(collectorURL string) error {
	u, err := url.Parse(collectorURL)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the address is not a URL; write the address of an OpenTelemetry collector, such as http://localhost:4318")
	case u.User != nil:
		return errors.New("the URL must not contain a user or password; remove it")
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http":
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return nil
		}
	}
	return errors.New("http is allowed on this machine only; use https://HOST, or http://localhost:PORT")
}

// New returns an exporter. Nothing is sent until [Exporter.Run].
func New(opts Options) (*Exporter, error) {
	if err := CheckCollectorURL(opts.CollectorURL); err != nil {
		return nil, err
	}
	opts.CollectorURL = strings.TrimSuffix(opts.CollectorURL, "/")
	return &Exporter{
		opts: opts, queue: make(chan Action, maxQueuedActions), startedAt: opts.Clock(), counts: newMetricCounts(),
		requestTimeout: 3 * time.Second, shutdownTimeout: 2 * time.Second,
		client: &http.Client{
			Transport: &http.Transport{
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opts.Roots},
				MaxResponseHeaderBytes: 16 << 10, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Observe queues an action. It never blocks.
func (e *Exporter) Observe(a Action) {
	dropped := false
	select {
	case e.queue <- a:
	default:
		dropped = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts.countAction(&a, dropped)
}

// Run sends observed actions and their counts to the collector at regular intervals. When ctx ends, it sends
// what is left and returns.
func (e *Exporter) Run(ctx context.Context) {
	spans, counts := time.NewTicker(spanExportInterval), time.NewTicker(metricsExportInterval)
	defer spans.Stop()
	defer counts.Stop()
	for {
		select {
		case <-spans.C:
			e.sendSpans(ctx)
		case <-counts.C:
			e.sendCounts(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.shutdownTimeout)
			defer cancel()
			e.sendSpans(last)
			e.sendCounts(last)
			return
		}
	}
}

// sendSpans sends the queued actions. Spans that the collector does not accept are lost.
func (e *Exporter) sendSpans(ctx context.Context) {
	for len(e.queue) > 0 && ctx.Err() == nil {
		var batch []Action
		for len(batch) < maxActionsPerRequest && len(e.queue) > 0 {
			batch = append(batch, <-e.queue)
		}
		if err := e.post(ctx, "/v1/traces", e.traceRequest(batch)); err != nil {
			e.mu.Lock()
			e.counts.actionsWithDroppedSpans += uint64(len(batch))
			e.mu.Unlock()
			return // do not retry an unreachable collector for each batch
		}
	}
}

func (e *Exporter) sendCounts(ctx context.Context) {
	_ = e.post(ctx, "/v1/metrics", e.metricsRequest()) // an error loses nothing: the counts are totals, so the next metrics include them
}

func (e *Exporter) post(ctx context.Context, path string, m otlpMessage) error {
	err := e.tryPost(ctx, path, m)
	if failing := err != nil; failing != e.collectorFailing {
		e.collectorFailing = failing
		text := "telemetry: the OpenTelemetry collector answers again"
		if failing {
			text = fmt.Sprintf("telemetry: %v; the spans are dropped until the collector answers; check telemetry.otlp", err)
		}
		if e.opts.NotifyCollectorStatus != nil {
			e.opts.NotifyCollectorStatus(text)
		}
	}
	return err
}

func (e *Exporter) tryPost(ctx context.Context, path string, m otlpMessage) error {
	ctx, cancel := context.WithTimeout(ctx, e.requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.opts.CollectorURL+path, bytes.NewReader(m))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // read the rest, so that the connection can be reused
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s with status %d", path, resp.StatusCode)
	}
	return nil
}
