package state

import (
	"fmt"
	"slices"
	"time"
)

// A rise in evaluations is sudden if an hour has at least riseLeast of them, and more than riseFactor
// times the mean of the 24 hours before. The first day has no mean to compare with.
const (
	riseLeast  = 20
	riseFactor = 3
	usageHours = 24
)

// An hour counts the evaluations in one hour of the store's clock.
type hour struct {
	Hour int64 `json:"h"` // hours since 1970
	Used int   `json:"n"`
}

// An HourUse counts the evaluations charged in one hour.
type HourUse struct {
	From time.Time `json:"from"` // UTC
	Used int       `json:"used"`
}

// A Rise is a sudden rise in evaluations. At most one is reported per hour.
type Rise struct {
	From time.Time // start of the hour, in UTC
	Used int       // evaluations in this hour so far
	Mean float64   // of the 24 hours before
}

func (r *Rise) String() string {
	return fmt.Sprintf("%d evaluations since %s; the mean of the 24 hours before is %.1f an hour. The agent may be in a loop: see 'shield session list'",
		r.Used, r.From.Format("15:04 MST"), r.Mean)
}

// count counts an evaluation and returns the sudden rise that it causes, or nil.
func (r *record) count() *Rise {
	now := r.Now / int64(time.Hour)
	r.Hours = slices.DeleteFunc(r.Hours, func(h hour) bool { return h.Hour < now-usageHours || h.Hour > now })
	if n := len(r.Hours); n == 0 || r.Hours[n-1].Hour != now {
		r.Hours = append(r.Hours, hour{Hour: now})
	}
	if r.First == 0 {
		r.First = r.Hours[0].Hour
	}
	last := &r.Hours[len(r.Hours)-1]
	last.Used++
	before := 0
	for _, h := range r.Hours[:len(r.Hours)-1] {
		before += h.Used
	}
	if now-r.First < usageHours || last.Used < riseLeast || last.Used*usageHours <= riseFactor*before || r.RiseIn == now {
		return nil
	}
	r.RiseIn = now
	return &Rise{From: r.wallAt(now * int64(time.Hour)), Used: last.Used, Mean: float64(before) / usageHours}
}

// usage returns the evaluations of the last 24 hours, the current hour last.
func (r *record) usage() []HourUse {
	now := r.Now / int64(time.Hour)
	out := make([]HourUse, usageHours)
	for i := range out {
		at := now - usageHours + 1 + int64(i)
		out[i].From = r.wallAt(at * int64(time.Hour))
		if j := slices.IndexFunc(r.Hours, func(h hour) bool { return h.Hour == at }); j >= 0 {
			out[i].Used = r.Hours[j].Used
		}
	}
	return out
}
