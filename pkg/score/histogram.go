package score

import (
	"math/bits"
	"time"
)

// A histogram counts durations in constant memory: each power of two nanoseconds is divided into 32
// buckets, so that quantiles are accurate to 3 %.
type histogram struct {
	count [64 * steps]uint64
	n     int
	max   time.Duration
}

const (
	stepBits = 5
	steps    = 1 << stepBits
)

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.count[bucket(uint64(d))]++
	h.n++
	h.max = max(h.max, d)
}

// bucket returns the bucket of a duration; durations below 32 ns have one bucket each.
func bucket(ns uint64) int {
	if ns < steps {
		return int(ns)
	}
	power := bits.Len64(ns) - 1 - stepBits
	return (power+1)*steps + int(ns>>power) - steps
}

// floor returns the lower bound of a bucket.
func floor(b int) uint64 {
	if b < steps {
		return uint64(b)
	}
	power := b/steps - 1
	return uint64(steps+b%steps) << power
}

// quantile returns the duration that a share of the durations does not exceed; 0 if the histogram is
// empty.
func (h *histogram) quantile(share float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := uint64(share * float64(h.n-1))
	for b, n := range h.count {
		if rank < n {
			middle := time.Duration((floor(b) + floor(b+1) - 1) / 2)
			return min(middle, h.max)
		}
		rank -= n
	}
	return h.max
}
