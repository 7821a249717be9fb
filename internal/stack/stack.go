// Package stack gives a goroutine the stack that it will need at once. The runtime doubles a stack that
// is full and copies it each time: a short process spends a twentieth of its time on that.
package stack

func init() { Grow() } // of the main goroutine; expressions that packages compile when they are initialized need it

// size is the number of bytes that [Grow] reserves. Pages of them that are never used take no memory.
const size = 100 << 10

// Grow makes the stack of the calling goroutine large enough for judging an action.
func Grow() { reserve(false) }

// reserve has a frame of size bytes. It is not cleared unless used.
//
//go:noinline
func reserve(used bool) byte {
	if !used {
		return 0
	}
	var room [size]byte
	fill(&room)
	return room[0]
}

//go:noinline
func fill(room *[size]byte) { room[0] = 1 }
