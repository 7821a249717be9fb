package score

import (
	"math/bits"
	"time"
)

// A durationHistogram counts durations in constant memory: each power of two nanoseconds is divided into 32
// buckets, so that quantiles are accurate to 3 %.
type durationHistogram struct {
	bucketCounts [64 * bucketsPerOctave]uint64
	total        int
	max          time.Duration
}

const (
	log2BucketsPerOctave = 5
	bucketsPerOctave     = 1 << log2BucketsPerOctave
)

func (h *durationHistogram) add(d time.Duration) {
	d = max(d, 0)
	h.bucketCounts[bucketIndex(uint64(d))]++
	h.total++
	h.max = max(h.max, d)
}

// bucketIndex returns the bucket of a duration; durations below 32 ns have one bucket each.
func bucketIndex(ns uint64) int {
	if ns < bucketsPerOctave {
		return int(ns)
	}
	power := bits.Len64(ns) - 1 - log2BucketsPerOctave
	return (power+1)*bucketsPerOctave + int(ns>>power) - bucketsPerOctave
}

// bucketFloor returns the lower bound of a bucket.
func bucketFloor(b int) uint64 {
	if b < bucketsPerOctave {
		return uint64(b)
	}
	power := b/bucketsPerOctave - 1
	return uint64(bucketsPerOctave+b%bucketsPerOctave) << power
}

// quantile returns the duration that a share of the durations does not exceed; 0 if the histogram is
// empty.
func (h *durationHistogram) quantile(share float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := uint64(share * float64(h.total-1))
	for b, n := range h.bucketCounts {
		if rank < n {
			middle := time.Duration((bucketFloor(b) + bucketFloor(b+1) - 1) / 2)
			return min(middle, h.max)
		}
		rank -= n
	}
	return h.max
}
