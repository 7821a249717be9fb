//go:build linux || darwin

package cmd

import "golang.org/x/sys/unix"

// canReadStreamWithoutBlocking reports whether a read from a stream returns within a millisecond.
func canReadStreamWithoutBlocking(stream any) bool {
	f, ok := stream.(fileDescriptorStream)
	if !ok {
		return false
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, 1)
	return err == nil && n > 0
}
