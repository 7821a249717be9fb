package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// A record holds the used part of all limits. Times are nanoseconds on the store's own clock, which is
// UTC unless the system clock is wrong.
type record struct {
	Version int    `json:"v"`
	Now     int64  `json:"now"`  // the store's clock
	Wall    int64  `json:"wall"` // the wall clock at the same time
	Boot    string `json:"boot,omitempty"`
	Up      int64  `json:"up,omitempty"` // time since boot, in nanoseconds

	Used  int   `json:"used"`  // evaluations charged since the last refill
	Reset int64 `json:"reset"` // when Used goes back to 0

	Spent     int64 `json:"spent"` // units missing in the token bucket; see tokenUnits
	SpentAt   int64 `json:"spent_at"`
	RateFrom  int64 `json:"rate_from,omitempty"` // no rate token is free before this time
	Approvals []ask `json:"approvals,omitempty"` // requests of the last hour, oldest first
	AskFrom   int64 `json:"ask_from,omitempty"`  // no approval request is free before this time
	Cached    int   `json:"cached"`              // number of cache entries

	Hours  []hour `json:"hours,omitempty"` // evaluations of the current hour and the 24 before, oldest first
	RiseIn int64  `json:"rise,omitempty"`  // the hour whose sudden rise was reported
	First  int64  `json:"first,omitempty"` // the hour of the first evaluation: a rise needs a day to compare with
}

// An ask is one request for approval.
type ask struct {
	At int64 `json:"at"`
}

// recordVersion increases when a field changes its meaning. An older record is read, and gets this
// version with the next transaction; a newer one is an error.
const recordVersion = 1

// encode returns the record with a checksum in front: bbolt has none for its
// data pages.
func (r *record) encode() []byte {
	r.Version = recordVersion
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return append(order.AppendUint32(make([]byte, 0, 4+len(body)), crc32.ChecksumIEEE(body)), body...)
}

// A newerError is the version of a record that a newer shield wrote.
type newerError int

func (v newerError) Error() string {
	return fmt.Sprintf("the record of rate limit and budget has version %d, and this shield reads up to version %d", int(v), recordVersion)
}

func decodeRecord(b []byte) (*record, error) {
	if len(b) < 4 {
		return nil, errors.New("the record of rate limit and budget is missing")
	}
	if crc32.ChecksumIEEE(b[4:]) != order.Uint32(b) {
		return nil, errors.New("the checksum of rate limit and budget is wrong")
	}
	r := new(record)
	if err := json.Unmarshal(b[4:], r); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	switch {
	case r.Version > recordVersion:
		return nil, newerError(r.Version)
	case r.Version < 1:
		return nil, fmt.Errorf("the record of rate limit and budget has version %d, and versions begin with 1", r.Version)
	}
	return r, nil
}

// advance moves the store's clock by the plausible time passed since the record was written. It
// reports whether a clock was set back or restarted: this must be stored even without other changes,
// or no time would ever pass.
func (r *record) advance(now instant) bool {
	wall := nanos(now.wall)
	if r.Now == 0 {
		r.Now, r.Wall = wall, wall
	}
	passed := wall - r.Wall
	if now.known && now.boot == r.Boot && int64(now.up) >= r.Up {
		// A wall clock that was set back does not tell the time passed; one that was set forward tells
		// too much.
		if since := int64(now.up) - r.Up; passed < 0 || since < passed {
			passed = since
		}
	}
	restarted := wall < r.Wall || now.known && (now.boot != r.Boot || int64(now.up) < r.Up)
	r.Now += max(passed, 0)
	r.Now = min(r.Now, lastInstant)
	r.Wall = wall
	r.Boot, r.Up = "", 0
	if now.known {
		r.Boot, r.Up = now.boot, int64(now.up)
	}
	return restarted
}

// lastInstant is in the year 2116, so that sums of times and durations cannot overflow, however wrong
// the clock is.
const lastInstant = 1 << 62

func nanos(t time.Time) int64 {
	if t.Before(time.Unix(1, 0)) {
		return int64(time.Second)
	}
	if t.After(time.Unix(0, lastInstant)) {
		return lastInstant
	}
	return t.UnixNano()
}

// wallAt converts a time of the store's clock to the wall clock.
func (r *record) wallAt(at int64) time.Time { return time.Unix(0, r.Wall+at-r.Now).UTC() }
