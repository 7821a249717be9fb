package telemetry

import (
	"cmp"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func number(key string, value int) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(value)}}}
}

// texts returns the attributes that have a value, of pairs of key and value.
func texts(pairs ...string) (out []*commonpb.KeyValue) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, text(pairs[i], pairs[i+1]))
		}
	}
	return out
}

// toolName returns the type of an action as an attribute. The agent may write anything
// there; what is no plain name is left out.
func toolName(typ string) string {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.')
	}
	if typ == "" || len(typ) > 64 || strings.ContainsFunc(typ, odd) {
		return "other"
	}
	return typ
}

func (e *Exporter) resource() *resourcepb.Resource {
	return &resourcepb.Resource{Attributes: texts("service.name", "shield", "service.version", e.opts.Version)}
}

func (e *Exporter) scope() *commonpb.InstrumentationScope {
	return &commonpb.InstrumentationScope{Name: "github.com/shieldcli/shield", Version: e.opts.Version}
}

// traces returns the spans of actions. On the wire it is an ExportTraceServiceRequest,
// whose type is not used because it brings a whole RPC library with it.
func (e *Exporter) traces(batch []Action) *tracepb.TracesData {
	var spans []*tracepb.Span
	for i := range batch {
		spans = append(spans, spansOf(&batch[i])...)
	}
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: e.resource(), SchemaUrl: Schema,
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: e.scope(), SchemaUrl: Schema, Spans: spans}},
	}}}
}

// spansOf returns the span of an action, and one for each answer. Answers of one tier
// begin together, and those of the next when the last of them is there.
func spansOf(a *Action) []*tracepb.Span {
	trace, root := random(16), random(8)
	name := toolName(a.Type)
	top := span(trace, root, nil, "execute_tool "+name, a.Start, a.Latency, a.Error)
	top.Attributes = append(texts("gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", name,
		"shield.decision", a.Decision, "shield.rule", a.Rule, "error.type", a.Error), number("shield.tier", a.Tier))
	spans := []*tracepb.Span{top}
	start, end, tier := a.Start, a.Start, -1
	for _, s := range a.Steps {
		if s.Tier != tier {
			start, tier = end, s.Tier
		}
		child := span(trace, random(8), root, "shield "+s.Source, start, s.Latency, s.Error)
		child.Attributes = append(texts("shield.source", s.Source, "shield.decision", s.Decision, "shield.rule", s.Rule, "error.type", s.Error), number("shield.tier", s.Tier))
		spans = append(spans, child)
		if until := start.Add(s.Latency); until.After(end) {
			end = until
		}
	}
	return spans
}

func span(trace, id, parent []byte, name string, start time.Time, latency time.Duration, failure string) *tracepb.Span {
	s := &tracepb.Span{
		TraceId: trace, SpanId: id, ParentSpanId: parent, Name: name, Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: uint64(start.UnixNano()), EndTimeUnixNano: uint64(start.Add(latency).UnixNano()),
	}
	if failure != "" {
		s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: failure}
	}
	return s
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // does not fail
	return b
}

// bounds of the histogram, in seconds.
var bounds = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30}

// counts are what is counted since the start.
type counts struct {
	actions map[kind]*histogram
	dropped uint64
}

// A kind of action is counted apart.
type kind struct {
	decision string
	tier     int
}

type histogram struct {
	buckets []uint64
	count   uint64
	sum     float64
}

func newCounts() counts { return counts{actions: map[kind]*histogram{}} }

func (c *counts) add(a *Action, dropped bool) {
	k := kind{a.Decision, a.Tier}
	h := c.actions[k]
	if h == nil {
		h = &histogram{buckets: make([]uint64, len(bounds)+1)}
		c.actions[k] = h
	}
	seconds := a.Latency.Seconds()
	at, _ := slices.BinarySearch(bounds, seconds)
	h.buckets[at]++
	h.count++
	h.sum += seconds
	if dropped {
		c.dropped++
	}
}

// metrics returns what was counted. On the wire it is an ExportMetricsServiceRequest.
func (e *Exporter) metrics() *metricspb.MetricsData {
	from, now := uint64(e.began.UnixNano()), uint64(e.opts.Clock().UnixNano())
	e.mu.Lock()
	defer e.mu.Unlock()
	var durations []*metricspb.HistogramDataPoint
	for k, h := range e.counts.actions {
		durations = append(durations, &metricspb.HistogramDataPoint{
			StartTimeUnixNano: from, TimeUnixNano: now, Count: h.count, Sum: proto.Float64(h.sum), BucketCounts: slices.Clone(h.buckets), ExplicitBounds: bounds,
			Attributes: append(texts("shield.decision", k.decision), number("shield.tier", k.tier)),
		})
	}
	slices.SortFunc(durations, func(a, b *metricspb.HistogramDataPoint) int { return cmp.Compare(a.Count, b.Count) })
	const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	list := []*metricspb.Metric{
		{Name: "shield.action.duration", Unit: "s", Description: "Actions by decision and tier, and how long each was judged", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{DataPoints: durations, AggregationTemporality: cumulative}}},
		{Name: "shield.telemetry.dropped", Unit: "{action}", Description: "Actions whose spans were dropped", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{
			IsMonotonic: true, AggregationTemporality: cumulative,
			DataPoints: []*metricspb.NumberDataPoint{{StartTimeUnixNano: from, TimeUnixNano: now, Value: &metricspb.NumberDataPoint_AsInt{AsInt: int64(e.counts.dropped)}}},
		}}},
	}
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: e.resource(), SchemaUrl: Schema,
		ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: e.scope(), SchemaUrl: Schema, Metrics: list}},
	}}}
}
