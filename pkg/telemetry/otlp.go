package telemetry

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// An otlpMessage is an OTLP 1 protobuf message, encoded field by field: the generated types would need a
// reflection library that slows every start. Field numbers are those of opentelemetry/proto; a test
// decodes messages with the generated types.
type otlpMessage []byte

// Wire types, https://protobuf.dev/programming-guides/encoding/.
const (
	wireTypeVarint  = 0
	wireTypeFixed64 = 1 // eight bytes
	wireTypeBytes   = 2
)

func (m otlpMessage) appendTag(field, wire uint64) otlpMessage {
	return binary.AppendUvarint(m, field<<3|wire)
}

//go:noinline
func (m otlpMessage) appendText(field uint64, value string) otlpMessage {
	if value == "" {
		return m
	}
	return append(binary.AppendUvarint(m.appendTag(field, wireTypeBytes), uint64(len(value))), value...)
}

func (m otlpMessage) appendBytes(field uint64, value []byte) otlpMessage {
	return m.appendText(field, string(value))
}

//go:noinline
func (m otlpMessage) appendVarint(field uint64, value uint64) otlpMessage {
	return binary.AppendUvarint(m.appendTag(field, wireTypeVarint), value)
}

func (m otlpMessage) appendFixed64(field uint64, value uint64) otlpMessage {
	return binary.LittleEndian.AppendUint64(m.appendTag(field, wireTypeFixed64), value)
}

func (m otlpMessage) appendDouble(field uint64, value float64) otlpMessage {
	return m.appendFixed64(field, math.Float64bits(value))
}

func (m otlpMessage) appendMessages(field uint64, parts ...otlpMessage) otlpMessage {
	for _, part := range parts {
		m = append(binary.AppendUvarint(m.appendTag(field, wireTypeBytes), uint64(len(part))), part...)
	}
	return m
}

// appendPacked appends a packed repeated field of 8-byte numbers.
func (m otlpMessage) appendPacked(field uint64, values []uint64) otlpMessage {
	var all otlpMessage
	for _, value := range values {
		all = binary.LittleEndian.AppendUint64(all, value)
	}
	return m.appendMessages(field, all)
}

// stringAttribute returns a KeyValue message of OTLP with a string value.
func stringAttribute(key, value string) otlpMessage {
	return otlpMessage(nil).appendText(1, key).appendMessages(2, otlpMessage(nil).appendText(1, value))
}

func intAttribute(key string, value int) otlpMessage {
	return otlpMessage(nil).appendText(1, key).appendMessages(2, otlpMessage(nil).appendVarint(3, uint64(int64(value))))
}

// stringAttributes returns attributes for pairs of key and value, without empty values.
func stringAttributes(pairs ...string) (out []otlpMessage) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, stringAttribute(pairs[i], pairs[i+1]))
		}
	}
	return out
}

// toolNameAttributeValue returns an action's type as an attribute value; "other" if it is not a plain name, since the
// agent can put any text there.
func toolNameAttributeValue(actionType string) string {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.')
	}
	if actionType == "" || len(actionType) > 64 || strings.ContainsFunc(actionType, odd) {
		return "other"
	}
	return actionType
}

// exportRequest returns an export request with one resource and one scope.
func (e *Exporter) exportRequest(parts []otlpMessage) otlpMessage {
	resource := otlpMessage(nil).appendMessages(1, stringAttributes("service.name", "shield", "service.version", e.opts.ShieldVersion)...)
	scope := otlpMessage(nil).appendText(1, "github.com/shieldcli/shield").appendText(2, e.opts.ShieldVersion)
	scoped := otlpMessage(nil).appendMessages(1, scope).appendMessages(2, parts...).appendText(3, OpenTelemetrySchemaURL)
	return otlpMessage(nil).appendMessages(1, otlpMessage(nil).appendMessages(1, resource).appendMessages(2, scoped).appendText(3, OpenTelemetrySchemaURL))
}

// traceRequest returns an ExportTraceServiceRequest with the spans of actions.
func (e *Exporter) traceRequest(batch []Action) otlpMessage {
	var spans []otlpMessage
	for i := range batch {
		spans = append(spans, actionSpans(&batch[i])...)
	}
	return e.exportRequest(spans)
}

// actionSpans returns the span of an action, and one for each judge's answer. Answers of one tier start
// together; the next tier starts after the last of them.
func actionSpans(a *Action) []otlpMessage {
	trace, root := randomBytes(16), randomBytes(8)
	name := toolNameAttributeValue(a.Type)
	top := newSpan(trace, root, nil, "execute_tool "+name, a.Start, a.Latency, a.ErrorCode)
	spans := []otlpMessage{top.appendMessages(9, append(stringAttributes("gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", name,
		"shield.decision", a.Decision, "shield.rule", a.Rule, "error.type", a.ErrorCode), intAttribute("shield.tier", a.Tier))...)}
	start, end, tier := a.Start, a.Start, -1
	for _, s := range a.Steps {
		if s.Tier != tier {
			start, tier = end, s.Tier
		}
		child := newSpan(trace, randomBytes(8), root, "shield "+s.JudgeName, start, s.Latency, s.ErrorCode)
		spans = append(spans, child.appendMessages(9, append(stringAttributes("shield.source", s.JudgeName, "shield.decision", s.Decision, "shield.rule", s.Rule, "error.type", s.ErrorCode), intAttribute("shield.tier", s.Tier))...))
		if until := start.Add(s.Latency); until.After(end) {
			end = until
		}
	}
	return spans
}

func newSpan(trace, id, parent []byte, name string, start time.Time, latency time.Duration, failure string) otlpMessage {
	const internal, failed = 1, 2
	s := otlpMessage(nil).appendBytes(1, trace).appendBytes(2, id).appendBytes(4, parent).appendText(5, name).appendVarint(6, internal).
		appendFixed64(7, uint64(start.UnixNano())).appendFixed64(8, uint64(start.Add(latency).UnixNano()))
	if failure != "" {
		s = s.appendMessages(15, otlpMessage(nil).appendText(2, failure).appendVarint(3, failed))
	}
	return s
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // does not fail
	return b
}

// latencyHistogramBoundsSeconds are the upper bounds of the histogram's buckets, in seconds.
var latencyHistogramBoundsSeconds = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30}

// metricCounts are the totals since the start.
type metricCounts struct {
	latencyByDecisionAndTier map[metricKey]*histogram
	actionsWithDroppedSpans  uint64
}

// A metricKey is a combination of attributes that is counted separately.
type metricKey struct {
	decision string
	tier     int
}

type histogram struct {
	buckets []uint64
	count   uint64
	sum     float64
}

func newMetricCounts() metricCounts {
	return metricCounts{latencyByDecisionAndTier: map[metricKey]*histogram{}}
}

func (c *metricCounts) countAction(a *Action, spansDropped bool) {
	k := metricKey{a.Decision, a.Tier}
	h := c.latencyByDecisionAndTier[k]
	if h == nil {
		h = &histogram{buckets: make([]uint64, len(latencyHistogramBoundsSeconds)+1)}
		c.latencyByDecisionAndTier[k] = h
	}
	seconds := a.Latency.Seconds()
	at, _ := slices.BinarySearch(latencyHistogramBoundsSeconds, seconds)
	h.buckets[at]++
	h.count++
	h.sum += seconds
	if spansDropped {
		c.actionsWithDroppedSpans++
	}
}

// metricsRequest returns an ExportMetricsServiceRequest with the counts.
func (e *Exporter) metricsRequest() otlpMessage {
	const cumulative = 2
	from, now := uint64(e.startedAt.UnixNano()), uint64(e.opts.Clock().UnixNano())
	e.mu.Lock()
	defer e.mu.Unlock()
	var limits []uint64
	for _, bound := range latencyHistogramBoundsSeconds {
		limits = append(limits, math.Float64bits(bound))
	}
	kinds := slices.SortedFunc(maps.Keys(e.counts.latencyByDecisionAndTier), func(a, b metricKey) int {
		return cmp.Or(cmp.Compare(a.decision, b.decision), cmp.Compare(a.tier, b.tier))
	})
	var durations otlpMessage
	for _, k := range kinds {
		h := e.counts.latencyByDecisionAndTier[k]
		durations = durations.appendMessages(1, otlpMessage(nil).appendFixed64(2, from).appendFixed64(3, now).appendFixed64(4, h.count).appendDouble(5, h.sum).appendPacked(6, h.buckets).appendPacked(7, limits).
			appendMessages(9, stringAttribute("shield.decision", k.decision), intAttribute("shield.tier", k.tier)))
	}
	dropped := otlpMessage(nil).appendFixed64(2, from).appendFixed64(3, now).appendFixed64(6, e.counts.actionsWithDroppedSpans)
	return e.exportRequest([]otlpMessage{
		otlpMessage(nil).appendText(1, "shield.action.duration").appendText(2, "Actions by decision and tier, and how long each was judged").appendText(3, "s").
			appendMessages(9, durations.appendVarint(2, cumulative)),
		otlpMessage(nil).appendText(1, "shield.telemetry.dropped").appendText(2, "Actions whose spans were dropped").appendText(3, "{action}").
			appendMessages(7, otlpMessage(nil).appendMessages(1, dropped).appendVarint(2, cumulative).appendVarint(3, 1)),
	})
}
