package service

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Metrics are a service's counters in Prometheus' text format. They contain no actions, persons or
// files.
type Metrics struct {
	mu                             sync.Mutex
	countByPrometheusSeries        map[string]uint64 // by name and labels; label values are from small sets
	questionCountsByDurationBucket []uint64          // numbers of questions by duration: one for each of serviceQuestionDurationBoundsSeconds, and one for longer durations
	totalQuestionSeconds           float64
}

// serviceQuestionDurationBoundsSeconds are the upper bounds of the histogram, in seconds.
var serviceQuestionDurationBoundsSeconds = [...]float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2}

// NewMetrics returns metrics that are all zero.
func NewMetrics() *Metrics {
	return &Metrics{countByPrometheusSeries: map[string]uint64{}, questionCountsByDurationBucket: make([]uint64, len(serviceQuestionDurationBoundsSeconds)+1)}
}

// CountQuestionToService counts a question from another process of this user, and whether it was decided by this
// service.
func (m *Metrics) CountQuestionToService(isDecidedByService bool, seconds float64) {
	m.increment(`shield_questions_total{decided="%t"}`, isDecidedByService)
	m.mu.Lock()
	defer m.mu.Unlock()
	at, _ := slices.BinarySearch(serviceQuestionDurationBoundsSeconds[:], seconds)
	m.questionCountsByDurationBucket[at]++
	m.totalQuestionSeconds += seconds
}

func (m *Metrics) countVerdict(v *verdict.Verdict) {
	m.increment(`shield_verdicts_total{decision=%q,tier="%d"}`, v.Decision.String(), v.Tier)
}

// countRefusedRequest counts a request that got no verdict.
func (m *Metrics) countRefusedRequest(httpStatus int) {
	m.increment(`shield_requests_refused_total{code="%d"}`, httpStatus)
}

func (m *Metrics) increment(format string, labels ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.countByPrometheusSeries[fmt.Sprintf(format, labels...)]++
}

// ServeHTTP writes the metrics, and some values about the process: goroutines and memory.
func (m *Metrics) ServeHTTP(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Fprintf(rw, "%sgo_goroutines %d\ngo_memstats_heap_alloc_bytes %d\ngo_memstats_sys_bytes %d\n", m, runtime.NumGoroutine(), memory.HeapAlloc, memory.Sys)
}

// String returns the metrics as they are served.
func (m *Metrics) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, name := range sorted.Keys(m.countByPrometheusSeries) {
		fmt.Fprintf(&b, "%s %d\n", name, m.countByPrometheusSeries[name])
	}
	n := uint64(0)
	for i, bound := range serviceQuestionDurationBoundsSeconds {
		n += m.questionCountsByDurationBucket[i]
		fmt.Fprintf(&b, "shield_question_seconds_bucket{le=\"%v\"} %d\n", bound, n)
	}
	n += m.questionCountsByDurationBucket[len(serviceQuestionDurationBoundsSeconds)]
	fmt.Fprintf(&b, "shield_question_seconds_bucket{le=\"+Inf\"} %d\nshield_question_seconds_sum %v\nshield_question_seconds_count %d\n", n, m.totalQuestionSeconds, n)
	return b.String()
}
