package state

import (
	"fmt"
	"slices"
	"time"
)

// A rise in evaluations is sudden if an hour has at least minSpikeEvaluations of them, and more than spikeMultipleOfHourlyMean
// times the mean of the 24 hours before. The first day has no mean to compare with.
const (
	minSpikeEvaluations       = 20
	spikeMultipleOfHourlyMean = 3
	usageWindowHours          = 24
)

// A hourlyCount counts the evaluations in one hour of the store's clock.
type hourlyCount struct {
	HourSince1970 int64 `json:"h"` // hours since 1970
	Evaluations   int   `json:"n"`
}

// An HourlyEvaluationCount counts the evaluations charged in one hour.
type HourlyEvaluationCount struct {
	From        time.Time `json:"from"` // UTC
	Evaluations int       `json:"used"`
}

// A UsageSpike is a sudden rise in evaluations. At most one is reported per hour.
type UsageSpike struct {
	From                             time.Time // start of the hour, in UTC
	Evaluations                      int       // evaluations in this hour so far
	MeanHourlyEvaluationsBeforeSpike float64   // mean per hour of the 24 hours before From
}

func (r *UsageSpike) String() string {
	return fmt.Sprintf("%d evaluations since %s; the mean of the 24 hours before is %.1f an hour. The agent may be in a loop: see 'shield session list'",
		r.Evaluations, r.From.Format("15:04 MST"), r.MeanHourlyEvaluationsBeforeSpike)
}

// countEvaluation counts an evaluation and returns the sudden rise that it causes, or nil.
func (r *limitRecord) countEvaluation() *UsageSpike {
	now := r.StoreClockUnixNano / int64(time.Hour)
	r.EvaluationsByHour = slices.DeleteFunc(r.EvaluationsByHour, func(h hourlyCount) bool { return h.HourSince1970 < now-usageWindowHours || h.HourSince1970 > now })
	if n := len(r.EvaluationsByHour); n == 0 || r.EvaluationsByHour[n-1].HourSince1970 != now {
		r.EvaluationsByHour = append(r.EvaluationsByHour, hourlyCount{HourSince1970: now})
	}
	if r.FirstEvaluationHour == 0 {
		r.FirstEvaluationHour = r.EvaluationsByHour[0].HourSince1970
	}
	last := &r.EvaluationsByHour[len(r.EvaluationsByHour)-1]
	last.Evaluations++
	before := 0
	for _, h := range r.EvaluationsByHour[:len(r.EvaluationsByHour)-1] {
		before += h.Evaluations
	}
	if now-r.FirstEvaluationHour < usageWindowHours || last.Evaluations < minSpikeEvaluations || last.Evaluations*usageWindowHours <= spikeMultipleOfHourlyMean*before || r.SpikeReportedHour == now {
		return nil
	}
	r.SpikeReportedHour = now
	return &UsageSpike{From: r.toWallTime(now * int64(time.Hour)), Evaluations: last.Evaluations, MeanHourlyEvaluationsBeforeSpike: float64(before) / usageWindowHours}
}

// hourlyUsage returns the evaluations of the last 24 hours, the current hour last.
func (r *limitRecord) hourlyUsage() []HourlyEvaluationCount {
	now := r.StoreClockUnixNano / int64(time.Hour)
	out := make([]HourlyEvaluationCount, usageWindowHours)
	for i := range out {
		at := now - usageWindowHours + 1 + int64(i)
		out[i].From = r.toWallTime(at * int64(time.Hour))
		if j := slices.IndexFunc(r.EvaluationsByHour, func(h hourlyCount) bool { return h.HourSince1970 == at }); j >= 0 {
			out[i].Evaluations = r.EvaluationsByHour[j].Evaluations
		}
	}
	return out
}
