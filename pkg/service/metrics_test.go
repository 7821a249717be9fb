package service

import "testing"

// TestMetrics checks the text format: a bucket of a histogram counts those below it, too.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	m.CountQuestionToService(true, 0.0005)
	m.CountQuestionToService(true, 0.15)
	m.CountQuestionToService(false, 3)
	m.countRefusedRequest(401)
	const want = `shield_questions_total{decided="false"} 1
shield_questions_total{decided="true"} 2
shield_requests_refused_total{code="401"} 1
shield_question_seconds_bucket{le="0.0005"} 1
shield_question_seconds_bucket{le="0.001"} 1
shield_question_seconds_bucket{le="0.002"} 1
shield_question_seconds_bucket{le="0.005"} 1
shield_question_seconds_bucket{le="0.01"} 1
shield_question_seconds_bucket{le="0.02"} 1
shield_question_seconds_bucket{le="0.05"} 1
shield_question_seconds_bucket{le="0.1"} 1
shield_question_seconds_bucket{le="0.2"} 2
shield_question_seconds_bucket{le="+Inf"} 3
shield_question_seconds_sum 3.1505
shield_question_seconds_count 3
`
	if got := m.String(); got != want {
		t.Errorf("got\n%s", got)
	}
}
