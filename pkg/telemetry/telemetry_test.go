package telemetry

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector takes OTLP over HTTP, as the protocol's own types read it.
type collector struct {
	t      *testing.T
	status int
	server *httptest.Server

	mu      sync.Mutex
	spans   []*tracepb.Span
	metrics *collectormetrics.ExportMetricsServiceRequest
	posts   int
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t, status: http.StatusOK}
	c.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.posts++
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Method != http.MethodPost {
			t.Errorf("%s %v, error %v", r.Method, r.Header, err)
		}
		w.WriteHeader(c.status)
		if c.status != http.StatusOK {
			return
		}
		switch r.URL.Path {
		case "/v1/traces":
			var m collectortrace.ExportTraceServiceRequest
			if err := proto.Unmarshal(body, &m); err != nil || len(m.ProtoReflect().GetUnknown()) > 0 {
				t.Errorf("unknown %x, error %v", m.ProtoReflect().GetUnknown(), err)
			}
			for _, rs := range m.ResourceSpans {
				if rs.SchemaUrl != OpenTelemetrySchemaURL || valueOf(rs.Resource.Attributes, "service.name") != "shield" {
					t.Errorf("resource %v", rs.Resource)
				}
				for _, ss := range rs.ScopeSpans {
					c.spans = append(c.spans, ss.Spans...)
				}
			}
		case "/v1/metrics":
			c.metrics = new(collectormetrics.ExportMetricsServiceRequest)
			if err := proto.Unmarshal(body, c.metrics); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("path %s", r.URL.Path)
		}
	}))
	t.Cleanup(c.server.Close)
	return c
}

func valueOf(list []*commonpb.KeyValue, key string) string {
	for _, kv := range list {
		if kv.Key == key {
			if _, ok := kv.Value.Value.(*commonpb.AnyValue_IntValue); ok {
				return string(rune('0' + kv.Value.GetIntValue()))
			}
			return kv.Value.GetStringValue()
		}
	}
	return ""
}

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *collector) exporter(told *[]string) *Exporter {
	c.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(c.server.Certificate())
	e, err := New(Options{CollectorURL: c.server.URL + "/", ShieldVersion: "v1", Roots: roots, Clock: func() time.Time { return start.Add(time.Hour) },
		NotifyCollectorStatus: func(text string) { *told = append(*told, text) }})
	if err != nil {
		c.t.Fatal(err)
	}
	e.requestTimeout, e.shutdownTimeout = time.Hour, time.Hour // a busy machine is not a collector that is away
	return e
}

// ended returns a context for an exporter that has only what is left to send.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

var judged = Action{
	Type: "execute_command", Start: start, Latency: 9 * time.Millisecond, Decision: "BLOCK", Tier: 1, Rule: "CI-001",
	Steps: []Step{
		{JudgeName: "policy", Tier: 0, Decision: "ESCALATE", Latency: time.Millisecond},
		{JudgeName: "heuristic", Tier: 1, Decision: "BLOCK", Rule: "CI-001", Latency: 2 * time.Millisecond},
		{JudgeName: "model", Tier: 1, Decision: "ALLOW", Latency: 5 * time.Millisecond},
		{JudgeName: "evaluator", Tier: 2, Decision: "BLOCK", ErrorCode: "timeout", Latency: time.Millisecond},
	},
}

func TestSpans(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	var told []string
	e := c.exporter(&told)
	e.Observe(judged)
	e.Run(ended(t))
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != 5 {
		t.Fatalf("%d spans", len(c.spans))
	}
	top := c.spans[0]
	for key, want := range map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "execute_command", "shield.decision": "BLOCK", "shield.tier": "1", "shield.rule": "CI-001", "error.type": "",
	} {
		if got := valueOf(top.Attributes, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if top.Name != "execute_tool execute_command" || len(top.TraceId) != 16 || len(top.SpanId) != 8 || top.ParentSpanId != nil || top.EndTimeUnixNano-top.StartTimeUnixNano != 9e6 || top.StartTimeUnixNano != uint64(start.UnixNano()) {
		t.Errorf("%v", top)
	}
	for i, want := range []struct {
		name       string
		begins, ms uint64
	}{{"shield policy", 0, 1}, {"shield heuristic", 1, 2}, {"shield model", 1, 5}, {"shield evaluator", 6, 1}} {
		s := c.spans[i+1]
		if s.Name != want.name || string(s.ParentSpanId) != string(top.SpanId) || string(s.TraceId) != string(top.TraceId) ||
			s.StartTimeUnixNano-top.StartTimeUnixNano != want.begins*1e6 || s.EndTimeUnixNano-s.StartTimeUnixNano != want.ms*1e6 {
			t.Errorf("%v, want %v", s, want)
		}
	}
	if s := c.spans[4]; s.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || valueOf(s.Attributes, "error.type") != "timeout" {
		t.Errorf("%v", s)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	var told []string
	e := c.exporter(&told)
	for i := range 10 {
		a := judged
		a.Latency = time.Duration(i) * time.Millisecond
		e.Observe(a)
	}
	e.Run(ended(t))
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.metrics.ResourceMetrics[0].ScopeMetrics[0].Metrics
	point := list[0].GetHistogram().DataPoints[0]
	total := uint64(0)
	for _, n := range point.BucketCounts {
		total += n
	}
	if point.Count != 10 || total != 10 || len(point.BucketCounts) != len(point.ExplicitBounds)+1 || point.GetSum() < 0.0449 || point.GetSum() > 0.0451 || valueOf(point.Attributes, "shield.decision") != "BLOCK" {
		t.Errorf("%v", point)
	}
	if dropped := list[1].GetSum().DataPoints[0].GetAsInt(); dropped != 0 {
		t.Errorf("%d dropped", dropped)
	}
}

// TestNoPayload holds that what an agent writes in place of a name goes nowhere.
func TestNoPayload(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]string{
		"read_file": "read_file", "mcp.fs.read": "mcp.fs.read", "": "other", "rm -rf /": "other", "/etc/passwd": "other", "a\nb": "other", strings.Repeat("x", 65): "other", "naïve": "other",
	} {
		a := judged
		a.Type = typ
		var span tracepb.Span
		if err := proto.Unmarshal(actionSpans(&a)[0], &span); err != nil {
			t.Fatal(err)
		}
		if got := valueOf(span.Attributes, "gen_ai.tool.name"); got != want || span.Name != "execute_tool "+want {
			t.Errorf("%q is told as %q", typ, got)
		}
	}
}

// TestNobodyWaits holds that a collector that is away, slow or in trouble costs an action
// nothing, and that what it does not take is counted.
func TestNobodyWaits(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.status = http.StatusServiceUnavailable
	var told []string
	e := c.exporter(&told)
	for range maxQueuedActions + 500 { // no one sends
		e.Observe(judged)
	}
	if len(e.queue) != maxQueuedActions || e.counts.actionsWithDroppedSpans != 500 || e.counts.latencyByDecisionAndTier[metricKey{"BLOCK", 1}].count != maxQueuedActions+500 {
		t.Errorf("%d queued, %d dropped", len(e.queue), e.counts.actionsWithDroppedSpans)
	}
	e.sendSpans(t.Context())
	e.sendSpans(t.Context())
	c.mu.Lock()
	posts := c.posts
	c.mu.Unlock()
	if posts != 2 || e.counts.actionsWithDroppedSpans != 500+2*maxActionsPerRequest || len(told) != 1 || !strings.Contains(told[0], "status 503") {
		t.Errorf("%d requests, %d dropped, told %q", posts, e.counts.actionsWithDroppedSpans, told)
	}
	c.mu.Lock()
	c.status = http.StatusOK
	c.mu.Unlock()
	e.Run(ended(t))
	if len(e.queue) != 0 || len(told) != 2 || !strings.Contains(told[1], "answers again") {
		t.Errorf("%d left, told %q", len(e.queue), told)
	}
	c.server.Close()
	e.Observe(judged)
	e.Run(ended(t)) // ends
	if len(told) != 3 {
		t.Errorf("told %q", told)
	}
}

// TestSlowCollector holds that a collector that takes a request and never answers ends
// with the context.
func TestSlowCollector(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e, err := New(Options{CollectorURL: "http://" + l.Addr().String(), Clock: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	e.Observe(judged)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { e.sendSpans(ctx); close(done) }()
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	e.Observe(judged)
	cancel()
	<-done
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for url, good := range map[string]bool{
		"https://otel.example.com": true, "https://otel.example.com:4318/base": true, "http://127.0.0.1:4318": true, "http://[::1]:4318": true,
		"http://otel.example.com": false, "http://localhost:4318": true, "http://localhost.a.test": false, "ftp://a": false, "": false, "otel:4318": false, "https://me:x@a.test": false, "https://a.test?x=1": false,
	} {
		if err := CheckCollectorURL(url); (err == nil) != good {
			t.Errorf("%s: error %v", url, err)
		}
	}
}
