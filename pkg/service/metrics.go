package service

import (
	"fmt"
	"net/http"

	"github.com/VictoriaMetrics/metrics"

	"github.com/shieldcli/shield/pkg/verdict"
)

// Metrics count what a service does, in Prometheus' format. They name no action,
// person or file.
type Metrics struct {
	set     *metrics.Set
	seconds *metrics.PrometheusHistogram
}

// NewMetrics returns metrics that are all zero.
func NewMetrics() *Metrics {
	set := metrics.NewSet()
	return &Metrics{set, set.NewPrometheusHistogramExt("shield_question_seconds", []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2})}
}

// Question counts a question of another process of this user, and whether it was
// decided here.
func (m *Metrics) Question(decided bool, seconds float64) {
	m.count("shield_questions_total{decided=\"%t\"}", decided)
	m.seconds.Update(seconds)
}

func (m *Metrics) verdict(v *verdict.Verdict) {
	m.count("shield_verdicts_total{decision=%q,tier=\"%d\"}", v.Decision.String(), v.Tier)
}

// refused counts a request without a verdict.
func (m *Metrics) refused(status int) { m.count("shield_requests_refused_total{code=\"%d\"}", status) }

func (m *Metrics) count(format string, labels ...any) {
	m.set.GetOrCreateCounter(fmt.Sprintf(format, labels...)).Inc()
}

// ServeHTTP answers with the metrics and those of the process.
func (m *Metrics) ServeHTTP(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.set.WritePrometheus(rw)
	metrics.WriteProcessMetrics(rw)
}
