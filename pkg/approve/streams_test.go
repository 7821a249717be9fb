//go:build !race

package approve

// streams is how many streams of typing each way in takes.
const streams = 400
