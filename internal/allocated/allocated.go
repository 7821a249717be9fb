// Package allocated counts the bytes that a function allocates. Tests compare
// it with a limit, since time shows only on an idle machine that work grows
// faster than its input.
package allocated

import "runtime/metrics"

// Bytes runs f and returns how many bytes the process allocated on the heap
// meanwhile. What other goroutines allocate counts too, so a test that calls it
// is not parallel.
func Bytes(f func()) uint64 {
	before := total()
	f()
	return total() - before
}

func total() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
