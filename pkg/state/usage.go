package state

import (
	"fmt"
	"slices"
	"time"
)

// A rise in evaluations is sudden if an hour has at least minSpikeEvaluations of them, and more than spikeFactor
// times the mean of the 24 hours before. The first day has no mean to compare with.
const (
	minSpikeEvaluations = 20
	spikeFactor         = 3
	usageHours          = 24
)

// A hourlyCount counts the evaluations in one hour of the store's clock.
type hourlyCount struct {
	HourSince1970 int64 `json:"h"` // hours since 1970
	Evaluations   int   `json:"n"`
}

// An HourUse counts the evaluations charged in one hour.
type HourUse struct {
	From        time.Time `json:"from"` // UTC
	Evaluations int       `json:"used"`
}

// An UsageSpike is a sudden rise in evaluations. At most one is reported per hour.
type UsageSpike struct {
	From        time.Time // start of the hour, in UTC
	Evaluations int       // evaluations in this hour so far
	MeanBefore  float64   // mean per hour of the 24 hours before From
}

func (r *UsageSpike) String() string {
	return fmt.Sprintf("%d evaluations since %s; the mean of the 24 hours before is %.1f an hour. The agent may be in a loop: see 'shield session list'",
		r.Evaluations, r.From.Format("15:04 MST"), r.MeanBefore)
}

// countEvaluation counts an evaluation and returns the sudden rise that it causes, or nil.
func (r *limitRecord) countEvaluation() *UsageSpike {
	now := r.StoreTime / int64(time.Hour)
	r.Hours = slices.DeleteFunc(r.Hours, func(h hourlyCount) bool { return h.HourSince1970 < now-usageHours || h.HourSince1970 > now })
	if n := len(r.Hours); n == 0 || r.Hours[n-1].HourSince1970 != now {
		r.Hours = append(r.Hours, hourlyCount{HourSince1970: now})
	}
	if r.FirstHour == 0 {
		r.FirstHour = r.Hours[0].HourSince1970
	}
	last := &r.Hours[len(r.Hours)-1]
	last.Evaluations++
	before := 0
	for _, h := range r.Hours[:len(r.Hours)-1] {
		before += h.Evaluations
	}
	if now-r.FirstHour < usageHours || last.Evaluations < minSpikeEvaluations || last.Evaluations*usageHours <= spikeFactor*before || r.SpikeReportedHour == now {
		return nil
	}
	r.SpikeReportedHour = now
	return &UsageSpike{From: r.toWallTime(now * int64(time.Hour)), Evaluations: last.Evaluations, MeanBefore: float64(before) / usageHours}
}

// hourlyUsage returns the evaluations of the last 24 hours, the current hour last.
func (r *limitRecord) hourlyUsage() []HourUse {
	now := r.StoreTime / int64(time.Hour)
	out := make([]HourUse, usageHours)
	for i := range out {
		at := now - usageHours + 1 + int64(i)
		out[i].From = r.toWallTime(at * int64(time.Hour))
		if j := slices.IndexFunc(r.Hours, func(h hourlyCount) bool { return h.HourSince1970 == at }); j >= 0 {
			out[i].Evaluations = r.Hours[j].Evaluations
		}
	}
	return out
}
