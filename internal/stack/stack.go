// Package stack enlarges the stack of a goroutine in one step to the size that judging an action
// needs. The runtime would double and copy the stack several times, which takes a twentieth of the
// time of a short process.
package stack

func init() { GrowToReservedBytes() } // for the main goroutine, which compiles regular expressions of packages during initialization

// reservedStackBytes is the number of bytes that [GrowToReservedBytes] reserves. Pages of them that are never used take no memory.
const reservedStackBytes = 100 << 10

// GrowToReservedBytes makes the stack of the calling goroutine large enough for judging an action.
func GrowToReservedBytes() { growStackReturningDummyByte(false) }

// growStackReturningDummyByte has a stack frame of [reservedStackBytes] bytes, so that calling it
// enlarges the stack. Unless mustTouchFrame is set, it returns before it clears that frame.
//
//go:noinline
func growStackReturningDummyByte(mustTouchFrame bool) byte {
	if !mustTouchFrame {
		return 0
	}
	var room [reservedStackBytes]byte
	touchReservedFrame(&room)
	return room[0]
}

//go:noinline
func touchReservedFrame(frame *[reservedStackBytes]byte) { frame[0] = 1 }
