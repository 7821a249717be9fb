// Package allocated counts the bytes that a function allocates. Tests compare the count with a limit
// to detect work that grows faster than its input, since measured time is unreliable on a busy
// machine.
package allocated

import "runtime/metrics"

// Bytes runs f and returns how many bytes the process allocated on the heap meanwhile. Allocations of
// other goroutines count too, so a test that calls it must not be parallel.
func Bytes(f func()) uint64 {
	before := totalAllocated()
	f()
	return totalAllocated() - before
}

func totalAllocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
