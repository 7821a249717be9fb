package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// A limitRecord holds the used part of all limits. Times are nanoseconds on the store's own clock, which is
// UTC unless the system clock is wrong.
type limitRecord struct {
	Version            int    `json:"v"`
	StoreClockUnixNano int64  `json:"now"`  // the store's clock
	WallTime           int64  `json:"wall"` // the system clock at the moment of StoreClockUnixNano
	BootID             string `json:"boot,omitempty"`
	Uptime             int64  `json:"up,omitempty"` // time since boot, in nanoseconds

	EvaluationsUsed int   `json:"used"`  // evaluations charged since the last refill
	BudgetResetAt   int64 `json:"reset"` // when EvaluationsUsed goes back to 0

	SpentRateBucketUnits  int64             `json:"spent"` // units missing in the token bucket; see rateUnitsPerBucketToken
	RateBucketRefilledAt  int64             `json:"spent_at"`
	RateBlockedUntil      int64             `json:"rate_from,omitempty"` // no rate token is free before this time
	ApprovalRequests      []approvalRequest `json:"approvals,omitempty"` // requests of the last hour, oldest first
	ApprovalsBlockedUntil int64             `json:"ask_from,omitempty"`  // every approval request before this time is refused
	CachedEntryCount      int               `json:"cached"`              // number of cache entries

	EvaluationsByHour   []hourlyCount `json:"hours,omitempty"` // evaluations of the current hour and the 24 before, oldest first
	SpikeReportedHour   int64         `json:"rise,omitempty"`  // hour since 1970 in which a sudden rise in evaluations was last reported; 0 for none
	FirstEvaluationHour int64         `json:"first,omitempty"` // the hour of the first evaluation: a rise needs a day to compare with
}

// An approvalRequest records when a person was asked for an approval. It counts against the hourly limit.
type approvalRequest struct {
	At int64 `json:"at"`
}

// limitRecordVersion increases when a field changes its meaning. An older record is read, and gets this
// version with the next transaction; a newer one is an error.
const limitRecordVersion = 1

// encode returns the record with a checksum in front: bbolt has none for its
// data pages.
func (r *limitRecord) encode() []byte {
	r.Version = limitRecordVersion
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return append(byteOrder.AppendUint32(make([]byte, 0, 4+len(body)), crc32.ChecksumIEEE(body)), body...)
}

// A newerRecordVersionError is the error for a record that a newer shield wrote; its value is the version of the
// record.
type newerRecordVersionError int

func (v newerRecordVersionError) Error() string {
	return fmt.Sprintf("the record of rate limit and budget has version %d, and this shield reads up to version %d", int(v), limitRecordVersion)
}

func decodeLimitRecord(b []byte) (*limitRecord, error) {
	if len(b) < 4 {
		return nil, errors.New("the record of rate limit and budget is missing")
	}
	if crc32.ChecksumIEEE(b[4:]) != byteOrder.Uint32(b) {
		return nil, errors.New("the checksum of rate limit and budget is wrong")
	}
	r := new(limitRecord)
	if err := json.Unmarshal(b[4:], r); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	switch {
	case r.Version > limitRecordVersion:
		return nil, newerRecordVersionError(r.Version)
	case r.Version < 1:
		return nil, fmt.Errorf("the record of rate limit and budget has version %d, and versions begin with 1", r.Version)
	}
	return r, nil
}

// advanceClock moves the store's clock by the plausible time passed since the record was written. It
// reports whether a clock was set back or restarted: this must be stored even without other changes,
// or no time would ever pass.
func (r *limitRecord) advanceClock(now clockReading) bool {
	wall := clampedUnixNano(now.wallTime)
	if r.StoreClockUnixNano == 0 {
		r.StoreClockUnixNano, r.WallTime = wall, wall
	}
	passed := wall - r.WallTime
	if now.uptimeKnown && now.bootID == r.BootID && int64(now.uptime) >= r.Uptime {
		// A wall clock that was set back does not tell the time passed; one that was set forward tells
		// too much.
		if since := int64(now.uptime) - r.Uptime; passed < 0 || since < passed {
			passed = since
		}
	}
	restarted := wall < r.WallTime || now.uptimeKnown && (now.bootID != r.BootID || int64(now.uptime) < r.Uptime)
	r.StoreClockUnixNano += max(passed, 0)
	r.StoreClockUnixNano = min(r.StoreClockUnixNano, maxStoreClockUnixNano)
	r.WallTime = wall
	r.BootID, r.Uptime = "", 0
	if now.uptimeKnown {
		r.BootID, r.Uptime = now.bootID, int64(now.uptime)
	}
	return restarted
}

// maxStoreClockUnixNano is in the year 2116, so that sums of times and durations cannot overflow, however wrong
// the clock is.
const maxStoreClockUnixNano = 1 << 62

func clampedUnixNano(t time.Time) int64 {
	if t.Before(time.Unix(1, 0)) {
		return int64(time.Second)
	}
	if t.After(time.Unix(0, maxStoreClockUnixNano)) {
		return maxStoreClockUnixNano
	}
	return t.UnixNano()
}

// toWallTime converts a time of the store's clock to the wall clock.
func (r *limitRecord) toWallTime(storeClockUnixNano int64) time.Time {
	return time.Unix(0, r.WallTime+storeClockUnixNano-r.StoreClockUnixNano).UTC()
}
