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

// A message is an OTLP 1 protobuf message, encoded field by field: the generated types would need a
// reflection library that slows every start. Field numbers are those of opentelemetry/proto; a test
// decodes messages with the generated types.
type message []byte

// Wire types, https://protobuf.dev/programming-guides/encoding/.
const (
	wireVarint = 0
	wireFixed  = 1 // eight bytes
	wireBytes  = 2
)

func (m message) tag(field, wire uint64) message { return binary.AppendUvarint(m, field<<3|wire) }

//go:noinline
func (m message) text(field uint64, value string) message {
	if value == "" {
		return m
	}
	return append(binary.AppendUvarint(m.tag(field, wireBytes), uint64(len(value))), value...)
}

func (m message) bytes(field uint64, value []byte) message {
	return m.text(field, string(value))
}

//go:noinline
func (m message) varint(field uint64, value uint64) message {
	return binary.AppendUvarint(m.tag(field, wireVarint), value)
}

func (m message) fixed(field uint64, value uint64) message {
	return binary.LittleEndian.AppendUint64(m.tag(field, wireFixed), value)
}

func (m message) double(field uint64, value float64) message {
	return m.fixed(field, math.Float64bits(value))
}

func (m message) each(field uint64, parts ...message) message {
	for _, part := range parts {
		m = append(binary.AppendUvarint(m.tag(field, wireBytes), uint64(len(part))), part...)
	}
	return m
}

// packed appends a packed repeated field of 8-byte numbers.
func (m message) packed(field uint64, values []uint64) message {
	var all message
	for _, value := range values {
		all = binary.LittleEndian.AppendUint64(all, value)
	}
	return m.each(field, all)
}

// attribute is a KeyValue.
func attribute(key, value string) message {
	return message(nil).text(1, key).each(2, message(nil).text(1, value))
}

func number(key string, value int) message {
	return message(nil).text(1, key).each(2, message(nil).varint(3, uint64(int64(value))))
}

// attributes returns attributes for pairs of key and value, without empty values.
func attributes(pairs ...string) (out []message) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, attribute(pairs[i], pairs[i+1]))
		}
	}
	return out
}

// toolName returns an action's type as an attribute value; "other" if it is not a plain name, since the
// agent can put any text there.
func toolName(typ string) string {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.')
	}
	if typ == "" || len(typ) > 64 || strings.ContainsFunc(typ, odd) {
		return "other"
	}
	return typ
}

// export returns an export request with one resource and one scope.
func (e *Exporter) export(parts []message) message {
	resource := message(nil).each(1, attributes("service.name", "shield", "service.version", e.opts.Version)...)
	scope := message(nil).text(1, "github.com/shieldcli/shield").text(2, e.opts.Version)
	scoped := message(nil).each(1, scope).each(2, parts...).text(3, Schema)
	return message(nil).each(1, message(nil).each(1, resource).each(2, scoped).text(3, Schema))
}

// traces returns an ExportTraceServiceRequest with the spans of actions.
func (e *Exporter) traces(batch []Action) message {
	var spans []message
	for i := range batch {
		spans = append(spans, spansOf(&batch[i])...)
	}
	return e.export(spans)
}

// spansOf returns the span of an action, and one for each judge's answer. Answers of one tier start
// together; the next tier starts after the last of them.
func spansOf(a *Action) []message {
	trace, root := random(16), random(8)
	name := toolName(a.Type)
	top := span(trace, root, nil, "execute_tool "+name, a.Start, a.Latency, a.Error)
	spans := []message{top.each(9, append(attributes("gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", name,
		"shield.decision", a.Decision, "shield.rule", a.Rule, "error.type", a.Error), number("shield.tier", a.Tier))...)}
	start, end, tier := a.Start, a.Start, -1
	for _, s := range a.Steps {
		if s.Tier != tier {
			start, tier = end, s.Tier
		}
		child := span(trace, random(8), root, "shield "+s.Source, start, s.Latency, s.Error)
		spans = append(spans, child.each(9, append(attributes("shield.source", s.Source, "shield.decision", s.Decision, "shield.rule", s.Rule, "error.type", s.Error), number("shield.tier", s.Tier))...))
		if until := start.Add(s.Latency); until.After(end) {
			end = until
		}
	}
	return spans
}

func span(trace, id, parent []byte, name string, start time.Time, latency time.Duration, failure string) message {
	const internal, failed = 1, 2
	s := message(nil).bytes(1, trace).bytes(2, id).bytes(4, parent).text(5, name).varint(6, internal).
		fixed(7, uint64(start.UnixNano())).fixed(8, uint64(start.Add(latency).UnixNano()))
	if failure != "" {
		s = s.each(15, message(nil).text(2, failure).varint(3, failed))
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

// counts are the totals since the start.
type counts struct {
	actions map[kind]*histogram
	dropped uint64
}

// A kind is a combination of attributes that is counted separately.
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

// metrics returns an ExportMetricsServiceRequest with the counts.
func (e *Exporter) metrics() message {
	const cumulative = 2
	from, now := uint64(e.began.UnixNano()), uint64(e.opts.Clock().UnixNano())
	e.mu.Lock()
	defer e.mu.Unlock()
	var limits []uint64
	for _, bound := range bounds {
		limits = append(limits, math.Float64bits(bound))
	}
	kinds := slices.SortedFunc(maps.Keys(e.counts.actions), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.decision, b.decision), cmp.Compare(a.tier, b.tier))
	})
	var durations message
	for _, k := range kinds {
		h := e.counts.actions[k]
		durations = durations.each(1, message(nil).fixed(2, from).fixed(3, now).fixed(4, h.count).double(5, h.sum).packed(6, h.buckets).packed(7, limits).
			each(9, attribute("shield.decision", k.decision), number("shield.tier", k.tier)))
	}
	dropped := message(nil).fixed(2, from).fixed(3, now).fixed(6, e.counts.dropped)
	return e.export([]message{
		message(nil).text(1, "shield.action.duration").text(2, "Actions by decision and tier, and how long each was judged").text(3, "s").
			each(9, durations.varint(2, cumulative)),
		message(nil).text(1, "shield.telemetry.dropped").text(2, "Actions whose spans were dropped").text(3, "{action}").
			each(7, message(nil).each(1, dropped).varint(2, cumulative).varint(3, 1)),
	})
}
