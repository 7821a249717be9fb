//go:build !linux && !darwin

package cmd

// canReadStreamWithoutBlocking always returns false on systems without a service.
func canReadStreamWithoutBlocking(any) bool { return false }
