//go:build race

package approve

// streams is how many streams of typing each way in takes: a quarter of what it
// takes without the race detector, which makes each ten times slower.
const streams = 100
